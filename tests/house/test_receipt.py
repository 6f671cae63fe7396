"""The demo's receipt notices every way in which a line could be wrong."""

import copy
from typing import Any

import pytest

from simulator.receipt import Checker

LINE: dict[str, Any] = {
    "window_index": 7,
    "counter_start": 4,
    "counter_end": 9,
    "price_micros": 1_000_000,
    "per_quantity": 3600,
    "units": 1,
    "amount_micros": 1_389,  # floor(9e6/3600) - floor(4e6/3600) = 2500 - 1111
    "state": "settled",
    "stands_bps": 5_000,
    "booked": 694,
    "transfer": 3,
    "parameters": {
        "verification_bps": 300,
        "network_bps": 300,
        "infrastructure_bps": 400,
        "margin_bps": 500,
    },
}
LEGS: list[dict[str, Any]] = [
    {"transfer_id": 3, "kind": "escrow", "code": "escrow:agr_1", "amount_micros": 694},
    {"transfer_id": 3, "kind": "earned", "code": "earned:org_1", "amount_micros": -593},
    {"transfer_id": 3, "kind": "fee", "code": "fee:verification:1", "amount_micros": -20},
    {"transfer_id": 3, "kind": "fee", "code": "fee:network:1", "amount_micros": -20},
    {"transfer_id": 3, "kind": "fee", "code": "fee:infrastructure:1", "amount_micros": -27},
    {"transfer_id": 3, "kind": "fee", "code": "fee:margin:1", "amount_micros": -34},
]
SHOWN = {"usg_1": {"window_index": 7, "amount_micros": "1389", "ruled_micros": "694"}}


def _check(
    line: dict[str, Any], legs: list[dict[str, Any]], shown: dict[str, dict[str, Any]]
) -> list[str]:
    checker = Checker()
    checker.check_line(line, legs, shown)
    return checker.disagreements


def test_a_line_that_agrees_everywhere_is_silent() -> None:
    """R-C8 (api): a settled line can be computed again from its terms and parameters."""
    assert _check(LINE, LEGS, SHOWN) == []


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("amount_micros", 1_390, "its line"),
        ("counter_end", 10, "its line"),
        ("booked", 695, "booked"),
        ("booked", None, "booked"),
        ("stands_bps", 10_000, "booked"),
        ("state", "pending", "state"),
    ],
)
def test_a_row_that_was_changed_is_named(field: str, value: object, word: str) -> None:
    found = _check({**LINE, field: value}, LEGS, SHOWN)
    assert any(word in row and "window 7" in row for row in found)


def test_a_leg_that_was_changed_is_named() -> None:
    legs = copy.deepcopy(LEGS)
    legs[1]["amount_micros"] = -594
    found = _check(LINE, legs, SHOWN)
    assert any("sum of its legs" in row for row in found)
    assert any("the provider's share" in row for row in found)


def test_an_api_that_says_something_else_is_named() -> None:
    shown = {"usg_1": {**SHOWN["usg_1"], "ruled_micros": "1389"}}
    assert _check(LINE, LEGS, shown) == ["window 7, what stands by the API: 1389 is not 694"]
    assert len(_check(LINE, LEGS, {})) == 2
