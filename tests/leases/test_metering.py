"""Signed batches: accepted, parked, refused; kept and receipted in every case."""

import base64
import hashlib
import json
from typing import Any

import pytest

from billing.models import UsageRecord
from fabric.journal.models import Event
from fabric.lib.errors import NotVisible
from fabric.lib.signing import server_key
from fabric_protocol import canonical, dsse, keys, payloads
from leases.domain.states import BatchState, DisputeState, LeaseState, StreamState, WitnessKind
from leases.models import Batch, Dispute, Lease, Reading, Stream, WitnessReading
from leases.services import lifecycle
from leases.services.receipts import DOMAIN
from providers.models import NodeKey, Observation
from tests.leases.scene import ACCESS, Scene, books_balance, second
from tests.listings.bodies import BODY
from tests.listings.machines import admitted_node


def kept(scene: Scene, lease: Lease, reason: str) -> Batch:
    """Return the one refused batch, which left no reading, no charge and no move of the chain."""
    batch = Batch.objects.get(stream__lease=lease, state=BatchState.REFUSED)
    assert batch.reason == reason
    assert not Reading.objects.filter(batch=batch).exists()
    assert Event.objects.filter(kind="batch.was_refused", subject=lease.public_id).exists()
    return batch


def test_a_window_becomes_a_reading_a_line_and_a_signed_receipt(scene: Scene) -> None:
    """R-C4 (agent): one batch, one reading, one usage record, one receipt."""
    lease = scene.running()
    meter = scene.meter(lease)
    envelope = meter.next(scene.now)
    receipt = scene.deliver(lease, envelope, second(scene.now, 5))

    assert receipt.created
    assert receipt.body["state"] == "accepted"
    assert receipt.body["digest"] == meter.prev
    assert receipt.body["next"] == {"epoch": 0, "seq": 1, "head": meter.prev, "state": "open"}
    signed = {k: v for k, v in receipt.body.items() if k not in {"signature", "next"}}
    keys.verify(
        server_key().public_bytes,
        DOMAIN + canonical.dumps(signed),
        base64.b64decode(receipt.body["signature"]),
    )
    reading = Reading.objects.get(lease=lease)
    assert (reading.claimed_seconds, reading.ready_seconds, reading.caps) == (5, 5, [])
    assert bytes(Batch.objects.get(readings=reading).envelope) == envelope
    record = reading.usage_record
    assert record is not None
    assert (record.counter_start, record.counter_end, record.amount_micros) == (0, 5, 69)
    assert record.evidence == meter.prev
    assert record.meter_party == scene.world.northwind.public_id
    assert record.disputable_until == second(scene.now, 15)


def test_every_promised_field_is_compared_and_an_unread_one_is_said_so(scene: Scene) -> None:
    """R-C5 (agent): at least twelve fields for a host CPU; no reading is never a match."""
    lease = scene.running()
    seen = {**BODY["promise"], "disk_read_mb_s": 100, "cpu_cores": 4}
    del seen["memory_bandwidth_gb_s"]
    seen["compute_gops"] = None
    scene.deliver(lease, scene.meter(lease).next(scene.now, observed=seen), second(scene.now, 5))
    reading = Reading.objects.get(lease=lease)
    verdicts = {row["field"]: row["verdict"] for row in reading.conformity}
    assert set(verdicts) == set(BODY["promise"])
    assert len(verdicts) >= 12
    assert verdicts["device_class"] == "match"
    assert verdicts["disk_read_mb_s"] == "short"
    assert verdicts["cpu_cores"] == "better"
    assert verdicts["compute_gops"] == "not_measured"
    assert verdicts["memory_bandwidth_gb_s"] == "not_measured"
    assert reading.rules_version == "1"
    assert not Dispute.objects.exists()


def test_another_device_class_is_visible_and_contested_by_itself(scene: Scene) -> None:
    """R-C5 (agent): promised one class, delivered another: the line waits for a ruling."""
    lease = scene.running()
    seen = {**BODY["promise"], "device_class": "nvidia-h100-80gb-sxm"}
    scene.deliver(lease, scene.meter(lease).next(scene.now, observed=seen), second(scene.now, 5))
    dispute = Dispute.objects.get(lease=lease)
    assert dispute.opened_side == "exchange"
    assert dispute.state == DisputeState.OPEN
    assert "device_class" in dispute.statement
    assert UsageRecord.objects.get().state == "disputed"


