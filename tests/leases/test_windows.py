"""Which part of which window is paid for."""

import itertools
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from leases.domain.windows import Coverage, paid_until, part_of_window, wanted_windows

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
INDEX = int(NOON.timestamp()) // 5


def wanted(now: datetime, *, not_after: datetime, ahead: int = 2) -> list[Coverage]:
    return wanted_windows(
        now=now, not_before=now, not_after=not_after, window_seconds=5, ahead=ahead
    )


def test_the_first_window_is_a_part_that_begins_on_the_next_whole_second() -> None:
    """R-C4 (api): a window that began before the lease is reserved from the lease on."""
    parts = wanted(NOON + timedelta(seconds=1.3), not_after=NOON + timedelta(hours=1))
    assert [(part.window_index - INDEX, part.seconds) for part in parts] == [(0, 3), (1, 5), (2, 5)]
    assert parts[0].starts_at == NOON + timedelta(seconds=2)


def test_the_last_window_ends_with_the_term() -> None:
    """R-C4 (api): nothing is reserved beyond the term."""
    parts = wanted(NOON, not_after=NOON + timedelta(seconds=7.9))
    assert [part.seconds for part in parts] == [5, 2]
    assert wanted(NOON + timedelta(seconds=8), not_after=NOON + timedelta(seconds=7.9)) == []


def test_less_than_a_second_is_no_part_of_a_window() -> None:
    """R-C4 (api): no fraction of a second is ever charged."""
    part = part_of_window(
        INDEX,
        window_seconds=5,
        not_before=NOON + timedelta(seconds=4.1),
        not_after=NOON + timedelta(hours=1),
    )
    assert part is None


def test_paid_until_stops_at_the_first_gap() -> None:
    """R-C11 (api): the agent is never told to run through a window that nobody paid."""
    first, second, third = wanted(NOON, not_after=NOON + timedelta(hours=1))
    assert paid_until([first, second, third], now=NOON) == third.ends_at
    assert paid_until([first, third], now=NOON) == first.ends_at
    assert paid_until([first, second.shortened_to(2), third], now=NOON) == (
        second.starts_at + timedelta(seconds=2)
    )
    assert paid_until([first], now=first.ends_at) is None


@given(
    offset=st.floats(min_value=0, max_value=10_000),
    length=st.integers(min_value=1, max_value=20_000),
    window=st.integers(min_value=1, max_value=3600),
    ahead=st.integers(min_value=0, max_value=5),
)
def test_wanted_windows_never_overlap_and_never_leave_the_lease(
    offset: float, length: int, window: int, ahead: int
) -> None:
    """R-C4 (api): whatever the clock says, a second is reserved at most once."""
    now = NOON + timedelta(seconds=offset)
    end = NOON + timedelta(seconds=length)
    parts = wanted_windows(
        now=now, not_before=now, not_after=end, window_seconds=window, ahead=ahead
    )
    assert len(parts) <= ahead + 1
    for part in parts:
        assert now <= part.starts_at < part.ends_at <= end
        assert 0 < part.seconds <= window
        assert int(part.starts_at.timestamp()) // window == part.window_index
        assert (int(part.ends_at.timestamp()) - 1) // window == part.window_index
    for earlier, later in itertools.pairwise(parts):
        assert earlier.ends_at == later.starts_at
