"""The arithmetic of lines and shares, for any price and any position on the counter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.amounts import check_amount
from billing.domain.lines import Rate, ruled_amount, split_amount
from fabric.lib.errors import InvalidInput

RATES = st.builds(
    Rate,
    price_micros=st.integers(0, 10_000_000),
    per_quantity=st.sampled_from([1, 7, 1_000, 3_600, 1_000_000]),
    units=st.integers(1, 64),
)


@given(rate=RATES, quantities=st.lists(st.integers(0, 5_000), max_size=30))
def test_lines_add_up_to_one_line_over_everything(rate: Rate, quantities: list[int]) -> None:
    """R-C8 (api): however usage is cut into windows, the sum is the price of all of it."""
    position, total = 0, 0
    for quantity in quantities:
        total += rate.line_amount(position, position + quantity)
        position += quantity
    assert total == rate.line_amount(0, position)


@given(
    rate=RATES,
    quantity=st.integers(0, 4_000),
    first=st.integers(0, 10**7),
    span=st.integers(0, 60),
)
def test_the_largest_line_is_the_largest_of_all_positions(
    rate: Rate, quantity: int, first: int, span: int
) -> None:
    """R-C11 (api): what is reserved is what the seconds can cost at most, and no more."""
    lines = [rate.line_amount(start, start + quantity) for start in range(first, first + span + 1)]
    assert rate.largest_line(quantity, first_start=first, last_start=first + span) == max(lines)


@given(
    rate=RATES.filter(lambda rate: rate.total_micros > 0),
    funds=st.integers(0, 10**12),
    first=st.integers(0, 10**7),
    span=st.integers(0, 10**5),
)
def test_what_is_affordable_is_affordable_and_one_more_is_not(
    rate: Rate, funds: int, first: int, span: int
) -> None:
    """R-C11 (api): the runway is exact to the second at every position of the counter."""
    positions = {"first_start": first, "last_start": first + span}
    seconds = rate.affordable_quantity(funds, **positions)
    assert rate.largest_line(seconds, **positions) <= funds
    assert rate.largest_line(seconds + 1, **positions) > funds


def test_a_free_lease_affords_any_number_of_seconds() -> None:
    free = Rate(price_micros=0, per_quantity=3_600, units=8)
    assert free.affordable_quantity(0, first_start=0, last_start=0) >= 10**9


@given(
    amount=st.integers(0, 2**63 - 1),
    stands_bps=st.integers(0, 10_000),
    shares=st.lists(st.integers(0, 2_500), min_size=4, max_size=4),
)
def test_parts_add_up_to_what_stands_and_never_exceed_the_line(
    amount: int, stands_bps: int, shares: list[int]
) -> None:
    """R-C9 (api): provider and fees together are exactly what the buyer is charged."""
    ruled = ruled_amount(amount, stands_bps=stands_bps)
    names = ("verification", "network", "infrastructure", "margin")
    parts = split_amount(ruled, fee_shares_bps=dict(zip(names, shares, strict=True)))
    assert 0 <= ruled <= amount
    assert sum(parts.values()) == ruled
    assert all(part >= 0 for part in parts.values())


@pytest.mark.parametrize(
    "value",
    [-1, 0, float("nan"), 1e309, 1.0, "1e3", "5", "0.0000001", 2**63, True, False, None, [1]],
)
def test_what_is_not_a_plain_positive_amount_is_refused(value: object) -> None:
    """R-C13 (api): money is never guessed from a sign, a float, a text or a truth value."""
    with pytest.raises(InvalidInput) as refusal:
        check_amount(value)
    assert refusal.value.errors[0].field == "amount_micros"


def test_the_largest_amount_a_bigint_holds_is_accepted() -> None:
    assert check_amount(2**63 - 1) == 2**63 - 1