def test_the_same_batch_again_returns_its_receipt(scene: Scene) -> None:
    """R-C4 (agent): a lost answer costs nothing; nothing is counted twice."""
    lease = scene.running()
    envelope = scene.meter(lease).next(scene.now)
    first = scene.deliver(lease, envelope, second(scene.now, 5))
    again = scene.deliver(lease, envelope, second(scene.now, 9))
    assert not again.created
    assert again.body == first.body
    assert Batch.objects.count() == Reading.objects.count() == UsageRecord.objects.count() == 1


def test_other_bytes_under_the_same_number_hold_the_stream(scene: Scene) -> None:
    """R-C4 (agent): two truths under one number: both kept, the stream held, the lease stopped."""
    lease = scene.running()
    meter = scene.meter(lease)
    first = meter.body(scene.now)
    scene.deliver(lease, meter.seal(first), second(scene.now, 5))
    changed = meter.seal({**first, "ready_seconds": 4})

    receipt = scene.deliver(lease, changed, second(scene.now, 6))

    assert (receipt.body["state"], receipt.body["reason"]) == (
        "refused",
        "other_batch_with_this_number",
    )
    assert receipt.body["next"]["state"] == "held"
    assert Stream.objects.get(lease=lease).state == StreamState.HELD
    assert sorted(bytes(row.envelope) for row in Batch.objects.all()) == sorted(
        [meter.seal(first), changed]
    )
    assert UsageRecord.objects.get().amount_micros == 69
    assert Observation.objects.filter(node=scene.node, kind="equivocation").count() == 1
    scene.sweep(second(scene.now, 7))
    assert scene.again(lease).state == LeaseState.INTERRUPTED
    assert not lifecycle.confirm_ready(lease=lease, access=ACCESS, now=second(scene.now, 8))
    meter.seq, meter.prev = 1, hashlib.sha256(canonical.dumps(first)).hexdigest()
    later = scene.deliver(lease, meter.next(second(scene.now, 5)), second(scene.now, 10))
    assert later.body["reason"] == "stream_held"


