"""Which part of which window a lease pays for, and until when it is paid.

A window is half-open and epoch-aligned; a lease covers whole seconds of it. Starts are rounded up
and ends down, so that no fraction of a second is ever charged.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, order=True)
class Coverage:
    """The part of one window that is, or shall be, reserved; both ends on whole seconds."""

    window_index: int
    starts_at: datetime
    ends_at: datetime

    @property
    def seconds(self) -> int:
        """Whole seconds that can still become ready in this part."""
        return whole_seconds(self.starts_at, self.ends_at)

    def shortened_to(self, seconds: int) -> "Coverage":
        """Return the first `seconds` of this part: where the money only reaches that far."""
        return Coverage(
            self.window_index, self.starts_at, self.starts_at + timedelta(seconds=seconds)
        )


def whole_seconds(start: datetime, end: datetime) -> int:
    """Return the whole seconds from `start` to `end`; zero when the end is not after the start."""
    return max(0, (end - start) // timedelta(seconds=1))


def ceil_second(at: datetime) -> datetime:
    """Return the first whole second at or after `at`."""
    return datetime.fromtimestamp(math.ceil(at.timestamp()), tz=UTC)


def floor_second(at: datetime) -> datetime:
    """Return the last whole second at or before `at`."""
    return at.replace(microsecond=0)


def index_of(at: datetime, *, window_seconds: int) -> int:
    """Return the index of the window that holds `at`."""
    return int(at.timestamp()) // window_seconds


def part_of_window(
    window_index: int, *, window_seconds: int, not_before: datetime, not_after: datetime
) -> Coverage | None:
    """Return what of a window lies between two instants, or None when not one whole second does."""
    start = datetime.fromtimestamp(window_index * window_seconds, tz=UTC)
    part = Coverage(
        window_index,
        max(start, ceil_second(not_before)),
        min(start + timedelta(seconds=window_seconds), floor_second(not_after)),
    )
    return part if part.seconds > 0 else None


def wanted_windows(
    *, now: datetime, not_before: datetime, not_after: datetime, window_seconds: int, ahead: int
) -> list[Coverage]:
    """Return the running window and the `ahead` next ones, cut to the lease's start and term.

    The list is empty when the term is over.
    """
    first = index_of(max(now, not_before), window_seconds=window_seconds)
    parts = (
        part_of_window(
            index, window_seconds=window_seconds, not_before=not_before, not_after=not_after
        )
        for index in range(first, first + ahead + 1)
    )
    return [part for part in parts if part is not None]


def paid_until(coverages: Iterable[Coverage], *, now: datetime) -> datetime | None:
    """Return the end of the unbroken stretch of reserved time that `now` lies in, or before.

    None when nothing reserved lies ahead. A stretch breaks where one part does not begin at the
    end of the one before: the agent must not run through an unpaid gap.
    """
    end: datetime | None = None
    for part in sorted(coverages):
        if part.ends_at <= now:
            continue
        if end is not None and part.starts_at > end:
            break
        end = part.ends_at
    return end
