"""The form a listing is written in; its fields are the kind's table, and the table judges them.

The form only turns text into the types of a body. Whether a value is acceptable is said once, by
`listings.domain.bodies`, in the same words as to programs and agents.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django import forms
from django.forms.utils import ErrorDict

from fabric.lib.errors import DomainError, InvalidInput
from fabric.lib.money import MICROS, format_amount
from listings.domain.kinds import find_kind
from listings.domain.kinds.schema import FieldSpec, Kind, ValueType

_WHOLE = re.compile(r"-?[0-9]{1,40}")
_DECIMAL = re.compile(r"(-?)([0-9]{1,40})\.([0-9]{1,12})")
_AMOUNT = "price.amount_micros"


class ListingForm(forms.Form):
    """One input for each field of the body, named by its place in the body: `promise.memory_mib`."""

    node = forms.ChoiceField(label="Node", help_text="A listing stays on its node.")

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        nodes: Iterable[tuple[str, str]],
        kind: Kind | None = None,
        body: Mapping[str, Any] | None = None,
        node: str = "",
    ) -> None:
        self.kind = kind or find_kind("accelerator")
        super().__init__(data, initial={"node": node, **_initial(self.kind, body or {})})
        choice = self.fields["node"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = list(nodes)
        for name, spec in _inputs(self.kind):
            self.fields[name] = _input(name, spec)

    def body(self) -> dict[str, Any]:
        """Return what was written as a body, with the types JSON would carry.

        Inputs that no field has are passed on, so that they are refused and not overlooked.
        """
        specs = dict(_inputs(self.kind))
        body: dict[str, Any] = {"kind": self.kind.name, "promise": {}, "price": {}}
        for name in {*specs, *self.data} - {"node", "version", "csrfmiddlewaretoken"}:
            value = _typed(name, specs.get(name), self.data.get(name))
            part, _, inner = name.rpartition(".")
            target = body.get(part, {}) if part else body
            if value is not None:
                target[inner] = value
        return body

    def refuse(self, refusal: DomainError) -> None:
        """Put each refused field's reason and accepted values beside its input."""
        self.full_clean()
        if not isinstance(refusal, InvalidInput) or not refusal.errors:
            self.add_error(None, f"{refusal.message} {refusal.suggestion}".strip())
        for error in refusal.errors:
            text = f"{error.reason}; accepted: {error.accepted}"
            if error.field == _AMOUNT:
                text = f"{_in_dollars(error.reason)}; accepted: {self._price_words()}"
            if error.field in self.fields:
                self.add_error(error.field, text)
            else:
                self.add_error(None, f"{error.field}: {text}")

    def groups(self) -> Iterator[tuple[str, list[forms.BoundField]]]:
        """Return the inputs by line of the listing, for the page."""
        yield "What it is called and where", [self[spec.name] for spec in self.kind.statements]
        for line, title in self.kind.lines.items():
            fields = [self[f"promise.{s.name}"] for s in self.kind.fields if s.line == line]
            yield title, fields

    def price_field(self) -> forms.BoundField:
        """Return the price's input."""
        return self[_AMOUNT]

    def full_clean(self) -> None:
        """Judge nothing here: the body's reader does, and `refuse` brings back what it said."""
        self._errors = ErrorDict(renderer=self.renderer)
        self.cleaned_data: dict[str, Any] = {}

    def _price_words(self) -> str:
        return f"dollars from 0.000001 to {format_amount(self.kind.price.max_micros)}"


def _inputs(kind: Kind) -> Iterator[tuple[str, FieldSpec]]:
    for spec in kind.statements:
        yield spec.name, spec
    for spec in kind.fields:
        yield f"promise.{spec.name}", spec
    for spec in kind.price.fields:
        yield f"price.{spec.name}", spec


def _input(name: str, spec: FieldSpec) -> forms.Field:
    label = f"{spec.label}, {spec.unit}" if spec.unit else spec.label
    field: forms.Field
    if spec.type is ValueType.CHOICE:
        empty = [] if spec.required else [("", "not promised")]
        words = [(word, word.replace("_", " ")) for word in spec.choices]
        field = forms.CharField(label=label, widget=forms.Select(choices=[*empty, *words]))
    elif spec.type is ValueType.FLAG:
        field = forms.BooleanField(label=label)
    else:
        field = forms.CharField(label=label, strip=True)
        if spec.type in {ValueType.INTEGER, ValueType.NUMBER}:
            is_whole = spec.type is ValueType.INTEGER
            field.widget.attrs["inputmode"] = "numeric" if is_whole else "decimal"
    field.required = spec.required and spec.type is not ValueType.FLAG
    field.help_text = "" if spec.type in {ValueType.CHOICE, ValueType.FLAG} else spec.accepted
    if name == _AMOUNT:
        field.label, field.help_text = f"{spec.label}, $", "A plain amount such as 2.40"
        field.widget.attrs["inputmode"] = "decimal"
    elif name.startswith("price."):
        field.widget = forms.HiddenInput()
    return field


def _initial(kind: Kind, body: Mapping[str, Any]) -> dict[str, Any]:
    initial: dict[str, Any] = {
        "price.per_quantity": kind.price.per_quantity,
        "price.meter_unit": kind.price.meter_unit,
    }
    for spec in kind.statements:
        initial[spec.name] = _written(body.get(spec.name))
    for spec in kind.fields:
        initial[f"promise.{spec.name}"] = _written(body.get("promise", {}).get(spec.name))
    amount = body.get("price", {}).get("amount_micros")
    if amount is not None:
        initial[_AMOUNT] = format_amount(int(amount)).replace(",", "")
    return initial


def _written(value: Any) -> Any:
    return " ".join(value) if isinstance(value, list) else value


def _typed(name: str, spec: FieldSpec | None, text: Any) -> Any:
    """Turn an input's text into the type its field has; text that does not fit stays text."""
    if spec is not None and spec.type is ValueType.FLAG:
        return text in {"on", "true", "True"}
    text = str(text or "").strip()
    if not text:
        return None
    if spec is None:
        return text
    if name == _AMOUNT:
        return _micros(text)
    match spec.type:
        case ValueType.INTEGER | ValueType.NUMBER:
            return _number(text)
        case ValueType.SET:
            return text.replace(",", " ").split()
        case _:
            return text


def _number(text: str) -> Any:
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def _micros(text: str) -> Any:
    """Read dollars into micro-units without ever passing through a binary fraction."""
    if _WHOLE.fullmatch(text):
        return int(text) * MICROS
    match = _DECIMAL.fullmatch(text)
    if match is None or len(match[3].rstrip("0")) > 6:
        return text
    micros = int(match[2]) * MICROS + int(match[3][:6].ljust(6, "0"))
    return -micros if match[1] else micros


def _in_dollars(reason: str) -> str:
    """Say a reason about micro-units in the unit of the input."""
    return re.sub(
        r"-?[0-9][0-9,]{0,30}",
        lambda found: _dollars(int(found[0].replace(",", ""))),
        reason,
    )


def _dollars(micros: int) -> str:
    return f"{'-' if micros < 0 else ''}${format_amount(abs(micros))}"
