"""Outputs about what was metered, seen, charged and disputed."""

from typing import Any

from rest_framework import serializers

from fabric.accounts.api import PageQuery
from leases.domain.states import DisputeState, Outcome, Side
from leases.models import Batch, Dispute, Reading, WitnessReading


class FieldVerdictOutput(serializers.Serializer[Any]):
    """One promised field beside what was seen."""

    field = serializers.CharField()
    promised = serializers.JSONField()
    observed = serializers.JSONField()
    unit = serializers.CharField()
    verdict = serializers.CharField()
    tolerance_bps = serializers.IntegerField()
    rule = serializers.CharField()


class CapOutput(serializers.Serializer[Any]):
    """A bound that lowered the meter's claim."""

    rule = serializers.CharField()
    seconds = serializers.IntegerField()


class ReadingOutput(serializers.Serializer[Any]):
    """A window as metered, as seen from outside, as compared and as charged."""

    id = serializers.CharField()
    lease = serializers.CharField()
    batch = serializers.CharField(allow_null=True)
    window_index = serializers.IntegerField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    claimed_seconds = serializers.IntegerField()
    witnessed_seconds = serializers.IntegerField(allow_null=True)
    ready_seconds = serializers.IntegerField()
    caps = CapOutput(many=True)
    rules_version = serializers.CharField()
    conformity = FieldVerdictOutput(many=True)
    usage_record = serializers.CharField(allow_null=True)
    amount_micros = serializers.CharField()
    line_state = serializers.CharField(allow_null=True)
    disputable_until = serializers.DateTimeField(allow_null=True)
    received_at = serializers.DateTimeField()


class BatchOutput(serializers.Serializer[Any]):
    """A signed batch as it was received."""

    id = serializers.CharField()
    epoch = serializers.IntegerField(allow_null=True)
    seq = serializers.IntegerField(allow_null=True)
    digest = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    size_bytes = serializers.IntegerField()
    received_at = serializers.DateTimeField()


class WitnessOutput(serializers.Serializer[Any]):
    """What somebody other than the meter saw."""

    kind = serializers.CharField()
    window_index = serializers.IntegerField()
    observed = serializers.JSONField()
    at = serializers.DateTimeField()


class LegOutput(serializers.Serializer[Any]):
    """One leg of a booked movement; the legs of a movement sum to zero."""

    account = serializers.CharField()
    amount_micros = serializers.CharField()


class LineOutput(serializers.Serializer[Any]):
    """One movement of the lease's money."""

    at = serializers.DateTimeField()
    kind = serializers.CharField()
    phase = serializers.CharField()
    state = serializers.CharField()
    amount_micros = serializers.CharField()
    usage_record = serializers.CharField(allow_null=True)
    legs = LegOutput(many=True)


class LinesOutput(serializers.Serializer[Any]):
    """All movements of a lease's money, oldest first."""

    lines = LineOutput(many=True)


class EventOutput(serializers.Serializer[Any]):
    """Something that happened to a lease."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    actor = serializers.CharField()
    details = serializers.JSONField()
    at = serializers.DateTimeField()


class DisputeQuery(PageQuery):
    """Filters of the list of disputes."""

    state = serializers.ChoiceField(choices=DisputeState.choices(), required=False)
    lease = serializers.CharField(max_length=40, required=False)


class DisputeInput(serializers.Serializer[Any]):
    """Which reading is wrong, and what was wrong."""

    reading = serializers.CharField(max_length=40)
    statement = serializers.CharField(max_length=4000)


class RulingInput(serializers.Serializer[Any]):
    """How much of the disputed line stands, and why."""

    stands_bps = serializers.IntegerField(min_value=0, max_value=10_000)
    ruling = serializers.CharField(max_length=4000)


class DisputeOutput(serializers.Serializer[Any]):
    """A dispute and what became of it."""

    id = serializers.CharField()
    lease = serializers.CharField()
    reading = serializers.CharField()
    opened_side = serializers.ChoiceField(choices=Side.choices())
    statement = serializers.CharField()
    state = serializers.ChoiceField(choices=DisputeState.choices())
    outcome = serializers.ChoiceField(choices=Outcome.choices(), allow_null=True)
    held_micros = serializers.CharField()
    stands_bps = serializers.IntegerField(allow_null=True)
    ruling = serializers.CharField(allow_blank=True)
    opened_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)


def show_reading(reading: Reading) -> dict[str, Any]:
    """Return a reading as `ReadingOutput`."""
    record = reading.usage_record
    return {
        "id": reading.public_id,
        "lease": reading.lease.public_id,
        "batch": reading.batch.public_id if reading.batch else None,
        "window_index": reading.window_index,
        "starts_at": reading.starts_at,
        "ends_at": reading.ends_at,
        "claimed_seconds": reading.claimed_seconds,
        "witnessed_seconds": reading.witnessed_seconds,
        "ready_seconds": reading.ready_seconds,
        "caps": reading.caps,
        "rules_version": reading.rules_version,
        "conformity": reading.conformity,
        "usage_record": record.public_id if record else None,
        "amount_micros": str(record.amount_micros if record else 0),
        "line_state": record.state if record else None,
        "disputable_until": record.disputable_until if record else None,
        "received_at": reading.received_at,
    }


def show_batch(batch: Batch) -> dict[str, Any]:
    """Return a batch as `BatchOutput`, without its bytes."""
    return {
        "id": batch.public_id,
        "epoch": batch.epoch,
        "seq": batch.seq,
        "digest": bytes(batch.digest).hex(),
        "state": batch.state,
        "reason": batch.reason,
        "size_bytes": batch.size_bytes,
        "received_at": batch.received_at,
    }


def show_witness(witness: WitnessReading) -> dict[str, Any]:
    """Return a witness reading as `WitnessOutput`."""
    return {
        "kind": witness.kind,
        "window_index": witness.window_index,
        "observed": witness.observed,
        "at": witness.at,
    }


def show_dispute(dispute: Dispute) -> dict[str, Any]:
    """Return a dispute as `DisputeOutput`; who opened it is named by side, never by person."""
    record = dispute.reading.usage_record
    return {
        "id": dispute.public_id,
        "lease": dispute.lease.public_id,
        "reading": dispute.reading.public_id,
        "opened_side": dispute.opened_side,
        "statement": dispute.statement,
        "state": dispute.state,
        "outcome": dispute.outcome,
        "held_micros": str(record.amount_micros if record else 0),
        "stands_bps": dispute.stands_bps,
        "ruling": dispute.ruling,
        "opened_at": dispute.opened_at,
        "closed_at": dispute.closed_at,
    }
