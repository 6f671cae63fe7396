"""What changed from one revision to the next, in words."""

from collections.abc import Mapping
from typing import Any

from fabric.lib.money import format_amount
from listings.domain.bodies import kind_of, price_micros
from listings.domain.kinds.schema import FieldSpec


def list_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return one phrase per field that differs between two stored bodies of the same kind."""
    kind = kind_of(after)
    changes = []
    if price_micros(before) != price_micros(after):
        was, now = format_amount(price_micros(before)), format_amount(price_micros(after))
        changes.append(f"price ${was} to ${now} {kind.price.words}")
    for specs, old, new in (
        (kind.fields, before["promise"], after["promise"]),
        (kind.statements, before, after),
    ):
        changes += [
            _change(spec, old.get(spec.name), new.get(spec.name))
            for spec in specs
            if old.get(spec.name) != new.get(spec.name)
        ]
    return changes


def _change(spec: FieldSpec, was: Any, now: Any) -> str:
    unit = f" {spec.unit}" if spec.unit else ""
    if was is None:
        return f"{spec.label} promised, {_shown(now)}{unit}"
    if now is None:
        return f"{spec.label} no longer promised"
    return f"{spec.label} {_shown(was)} to {_shown(now)}{unit}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    return ", ".join(value) if isinstance(value, list) else str(value)
