"""Promise against delivery: pure rules with exact arithmetic."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listings.domain.conformity import KEPT, FieldOutcome, compare
from listings.domain.kinds import find_kind
from listings.domain.kinds.schema import Direction, FieldSpec, ValueType
from tests.listings.bodies import BODY

FIELDS = find_kind("accelerator").fields
SPEED = FieldSpec(
    "speed", "Speed", ValueType.NUMBER, unit="GB/s", direction=Direction.HIGHER, tolerance_bps=500
)
DELAY = FieldSpec(
    "delay", "Delay", ValueType.NUMBER, unit="ms", direction=Direction.LOWER, tolerance_bps=500
)
COUNT = FieldSpec("count", "Count", ValueType.INTEGER, direction=Direction.EXACT)
WORDS = FieldSpec("words", "Words", ValueType.SET, direction=Direction.SET)
CLASS = FieldSpec("class", "Class", ValueType.TEXT)


def verdict(spec: FieldSpec, promised: Any, observed: Any) -> str:
    [found] = compare([spec], {spec.name: promised}, {spec.name: observed})
    return found.verdict


@pytest.mark.parametrize(
    ("spec", "promised", "observed", "expected"),
    [
        (SPEED, 100, 100, "match"),
        (SPEED, 100, 95, "match"),
        (SPEED, 100, 94.999, "short"),
        (SPEED, 100, 105, "match"),
        (SPEED, 100, 105.001, "better"),
        (SPEED, 100, 0, "short"),
        (SPEED, 100, None, "not_measured"),
        (SPEED, 100, math.nan, "not_measured"),
        (SPEED, 100, math.inf, "not_measured"),
        (SPEED, 100, "100", "not_measured"),
        (SPEED, 100, True, "not_measured"),
        (DELAY, 90, 71, "better"),
        (DELAY, 90, 94.5, "match"),
        (DELAY, 90, 94.6, "short"),
        (COUNT, 8, 8, "match"),
        (COUNT, 8, 7, "different"),
        (COUNT, 8, 9, "different"),
        (CLASS, "nvidia-h100-80gb-sxm", "nvidia-h100-80gb-sxm", "match"),
        (CLASS, "nvidia-h100-80gb-sxm", "nvidia-rtx-4090-24gb", "different"),
        (CLASS, "nvidia-h100-80gb-sxm", None, "not_measured"),
        (CLASS, "nvidia-h100-80gb-sxm", "", "different"),
        (WORDS, ["avx2"], ["avx2"], "match"),
        (WORDS, ["avx2"], ["avx2", "avx512"], "better"),
        (WORDS, ["avx2", "amx"], ["avx2"], "short"),
        (WORDS, ["avx2"], [["avx2"]], "not_measured"),
    ],
)
def test_each_rule_at_its_edges(
    spec: FieldSpec, promised: Any, observed: Any, expected: str
) -> None:
    assert verdict(spec, promised, observed) == expected


def test_every_promised_field_has_a_verdict_even_without_a_reading() -> None:
    """R-C5 (api): a promise without a reading is not measured; it is never a match."""
    found = compare(FIELDS, BODY["promise"], {})
    assert {item.field for item in found} == set(BODY["promise"])
    assert len(found) >= 12
    assert {item.verdict for item in found} == {"not_measured"}
    assert not any(item.kept for item in found)


def test_a_verdict_carries_what_redoing_it_needs() -> None:
    [found] = compare([SPEED], {"speed": 100}, {"speed": 90.5, "other": 1})
    assert found.as_dict() == {
        "field": "speed",
        "promised": 100,
        "observed": 90.5,
        "unit": "GB/s",
        "verdict": "short",
        "tolerance_bps": 500,
        "rule": "at_least",
    }


NUMBERS = st.integers(0, 10**9) | st.floats(0, 1e9, allow_nan=False)


@given(promised=NUMBERS, observed=NUMBERS, tolerance=st.integers(0, 10_000))
def test_short_means_outside_the_tolerance_on_the_worse_side(
    promised: float, observed: float, tolerance: int
) -> None:
    for direction in (Direction.HIGHER, Direction.LOWER):
        spec = FieldSpec("f", "F", ValueType.NUMBER, direction=direction, tolerance_bps=tolerance)
        slack = Fraction(promised) * tolerance / 10_000
        worse = (
            Fraction(observed) < Fraction(promised) - slack
            if direction is Direction.HIGHER
            else Fraction(observed) > Fraction(promised) + slack
        )
        assert (verdict(spec, promised, observed) == "short") is worse


@given(st.dictionaries(st.sampled_from([f.name for f in FIELDS]), st.none() | NUMBERS | st.text()))
def test_no_observation_makes_it_fail_or_lose_a_field(observed: dict[str, Any]) -> None:
    found = compare(FIELDS, BODY["promise"], observed)
    assert [item.field for item in found] == [f.name for f in FIELDS if f.name in BODY["promise"]]
    assert {item.verdict for item in found} <= set(FieldOutcome)
    assert all(item.verdict not in KEPT for item in found if observed.get(item.field) is None)


def test_delivering_the_promise_keeps_every_field() -> None:
    assert all(item.kept for item in compare(FIELDS, BODY["promise"], BODY["promise"]))