def test_a_flood_of_refused_batches_leaves_a_bounded_trace(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-C4 (agent): the first of two truths is told once and kept; a flood of them is not."""
    monkeypatch.setattr("leases.services.metering.MAX_KEPT_REFUSALS", 3)
    monkeypatch.setattr("leases.domain.streams.MAX_PARKED", 2)
    lease = scene.running()
    meter = scene.meter(lease)
    first = meter.body(scene.now)
    scene.deliver(lease, meter.seal(first), second(scene.now, 5))
    for seq in range(1, 10):
        told = meter.seal(meter.body(second(scene.now, 5), seq=seq, epoch=seq, prev="ab" * 32))
        waits = scene.deliver(lease, told, second(scene.now, 6)).body
        assert (waits["state"], waits["reason"]) == (
            ("parked", "") if seq <= 2 else ("refused", "too_many_waiting")
        )
    for number in range(10):
        changed = meter.seal({**first, "observed": {"memory_mib": number}})
        refused = scene.deliver(lease, changed, second(scene.now, 7)).body
        assert refused["reason"] == "other_batch_with_this_number"
    assert Batch.objects.filter(state="parked").count() == 2
    assert Batch.objects.filter(reason="other_batch_with_this_number").count() == 1
    assert Batch.objects.filter(state="refused").count() == 4
    assert Observation.objects.filter(kind="equivocation").count() == 1
    assert Event.objects.filter(kind="stream.was_held").count() == 1


def test_reordered_batches_are_parked_shown_and_drained(scene: Scene) -> None:
    """R-C4 (agent): the third before the second waits for it, and both are billed once."""
    lease = scene.running()
    meter = scene.meter(lease)
    batches = [meter.next(second(scene.now, 5 * number)) for number in range(4)]
    scene.sweep(second(scene.now, 6))
    scene.sweep(second(scene.now, 11))
    scene.deliver(lease, batches[0], second(scene.now, 5))
    parked = scene.deliver(lease, batches[2], second(scene.now, 15))
    last = scene.deliver(lease, batches[3], second(scene.now, 20))
    assert parked.body["state"] == last.body["state"] == "parked"
    assert parked.body["next"]["seq"] == 1
    assert Reading.objects.count() == 1
    scene.deliver(lease, batches[1], second(scene.now, 21))
    assert list(Batch.objects.values_list("state", flat=True)) == ["accepted"] * 4
    assert [reading.ready_seconds for reading in Reading.objects.all()] == [5, 5, 5, 5]
    amounts = UsageRecord.objects.order_by("window_index").values_list("amount_micros", flat=True)
    assert sum(amounts) == 20 * 50_000 // 3600
    again = scene.deliver(lease, batches[2], second(scene.now, 22))
    assert again.body["state"] == "accepted"
    assert books_balance()


def test_a_parked_impostor_is_refused_when_its_turn_comes(scene: Scene) -> None:
    """R-C4 (agent): parking is not believing; the chain is checked when the gap closes."""
    lease = scene.running()
    meter = scene.meter(lease)
    stray = meter.seal(meter.body(second(scene.now, 5), seq=1, prev="ab" * 32))
    assert scene.deliver(lease, stray, second(scene.now, 10)).body["state"] == "parked"
    scene.deliver(lease, meter.next(scene.now), second(scene.now, 11))
    again = scene.deliver(lease, stray, second(scene.now, 12))
    assert (again.body["state"], again.body["reason"]) == ("refused", "chain_broken")
    sound = scene.deliver(lease, meter.next(second(scene.now, 5)), second(scene.now, 12))
    assert sound.body["state"] == "accepted"


def test_an_agent_that_lost_its_place_opens_a_new_epoch(scene: Scene) -> None:
    """R-C4 (agent): after kill -9 it goes on from a receipted batch; a skipped window is a zero."""
    lease = scene.running()
    meter = scene.meter(lease)
    scene.deliver(lease, meter.next(scene.now), second(scene.now, 5))
    scene.sweep(second(scene.now, 6))
    meter.epoch, meter.seq = 1, 0
    receipt = scene.deliver(lease, meter.next(second(scene.now, 10)), second(scene.now, 15))
    assert receipt.body["state"] == "accepted"
    billed = [(reading.batch is None, reading.ready_seconds) for reading in Reading.objects.all()]
    assert billed == [(False, 5), (True, 0), (False, 5)]
    zero = Reading.objects.get(batch=None)
    assert {row["verdict"] for row in zero.conformity} == {"not_measured"}
    assert zero.usage_record is not None
    assert zero.usage_record.amount_micros == 0
    late = scene.meter(lease)
    late.epoch, late.seq, late.prev = 1, 1, meter.prev
    skipped = scene.deliver(lease, late.next(second(scene.now, 5)), second(scene.now, 16))
    assert skipped.body["reason"] == "overlaps_a_reading"
    assert books_balance()


def test_a_batch_from_another_nodes_key_is_refused_and_kept(scene: Scene) -> None:
    """R-C4 (agent): a lease is metered by its own node and nobody else."""
    lease = scene.running()
    other = admitted_node(scene.world, now=scene.now, name="reykjavik-2")
    foreign = keys.SigningKey.from_seed(bytes(32))
    NodeKey.objects.create(
        node=other, key_id=foreign.key_id, public_key=foreign.public_bytes, active_from=scene.now
    )
    meter = scene.meter(lease)
    meter.key = foreign
    receipt = scene.deliver(lease, meter.next(scene.now), second(scene.now, 5))
    assert receipt.body["reason"] == "key_of_another_node"
    kept(scene, lease, "key_of_another_node")


def test_a_node_delivers_for_its_own_leases_only(scene: Scene) -> None:
    """R-C4 (agent): another node's lease does not exist for this one."""
    from leases.services import metering

    lease = scene.running()
    other = admitted_node(scene.world, now=scene.now, name="reykjavik-2")
    for lease_id in (lease.public_id, "lse_nonsense", scene.listing.public_id):
        with pytest.raises(NotVisible):
            metering.receive_batch(
                node=other, lease_id=lease_id, envelope=b"{}", now=second(scene.now, 5)
            )
    assert not Batch.objects.exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"lease": "lse_other"}, "other_lease"),
        ({"agreement": "agr_other"}, "other_agreement"),
        ({"node": "nod_other"}, "other_node"),
        ({"terms_digest": "00" * 32}, "other_terms"),
        ({"ready_seconds": -1}, "implausible_ready_seconds"),
        ({"ready_seconds": 2**32 - 1}, "implausible_ready_seconds"),
        ({"observed": {"memory_mib": 2**32 - 1}}, "implausible_observed"),
        ({"prev": "ab" * 32}, "chain_broken"),
        ({"epoch": 1, "prev": "ab" * 32}, "unknown_predecessor"),
        ({"seq": 5000}, "too_far_ahead"),
    ],
)
def test_a_batch_that_says_what_cannot_be_is_refused_and_kept(
    scene: Scene, changes: dict[str, Any], reason: str
) -> None:
    """R-C4 (agent): tampered, foreign and implausible batches are kept with the reason."""
    lease = scene.running()
    meter = scene.meter(lease)
    receipt = scene.deliver(
        lease, meter.seal(meter.body(scene.now, **changes)), second(scene.now, 5)
    )
    assert (receipt.body["state"], receipt.body["in_place"]) == ("refused", False)
    kept(scene, lease, reason)
    sound = scene.deliver(lease, meter.next(scene.now), second(scene.now, 6))
    assert sound.body["state"] == "accepted", "the stream goes on as if nothing had come"


