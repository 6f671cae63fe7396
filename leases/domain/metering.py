"""From what the meter claims to the seconds that are billed.

The meter's word is an upper bound. Every other bound can only lower it, and each one that did is
named, so that both sides see why a line is smaller than the batch says.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from leases.domain.batches import MeterBatch
from leases.domain.windows import Coverage, index_of, whole_seconds

LATE_LIMIT = timedelta(hours=24)


@dataclass(frozen=True)
class Probe:
    """One look at the workload from outside."""

    at: datetime
    reachable: bool


@dataclass(frozen=True)
class Cap:
    """A bound that lowered the claim, and what was left after it."""

    rule: str
    seconds: int


@dataclass(frozen=True)
class Billable:
    """Seconds to bill, and every bound that lowered the meter's claim."""

    seconds: int
    caps: tuple[Cap, ...]
    witnessed_seconds: int | None


def clock_tolerance(window_seconds: int) -> timedelta:
    """How far a node's clock may run ahead of ours before its batch is from the future."""
    return timedelta(seconds=min(30, max(1, window_seconds // 2)))


def refusal(
    batch: MeterBatch,
    *,
    window_seconds: int,
    received_at: datetime,
    ready_at: datetime | None,
    metered_until: datetime | None,
    stopped_at: datetime | None,
) -> str:
    """Return the code of why a batch cannot become a reading, or an empty string.

    `metered_until` is the end of the last reading; `stopped_at` is when the lease was to stop.
    """
    if batch.ends_at <= batch.starts_at:
        return "not_a_period"
    if batch.ready_seconds > whole_seconds(batch.starts_at, batch.ends_at):
        return "more_than_the_period"
    inside = timedelta(microseconds=1)
    if (
        index_of(batch.starts_at, window_seconds=window_seconds) != batch.window_index
        or index_of(batch.ends_at - inside, window_seconds=window_seconds) != batch.window_index
    ):
        return "outside_its_window"
    if batch.ends_at > received_at + clock_tolerance(window_seconds):
        return "in_the_future"
    if received_at > batch.ends_at + LATE_LIMIT:
        return "too_late"
    if ready_at is None or batch.ends_at <= ready_at:
        return "before_ready"
    if stopped_at is not None and batch.starts_at >= stopped_at:
        return "after_the_end"
    if metered_until is not None and batch.starts_at < metered_until:
        return "overlaps_a_reading"
    return ""


def witnessed_seconds(part: Coverage, probes: Iterable[Probe]) -> int | None:
    """Return for how long the workload was seen within a part of a window, or None if nobody looked.

    A failed look counts from its instant to the next good one, or to the end of the part.
    """
    looks = sorted(
        (probe for probe in probes if part.starts_at <= probe.at < part.ends_at),
        key=lambda probe: probe.at,
    )
    if not looks:
        return None
    unseen, lost_at = timedelta(0), None
    for look in looks:
        if not look.reachable and lost_at is None:
            lost_at = look.at
        elif look.reachable and lost_at is not None:
            unseen, lost_at = unseen + (look.at - lost_at), None
    if lost_at is not None:
        unseen += part.ends_at - lost_at
    return whole_seconds(part.starts_at, part.ends_at - unseen)


def billable(
    batch: MeterBatch,
    *,
    coverage: Coverage | None,
    ready_at: datetime,
    stopped_at: datetime | None,
    probes: Iterable[Probe],
) -> Billable:
    """Return the seconds of a batch that are billed.

    `coverage` is the part of the window that was reserved; without one nothing is billed: no
    money, no window.
    """
    if coverage is None:
        return Billable(0, (Cap("not_reserved", 0),) if batch.ready_seconds else (), None)
    seconds, caps = batch.ready_seconds, []
    start, end = batch.starts_at, batch.ends_at
    for rule, lower, upper in (
        ("ready_at", ready_at, None),
        ("paid_until", coverage.starts_at, coverage.ends_at),
        ("stopped_at", None, stopped_at),
    ):
        start = start if lower is None else max(start, lower)
        end = end if upper is None else min(end, upper)
        left = whole_seconds(start, end)
        if left < seconds:
            seconds = left
            caps.append(Cap(rule, seconds))
    witnessed = None
    if whole_seconds(start, end) > 0:
        seen_part = Coverage(coverage.window_index, start, end)
        witnessed = witnessed_seconds(seen_part, probes)
        if witnessed is not None and witnessed < seconds:
            seconds = witnessed
            caps.append(Cap("witness", seconds))
    return Billable(seconds, tuple(caps), witnessed)
