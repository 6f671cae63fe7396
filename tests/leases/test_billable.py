"""From the meter's claim to the seconds that are billed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leases.domain.batches import MeterBatch
from leases.domain.consequences import Compared, consequence_of, summary_word
from leases.domain.metering import Cap, Probe, billable, refusal, witnessed_seconds
from leases.domain.states import MOVES, LeaseState, can_move
from leases.domain.windows import Coverage

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
INDEX = int(NOON.timestamp()) // 10
WINDOW = Coverage(INDEX, NOON, NOON + timedelta(seconds=10))
BATCH = MeterBatch(
    lease="lse_x",
    agreement="agr_x",
    node="nod_x",
    terms_digest=bytes(32),
    epoch=0,
    seq=0,
    prev=None,
    window_index=INDEX,
    starts_at=NOON,
    ends_at=NOON + timedelta(seconds=10),
    ready_seconds=10,
    observed={},
    samples=10,
    final=False,
)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def bill(
    batch: MeterBatch = BATCH,
    *,
    coverage: Coverage | None = WINDOW,
    ready_at: datetime = NOON,
    stopped_at: datetime | None = None,
    probes: tuple[Probe, ...] = (),
) -> tuple[int, tuple[Cap, ...]]:
    result = billable(
        batch, coverage=coverage, ready_at=ready_at, stopped_at=stopped_at, probes=probes
    )
    return result.seconds, result.caps


def test_a_whole_window_that_nothing_bounds_is_billed_as_claimed() -> None:
    """R-C4 (agent): the meter's word counts where nothing speaks against it."""
    assert bill() == (10, ())


def test_each_bound_lowers_the_claim_and_is_named() -> None:
    """R-C11 (agent): readiness, money, the stop and the witness each bound what is billed."""
    assert bill(ready_at=at(2.5)) == (7, (Cap("ready_at", 7),))
    assert bill(coverage=WINDOW.shortened_to(4)) == (4, (Cap("paid_until", 4),))
    assert bill(stopped_at=at(6)) == (6, (Cap("stopped_at", 6),))
    assert bill(coverage=None) == (0, (Cap("not_reserved", 0),))
    assert bill(probes=(Probe(at(1), True), Probe(at(6), False))) == (6, (Cap("witness", 6),))


def test_several_bounds_add_up() -> None:
    """R-C4 (agent): a window may begin late, end early and be unseen in between."""
    seconds, caps = bill(
        ready_at=at(1), stopped_at=at(9), probes=(Probe(at(3), False), Probe(at(5), True))
    )
    assert seconds == 6
    assert [cap.rule for cap in caps] == ["ready_at", "stopped_at", "witness"]


def test_nobody_looked_is_not_an_outage() -> None:
    """R-C6 (agent): without a look the meter stands alone, and it says so."""
    assert witnessed_seconds(WINDOW, ()) is None
    assert witnessed_seconds(WINDOW, (Probe(at(-1), False), Probe(at(10), False))) is None
    assert witnessed_seconds(WINDOW, (Probe(at(0), True),)) == 10
    assert witnessed_seconds(WINDOW, (Probe(at(0), False),)) == 0


@given(
    claimed=st.integers(min_value=0, max_value=10),
    ready=st.floats(min_value=-5, max_value=15),
    stop=st.none() | st.floats(min_value=-5, max_value=15),
    reach=st.none() | st.integers(min_value=1, max_value=10),
    looks=st.lists(st.tuples(st.floats(min_value=-2, max_value=12), st.booleans()), max_size=6),
)
def test_no_bound_ever_raises_a_bill(
    claimed: int,
    ready: float,
    stop: float | None,
    reach: int | None,
    looks: list[tuple[float, bool]],
) -> None:
    """R-C4 (agent): the bill is at most the claim, the window, and what was reserved for it."""
    seconds, caps = bill(
        replace(BATCH, ready_seconds=claimed),
        coverage=None if reach is None else WINDOW.shortened_to(reach),
        ready_at=at(ready),
        stopped_at=None if stop is None else at(stop),
        probes=tuple(Probe(at(offset), seen) for offset, seen in looks),
    )
    assert 0 <= seconds <= min(claimed, reach or 0)
    assert (seconds < claimed) == bool(caps)
    assert [cap.seconds for cap in caps] == sorted((cap.seconds for cap in caps), reverse=True)