def envelope_with(scene: Scene, lease: Lease, payload: bytes) -> bytes:
    return dsse.seal(payloads.METER_BATCH, payload, scene.key)


def bad_envelopes(scene: Scene, lease: Lease) -> dict[str, bytes]:
    meter = scene.meter(lease)
    good = meter.seal(meter.body(scene.now))
    text = canonical.dumps(meter.body(scene.now))
    other_type = dsse.seal(payloads.REPORT, text, scene.key)
    parsed = json.loads(good)
    cut = json.dumps({**parsed, "payload": parsed["payload"][:-3]}).encode()
    forged = base64.b64encode(text.replace(b'"ready_seconds":5', b'"ready_seconds":9')).decode()
    doubled = text.replace(b'"seq":0', b'"seq":0,"seq":1')
    not_a_number = text.replace(b'"samples":5', b'"samples":NaN')
    return {
        "not_json": b"\x00\x01\x02",
        "too_large": b"x" * (100 * 1024 * 1024),
        "wrong_type": other_type,
        "malformed": cut,
        "bad_signature": json.dumps({**parsed, "payload": forged}).encode(),
        "duplicate_key": envelope_with(scene, lease, doubled),
        "not_a_number": envelope_with(scene, lease, not_a_number),
        "not_an_object": envelope_with(scene, lease, b"[]"),
        "too_deep": envelope_with(scene, lease, b'{"a":' + b"[" * 40 + b"]" * 40 + b"}"),
    }


@pytest.mark.parametrize(
    "reason",
    [
        "not_json",
        "too_large",
        "wrong_type",
        "malformed",
        "bad_signature",
        "duplicate_key",
        "not_a_number",
        "not_an_object",
        "too_deep",
    ],
)
def test_an_envelope_that_cannot_be_read_is_refused_and_kept(scene: Scene, reason: str) -> None:
    """R-C4 (agent): whatever arrives is answered and kept; nothing crashes and nothing is billed."""
    lease = scene.running()
    envelope = bad_envelopes(scene, lease)[reason]
    receipt = scene.deliver(lease, envelope, second(scene.now, 5))
    assert (receipt.body["state"], receipt.body["reason"]) == ("refused", reason)
    batch = kept(scene, lease, reason)
    assert batch.size_bytes == len(envelope)
    assert envelope.startswith(bytes(batch.envelope))
    assert len(bytes(batch.envelope)) in {len(envelope), 1024}
    again = scene.deliver(lease, envelope, second(scene.now, 6))
    assert not again.created
    assert Batch.objects.count() == 1


def test_a_revoked_key_signs_nothing_more(scene: Scene) -> None:
    """R-C4 (agent): what a revoked key signs is evidence, never a bill."""
    lease = scene.running()
    NodeKey.objects.filter(node=scene.node).update(revoked_at=scene.now)
    receipt = scene.deliver(lease, scene.meter(lease).next(scene.now), second(scene.now, 5))
    assert receipt.body["reason"] == "revoked_key"


