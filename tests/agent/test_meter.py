"""The meter: what counts as ready, and that nothing is lost or counted twice, whatever happens."""

import hashlib
import itertools
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_agent.metering.meter import SECOND_NS, Instant, Look, Meter, Metered
from fabric_agent.metering.outbox import Outbox
from fabric_protocol import dsse, keys, payloads

KEY = keys.SigningKey.from_seed(b"k" * 32)
NODE, LEASE = "nod_test", "lse_test"
T0 = 1_800_000_000  # A multiple of the window.
FAR = (T0 + 10**6) * SECOND_NS


def metered(*, window=5, until=FAR):
    return Metered(LEASE, "agr_test", "ab" * 32, window * SECOND_NS, until)


def at(seconds, *, wall_shift=0.0, boot="boot-1"):
    """An instant `seconds` after T0; `wall_shift` moves the wall clock only."""
    return Instant(
        wall_ns=T0 * SECOND_NS + round((seconds + wall_shift) * SECOND_NS),
        mono_ns=round((1000 + seconds) * SECOND_NS),
        boot=boot,
    )


UP = Look("life-1", {"cpu_cores": 2})
OTHER_LIFE = Look("life-2", {"cpu_cores": 2})
DOWN = Look("", {})


@pytest.fixture
def outbox(tmp_path):
    outbox = Outbox(tmp_path / "outbox.sqlite3")
    yield outbox
    outbox.close()


@pytest.fixture
def meter(outbox):
    return Meter(outbox, node=NODE, key=KEY)


def bodies(outbox):
    return [batch.body for batch in outbox.batches_of(LEASE)]


def seconds_of(outbox):
    return [body["ready_seconds"] for body in bodies(outbox)]


def receipt(batch, **changes):
    return {
        "digest": batch.digest,
        "state": "accepted",
        "reason": "",
        "in_place": True,
        "epoch": batch.epoch,
        "seq": batch.seq,
        "next": {"epoch": batch.epoch, "seq": batch.seq + 1, "head": batch.digest, "state": "open"},
    } | changes


def test_a_window_seen_ready_throughout_is_metered_whole(meter, outbox):
    """R-C4 (agent): each window is one signed batch of whole ready seconds."""
    for step in range(23):
        meter.look(metered(), UP, at(step / 2))
    assert seconds_of(outbox) == [5, 5]
    first = bodies(outbox)[0]
    assert first["window_index"] == T0 // 5
    assert first["starts_at"].endswith("Z")
    assert first["observed"] == {"cpu_cores": 2}
    assert first["terms_digest"] == "ab" * 32


def test_batches_are_signed_sequenced_and_chained(meter, outbox):
    """R-C4 (agent): batches are signed, sequenced and hash-chained."""
    for step in range(40):
        meter.look(metered(), UP, at(step / 2))
    stored = outbox.batches_of(LEASE)
    previous = None
    for number, batch in enumerate(stored):
        payload = dsse.open(batch.envelope, payloads.METER_BATCH, KEY.public_bytes)
        assert json.loads(payload) == batch.body
        assert hashlib.sha256(payload).hexdigest() == batch.digest
        assert (batch.epoch, batch.seq, batch.body["prev"]) == (0, number, previous)
        previous = batch.digest


def test_metering_begins_with_the_next_whole_second(meter, outbox):
    """R-C4 (agent): a part window at the start carries the seconds that are left of it."""
    for step in range(12):
        meter.look(metered(), UP, at(1.3 + step / 2))
    assert seconds_of(outbox) == [3]
    assert bodies(outbox)[0]["starts_at"] == "2027-01-15T08:00:02Z"


def test_nothing_is_metered_before_the_workload_is_ready_or_paid(meter, outbox):
    for step in range(30):
        meter.look(metered(), DOWN, at(step / 2))
        meter.look(metered(until=None), UP, at(step / 2))
    assert bodies(outbox) == []


