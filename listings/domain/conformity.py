"""Promise against delivery, field by field: pure, versioned, recomputable by anyone.

Arithmetic is exact (fractions), so the same promise and reading give the same verdict everywhere.
No reading is never zero and never a match.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from fabric.lib.types import Choice
from listings.domain.kinds.schema import Direction, FieldSpec, ValueType

RULES_VERSION = "1"
WHOLE_BPS = 10_000

_RULES = {
    Direction.EXACT: "equal",
    Direction.HIGHER: "at_least",
    Direction.LOWER: "at_most",
    Direction.SET: "contains",
}


class FieldOutcome(Choice):
    """What a comparison of one field can find."""

    MATCH = "match"
    BETTER = "better"
    SHORT = "short"
    DIFFERENT = "different"
    NOT_MEASURED = "not_measured"


KEPT = frozenset({FieldOutcome.MATCH, FieldOutcome.BETTER})


@dataclass(frozen=True)
class FieldVerdict:
    """One field of one comparison, with all that is needed to redo it."""

    field: str
    promised: Any
    observed: Any
    unit: str
    verdict: str
    tolerance_bps: int
    rule: str

    @property
    def kept(self) -> bool:
        """Whether the promise was kept."""
        return self.verdict in KEPT

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object that is stored beside a reading."""
        return asdict(self)


def compare(
    specs: Iterable[FieldSpec], promise: Mapping[str, Any], observed: Mapping[str, Any]
) -> list[FieldVerdict]:
    """Return one verdict for every promised field, in the order of the kind's table.

    `observed` holds plain values in the units that `specs` names; other keys are ignored.
    """
    return [
        FieldVerdict(
            field=spec.name,
            promised=promise[spec.name],
            observed=observed.get(spec.name),
            unit=spec.unit,
            verdict=str(_judge(spec, promise[spec.name], observed.get(spec.name))),
            tolerance_bps=spec.tolerance_bps,
            rule=_RULES[spec.direction],
        )
        for spec in specs
        if spec.name in promise
    ]


def _judge(spec: FieldSpec, promised: Any, observed: Any) -> FieldOutcome:
    if spec.type in {ValueType.INTEGER, ValueType.NUMBER}:
        return _judge_number(spec, promised, observed)
    if spec.type is ValueType.SET:
        return _judge_set(promised, observed)
    if type(observed) is not type(promised):
        return FieldOutcome.NOT_MEASURED
    return FieldOutcome.MATCH if observed == promised else FieldOutcome.DIFFERENT


def _judge_number(spec: FieldSpec, promised: Any, observed: Any) -> FieldOutcome:
    if isinstance(observed, bool) or not isinstance(observed, int | float):
        return FieldOutcome.NOT_MEASURED
    if isinstance(observed, float) and not math.isfinite(observed):
        return FieldOutcome.NOT_MEASURED
    target, seen = Fraction(promised), Fraction(observed)
    slack = abs(target) * spec.tolerance_bps / WHOLE_BPS
    if target - slack <= seen <= target + slack:
        return FieldOutcome.MATCH
    if spec.direction is Direction.EXACT:
        return FieldOutcome.DIFFERENT
    above = seen > target
    return (
        FieldOutcome.BETTER if above == (spec.direction is Direction.HIGHER) else FieldOutcome.SHORT
    )


def _judge_set(promised: Any, observed: Any) -> FieldOutcome:
    if not isinstance(observed, list | tuple) or not all(isinstance(i, str) for i in observed):
        return FieldOutcome.NOT_MEASURED
    wanted, seen = set(promised), set(observed)
    if wanted == seen:
        return FieldOutcome.MATCH
    return FieldOutcome.BETTER if wanted < seen else FieldOutcome.SHORT