def test_a_sound_link_that_cannot_be_billed_keeps_its_place(scene: Scene) -> None:
    """R-C4 (agent): a batch from before readiness is refused, and the chain goes on behind it."""
    lease = scene.order().lease
    meter = scene.meter(lease)
    early = scene.deliver(lease, meter.next(scene.now), second(scene.now, 5))
    assert (early.body["reason"], early.body["in_place"]) == ("before_ready", True)
    assert lifecycle.confirm_ready(lease=lease, access=ACCESS, now=second(scene.now, 7))
    first = scene.deliver(lease, meter.next(second(scene.now, 5)), second(scene.now, 10))
    assert first.body["state"] == "accepted"
    reading = Reading.objects.get()
    assert reading.caps == [{"rule": "ready_at", "seconds": 3}]
    assert reading.ready_seconds == 3


def test_the_bill_uses_the_lower_of_two_readings_and_shows_both(scene: Scene) -> None:
    """R-C6 (agent): the exchange's own look stands beside the provider's word."""
    lease = scene.running()
    index = int(scene.now.timestamp()) // 5
    for offset, reachable in ((0.5, True), (2, False), (3.5, True)):
        WitnessReading.objects.create(
            lease=lease,
            kind=WitnessKind.CONTROL_PLANE,
            window_index=index,
            observed={"reachable": reachable},
            at=second(scene.now, offset),
        )
    scene.deliver(lease, scene.meter(lease).next(scene.now), second(scene.now, 5))
    reading = Reading.objects.get()
    assert (reading.claimed_seconds, reading.witnessed_seconds, reading.ready_seconds) == (5, 3, 3)
    assert reading.caps == [{"rule": "witness", "seconds": 3}]


def test_nothing_after_the_stop_is_billed(scene: Scene) -> None:
    """R-C11 (agent): the last window is cut where the buyer stopped; a later one is refused."""
    lease = scene.running()
    meter = scene.meter(lease)
    scene.end(lease, second(scene.now, 3))
    cut = scene.deliver(lease, meter.next(scene.now), second(scene.now, 5))
    assert cut.body["state"] == "accepted"
    assert Reading.objects.get().ready_seconds == 3
    later = scene.deliver(lease, meter.next(second(scene.now, 5)), second(scene.now, 10))
    assert later.body["reason"] == "after_the_end"
    assert sum(UsageRecord.objects.values_list("amount_micros", flat=True)) == 41


def test_a_window_that_was_not_reserved_is_evidence_never_a_bill(scene: Scene) -> None:
    """R-C11 (agent): no money, no window, whatever the meter claims."""
    lease = scene.running(budget_micros=100)
    scene.sweep(second(scene.now, 1))
    meter = scene.meter(lease)
    scene.deliver(lease, meter.next(scene.now), second(scene.now, 5))
    scene.deliver(lease, meter.next(second(scene.now, 5)), second(scene.now, 10))
    scene.deliver(lease, meter.next(second(scene.now, 10)), second(scene.now, 15))
    assert [
        (reading.claimed_seconds, reading.ready_seconds) for reading in Reading.objects.all()
    ] == [(5, 5), (5, 2), (5, 0)]
    assert sum(UsageRecord.objects.values_list("amount_micros", flat=True)) == 97
    assert books_balance()


def test_a_second_stream_with_two_truths_holds_the_node_back(scene: Scene) -> None:
    """R-C4 (agent): once may be a broken disk; twice, nothing more is placed on the node."""
    for place in range(2):
        at = second(scene.now, 100 * place)
        scene.beat(at)
        lease = scene.running(now=at, key=f"order-{place}")
        meter = scene.meter(lease)
        body = meter.body(at)
        scene.deliver(lease, meter.seal(body), second(at, 5))
        scene.node.refresh_from_db()
        assert scene.node.state == "admitted"
        scene.deliver(lease, meter.seal({**body, "samples": 4}), second(at, 6))
        scene.end(lease, second(at, 7))
        for later in (20, 60, 90):
            scene.sweep(second(at, later))
    scene.node.refresh_from_db()
    assert scene.node.state == "held_back"
    assert scene.node.held_back_reasons[0]["code"] == "METER_EQUIVOCATES"