@pytest.mark.parametrize(
    ("batch", "received", "reason"),
    [
        (BATCH, at(10), ""),
        (replace(BATCH, ends_at=NOON, ready_seconds=0), at(10), "not_a_period"),
        (replace(BATCH, ready_seconds=11), at(10), "more_than_the_period"),
        (replace(BATCH, window_index=INDEX + 1), at(10), "outside_its_window"),
        (replace(BATCH, ends_at=at(11)), at(12), "outside_its_window"),
        (BATCH, at(3), "in_the_future"),
        (BATCH, at(11) + timedelta(hours=24), "too_late"),
    ],
)
def test_a_period_that_cannot_be_is_refused(
    batch: MeterBatch, received: datetime, reason: str
) -> None:
    """R-C4 (agent): backdated, future and impossible periods have a code each."""
    found = refusal(
        batch,
        window_seconds=10,
        received_at=received,
        ready_at=NOON,
        metered_until=None,
        stopped_at=None,
    )
    assert found == reason


@pytest.mark.parametrize(
    ("ready_at", "metered_until", "stopped_at", "reason"),
    [
        (None, None, None, "before_ready"),
        (at(10), None, None, "before_ready"),
        (at(2), at(1), None, "overlaps_a_reading"),
        (at(-60), None, NOON, "after_the_end"),
        (at(-60), NOON, at(5), ""),
    ],
)
def test_a_period_outside_the_lease_is_refused(
    ready_at: datetime | None,
    metered_until: datetime | None,
    stopped_at: datetime | None,
    reason: str,
) -> None:
    """R-C4 (agent): before ready, after the end and a second time are never billed."""
    found = refusal(
        BATCH,
        window_seconds=10,
        received_at=at(10),
        ready_at=ready_at,
        metered_until=metered_until,
        stopped_at=stopped_at,
    )
    assert found == reason


def test_another_class_contests_the_line_and_a_slow_disk_does_not() -> None:
    """R-C5 (api): identity is contested by rule, performance is shown."""
    wrong = consequence_of([Compared("device_class", "different"), Compared("disk_gib", "short")])
    assert wrong.contested
    assert wrong.fields == ("device_class",)
    slow = consequence_of([Compared("disk_read_mb_s", "short"), Compared("device_class", "match")])
    assert not slow.contested
    unread = consequence_of([Compared("device_class", "not_measured")])
    assert not unread.contested


def test_the_word_of_a_row_is_its_worst_verdict() -> None:
    """R-C5 (page): a row that hides a shortfall would be worse than none."""
    assert summary_word([Compared("a", "match"), Compared("b", "short")]) == "short"
    assert summary_word([Compared("a", "short"), Compared("b", "different")]) == "different"
    assert summary_word([Compared("a", "not_measured"), Compared("b", "better")]) == "match"
    assert summary_word([Compared("a", "not_measured")]) == "not_measured"


def test_no_path_leaves_an_ended_or_failed_lease() -> None:
    """R-C2 (api): the end of a lease is the end, and every lease can come to one."""
    assert not MOVES[LeaseState.ENDED]
    assert not MOVES[LeaseState.FAILED]
    for state in LeaseState:
        reached, edge = {state}, {state}
        while edge:
            edge = {after for before in edge for after in MOVES[before]} - reached
            reached |= edge
        assert reached & {LeaseState.ENDED, LeaseState.FAILED}
        assert not can_move(state, LeaseState.PROVISIONING)