def test_downtime_is_an_explicit_zero(meter, outbox):
    """R-C4 (agent): a window without readiness is a zero, never a gap."""
    for step in range(10):
        meter.look(metered(), UP, at(step / 2))
    for step in range(10, 32):
        meter.look(metered(), DOWN, at(step / 2))
    assert seconds_of(outbox) == [4, 0, 0]
    assert [body["window_index"] - T0 // 5 for body in bodies(outbox)] == [0, 1, 2]


def test_what_no_two_looks_enclose_is_not_ready(meter, outbox):
    """A restart between two looks shows as another instance: that time does not count."""
    meter.look(metered(), UP, at(0))
    meter.look(metered(), UP, at(2))
    meter.look(metered(), OTHER_LIFE, at(4))
    meter.look(metered(), OTHER_LIFE, at(6))
    assert seconds_of(outbox) == [3]


def test_time_after_what_is_paid_does_not_count(meter, outbox):
    """R-C11 (agent): the meter stops where the money stops."""
    lease = metered(until=(T0 + 7) * SECOND_NS)
    for step in range(32):
        meter.look(lease, UP, at(step / 2))
    assert seconds_of(outbox) == [5, 2, 0]


def test_an_agent_killed_in_mid_window_loses_nothing_and_counts_nothing_twice(tmp_path):
    """R-C4 (agent): kill -9 of the agent in mid-window, then a restart: no loss, no double count."""
    path = tmp_path / "outbox.sqlite3"
    before = Outbox(path)
    meter = Meter(before, node=NODE, key=KEY)
    for step in range(7):
        meter.look(metered(), UP, at(step / 2))
    before._connection.execute("pragma wal_checkpoint(passive)")  # A kill flushes nothing more.
    after = Outbox(path)
    meter = Meter(after, node=NODE, key=KEY)
    for step in range(37, 60):  # Down for fifteen seconds; the workload lived on.
        meter.look(metered(), UP, at(step / 2))
    assert seconds_of(after) == [5, 5, 5, 5, 5]
    assert [batch.seq for batch in after.batches_of(LEASE)] == [0, 1, 2, 3, 4]
    after.close()
    before.close()


def test_a_workload_that_died_with_the_agent_is_paid_to_the_last_look(tmp_path):
    path = tmp_path / "outbox.sqlite3"
    before = Outbox(path)
    meter = Meter(before, node=NODE, key=KEY)
    for step in range(7):
        meter.look(metered(), UP, at(step / 2))
    before.close()
    after = Outbox(path)
    meter = Meter(after, node=NODE, key=KEY)
    for step in range(37, 52):
        meter.look(metered(), OTHER_LIFE, at(step / 2))
    assert seconds_of(after) == [3, 0, 0, 1, 5]
    after.close()


def test_a_reboot_ends_every_life(meter, outbox):
    meter.look(metered(), UP, at(0))
    meter.look(metered(), UP, at(3))
    meter.look(metered(), UP, at(6, boot="boot-2"))
    meter.look(metered(), UP, at(12, boot="boot-2"))
    assert seconds_of(outbox) == [3, 4]


def test_the_final_batch_closes_the_stream(meter, outbox):
    """R-C4 (agent): the last batch is marked final and ends with a whole second."""
    for step in range(14):
        meter.look(metered(), UP, at(step / 2))
    assert meter.finish(metered(), at(6.8))
    last = bodies(outbox)[-1]
    assert (last["final"], last["ready_seconds"]) == (True, 1)
    assert last["ends_at"] == "2027-01-15T08:00:06Z"
    assert not meter.finish(metered(), at(7))
    assert meter.look(metered(), UP, at(30)) == 0
    assert len(bodies(outbox)) == 2


def test_a_lease_that_never_became_ready_is_closed_with_a_zero(meter, outbox):
    meter.look(metered(), DOWN, at(1))
    assert meter.finish(metered(), at(2.4))
    (only,) = bodies(outbox)
    assert (only["final"], only["ready_seconds"], only["seq"]) == (True, 0, 0)


def test_a_final_batch_on_a_window_edge_stays_in_its_window(meter, outbox):
    for step in range(11):
        meter.look(metered(), UP, at(step / 2))
    meter.finish(metered(), at(5.0))
    last = bodies(outbox)[-1]
    assert last["window_index"] == T0 // 5 + 1
    assert (last["starts_at"], last["ends_at"]) == ("2027-01-15T08:00:05Z", "2027-01-15T08:00:06Z")
    assert last["ready_seconds"] == 0


def test_a_receipt_frees_the_batch_and_a_second_one_changes_nothing(meter, outbox):
    for step in range(12):
        meter.look(metered(), UP, at(step / 2))
    (batch,) = outbox.queued()
    meter.take_receipt(batch, receipt(batch))
    assert outbox.queued() == []
    meter.take_receipt(batch, receipt(batch))
    assert [stored.envelope for stored in outbox.batches_of(LEASE)] == [batch.envelope]


def test_a_receipt_for_another_batch_is_refused(meter, outbox):
    for step in range(12):
        meter.look(metered(), UP, at(step / 2))
    (batch,) = outbox.queued()
    with pytest.raises(ValueError, match="another batch"):
        meter.take_receipt(batch, receipt(batch, digest="00" * 32))
    assert len(outbox.queued()) == 1


def test_a_batch_that_keeps_its_place_although_refused_is_not_said_again(meter, outbox):
    for step in range(12):
        meter.look(metered(), UP, at(step / 2))
    (batch,) = outbox.queued()
    meter.take_receipt(batch, receipt(batch, state="refused", reason="before_ready"))
    assert outbox.queued() == []


def test_doubt_about_the_chain_opens_an_epoch_that_names_the_last_receipted(meter, outbox):
    """R-C4 (agent): doubt opens a new epoch that names the last receipted hash; no window is lost."""
    for step in range(42):
        meter.look(metered(), UP, at(step / 2))
    first, second, third, fourth = outbox.queued()
    meter.take_receipt(first, receipt(first))
    meter.take_receipt(
        second,
        receipt(
            second,
            state="refused",
            reason="chain_broken",
            in_place=False,
            next={"epoch": 0, "seq": 1, "head": first.digest, "state": "open"},
        ),
    )
    waiting = outbox.queued()
    assert [(b.epoch, b.seq, b.body["prev"]) for b in waiting] == [
        (1, 0, first.digest),
        (1, 1, waiting[0].digest),
        (1, 2, waiting[1].digest),
    ]
    said = [(b.body["window_index"], b.body["ready_seconds"]) for b in waiting]
    assert said == [
        (b.body["window_index"], b.body["ready_seconds"]) for b in (second, third, fourth)
    ]
    kept = {batch.digest: batch.envelope for batch in outbox.batches_of(LEASE)}
    assert kept[second.digest] == second.envelope  # What was signed stays as it was.


def test_a_refusal_that_a_new_epoch_cannot_mend_is_not_repeated_for_ever(meter, outbox):
    for step in range(12):
        meter.look(metered(), UP, at(step / 2))
    (batch,) = outbox.queued()
    meter.take_receipt(batch, receipt(batch, state="refused", reason="other_terms", in_place=False))
    assert outbox.queued() == []
    assert meter.is_settled(LEASE)


def test_endless_doubt_ends(meter, outbox):
    for step in range(12):
        meter.look(metered(), UP, at(step / 2))
    for _ in range(20):
        waiting = outbox.queued()
        if not waiting:
            break
        meter.take_receipt(
            waiting[0],
            receipt(waiting[0], state="refused", reason="chain_broken", in_place=False),
        )
    assert outbox.queued() == []


def test_a_clock_that_jumps_ahead_gives_no_time_and_opens_an_epoch(meter, outbox):
    """R-C4 (agent): a clock that jumps bills nothing that did not pass."""
    for step in range(12):
        meter.look(metered(), UP, at(step / 2))
    meter.look(metered(), UP, at(6, wall_shift=3600))
    for step in range(20):
        meter.look(metered(), UP, at(6 + step / 2, wall_shift=3600))
    stored = outbox.batches_of(LEASE)
    assert sum(batch.body["ready_seconds"] for batch in stored) <= 16
    assert {batch.epoch for batch in stored} == {0, 1}
    assert len(stored) > 700  # Every window of the hour is there, as a zero.


def test_a_clock_that_goes_back_meters_no_second_twice(meter, outbox):
    for step in range(24):
        meter.look(metered(), UP, at(step / 2))
    for step in range(24, 80):
        meter.look(metered(), UP, at(step / 2, wall_shift=-8))
    indices = [body["window_index"] for body in bodies(outbox)]
    assert indices == sorted(set(indices))
    assert sum(seconds_of(outbox)) <= 32


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.05, 9.0), st.sampled_from(["life-1", "life-2", ""])),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 12),
)
def test_no_second_is_metered_twice_and_none_that_did_not_pass(steps, window):
    outbox = Outbox(Path(tempfile.mkdtemp()) / "outbox.sqlite3")
    meter = Meter(outbox, node=NODE, key=KEY)
    lease, now, enclosed, last = metered(window=window), 0.0, 0.0, ""
    for wait, instance in steps:
        now += wait
        meter.look(lease, Look(instance, {}), at(now))
        if instance and instance == last:
            enclosed += wait
        last = instance
    meter.finish(lease, at(now + 0.01))
    told = bodies(outbox)
    spans = [(body["starts_at"], body["ends_at"]) for body in told]
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert sum(body["ready_seconds"] for body in told) <= enclosed + 0.02
    for body in told:
        start, end = (payloads.read_instant(body[name]) for name in ("starts_at", "ends_at"))
        assert 0 <= body["ready_seconds"] <= (end - start).total_seconds() <= window
        assert int(start.timestamp()) // window == body["window_index"]
    outbox.close()


def test_waiting_batches_survive_a_purge(meter, outbox):
    for step in range(60):
        meter.look(metered(), UP, at(step / 2))
    for batch in outbox.queued()[:3]:
        meter.take_receipt(batch, receipt(batch))
    outbox.purge(keep=0)
    assert [batch.seq for batch in outbox.batches_of(LEASE)] == [3, 4]
