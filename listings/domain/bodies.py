"""Reading the body of a listing: every field that breaks a rule is named, with what would do."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from fabric.lib.errors import FieldError, InvalidInput
from listings.domain.kinds import KINDS
from listings.domain.kinds.schema import FieldSpec, Kind, Refusal


def read_body(body: object) -> dict[str, Any]:
    """Return `body` in the one form that is stored, or raise InvalidInput naming each bad field.

    A body is `{kind, promise: {field: value}, price: {amount_micros, per_quantity, meter_unit}}`
    beside the kind's statements (title, region, …). The amount is stored as text, as amounts are
    everywhere in JSON; a whole number is accepted too, because that is how people write YAML.
    """
    if not isinstance(body, Mapping):
        raise _refused([FieldError("body", "it is not an object", "an object of named fields")])
    name = body.get("kind", "accelerator")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        words = f"one of {', '.join(KINDS)}"
        raise _refused([FieldError("kind", "this kind of listing is not known", words, "UNKNOWN")])

    errors: list[FieldError] = []
    outer = [*kind.statements]
    errors += _unknown(body, [spec.name for spec in outer] + ["kind", "promise", "price"])
    read: dict[str, Any] = {"kind": kind.name, **_read_fields(body, outer, "", errors)}
    read["promise"] = _read_part(body, "promise", kind.fields, errors)
    errors += _needed(read["promise"], kind)
    price = _read_part(body, "price", kind.price.fields, errors)
    if "amount_micros" in price:
        price["amount_micros"] = str(price["amount_micros"])
    read["price"] = price
    if errors:
        raise _refused(errors)
    return read


def price_micros(body: Mapping[str, Any]) -> int:
    """Return the price of a stored body, per `per_quantity` of its metered unit."""
    return int(body["price"]["amount_micros"])


def kind_of(body: Mapping[str, Any]) -> Kind:
    """Return the kind whose table a stored body was read with."""
    return KINDS[body["kind"]]


def _read_part(
    body: Mapping[Any, Any], name: str, specs: tuple[FieldSpec, ...], errors: list[FieldError]
) -> dict[str, Any]:
    part = body.get(name)
    if part is None:
        part = {}
    if not isinstance(part, Mapping):
        errors.append(FieldError(name, "it is not an object", "an object of named fields"))
        return {}
    prefix = f"{name}."
    errors += _unknown(part, [spec.name for spec in specs], prefix)
    if name == "price":
        part = {**part, "amount_micros": _plain_integer(part.get("amount_micros"))}
    return _read_fields(part, specs, prefix, errors)


def _read_fields(
    body: Mapping[Any, Any], specs: Iterable[FieldSpec], prefix: str, errors: list[FieldError]
) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for spec in specs:
        value = body.get(spec.name)
        if value is None:
            if spec.required:
                errors.append(
                    FieldError(f"{prefix}{spec.name}", "it is missing", spec.accepted, "MISSING")
                )
            continue
        try:
            read[spec.name] = spec.read(value)
        except Refusal as refusal:
            errors.append(
                FieldError(f"{prefix}{spec.name}", refusal.reason, spec.accepted, refusal.code)
            )
    return read


def _needed(promise: Mapping[str, Any], kind: Kind) -> list[FieldError]:
    return [
        FieldError(
            f"promise.{needed}",
            f"it is missing, and {name} is {value}",
            kind.field(needed).accepted,
            "MISSING",
        )
        for name, value, needed in kind.needed_with
        if promise.get(name) == value and needed not in promise
    ]


def _unknown(body: Mapping[Any, Any], known: list[str], prefix: str = "") -> list[FieldError]:
    """Name each key that no field has; a misspelt or wrongly scaled unit is pointed out."""
    errors = []
    for key in body:
        if key in known:
            continue
        name = str(key)[:60]
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        accepted = f"{prefix}{close[0]}" if close else f"one of {', '.join(known)}"
        errors.append(FieldError(f"{prefix}{name}", "there is no such field", accepted, "UNKNOWN"))
    return errors


def _plain_integer(value: object) -> object:
    """Read an amount written as digits; anything else is left for the field to refuse."""
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and value.isascii():
        return int(value) if len(value) <= 40 else 10**40
    return value


def _refused(errors: list[FieldError]) -> InvalidInput:
    count = len(errors)
    return InvalidInput(
        f"{count} field{'s' if count > 1 else ''} of the listing cannot be accepted.",
        errors=tuple(errors),
        suggestion="Correct the named fields and send the listing again.",
    )
