"""Inputs and outputs of this app's endpoints."""

from typing import Any

from rest_framework import serializers

from fabric.accounts.api import MicrosField, PageQuery
from leases.domain.states import DisputeState, EndReason, LeaseState, Outcome, Side
from leases.models import Batch, Dispute, Lease, Order, Reading, WitnessReading
from leases.selectors import LeaseMoney


class OrderInput(serializers.Serializer[Any]):
    """What is ordered, for how much at most, and on which consents."""

    listing = serializers.CharField(max_length=40)
    project = serializers.CharField(
        max_length=40, required=False, help_text="Left out: the key's own project."
    )
    unit_count = serializers.IntegerField(min_value=1, max_value=1024, default=1)
    budget_micros = MicrosField(help_text="Moved from the balance to the lease's escrow.")
    price_cap_micros_per_hour = MicrosField(
        help_text="The most you accept per accelerator-hour; a price above it is refused."
    )
    max_seconds = serializers.IntegerField(
        min_value=1, max_value=366 * 24 * 3600, help_text="The term: it ends then at the latest."
    )
    accepts_interruption = serializers.BooleanField(default=False)
    accepts_unisolated = serializers.BooleanField(default=False)


class OrderOutput(serializers.Serializer[Any]):
    """An order and the lease that came of it."""

    id = serializers.CharField()
    lease = serializers.CharField()
    listing = serializers.CharField()
    revision = serializers.CharField()
    project = serializers.CharField()
    unit_count = serializers.IntegerField()
    budget_micros = serializers.CharField()
    price_cap_micros_per_hour = serializers.CharField()
    max_seconds = serializers.IntegerField()
    accepts_interruption = serializers.BooleanField()
    accepts_unisolated = serializers.BooleanField()
    placed_by = serializers.CharField()
    placed_at = serializers.DateTimeField()


class LeaseQuery(PageQuery):
    """Filters of the list of leases."""

    state = serializers.ChoiceField(choices=LeaseState.choices(), required=False)
    side = serializers.ChoiceField(
        choices=[("buyer", "bought"), ("provider", "provided")], required=False
    )


class RevisionReference(serializers.Serializer[Any]):
    """The exact text of the promise."""

    id = serializers.CharField()
    number = serializers.IntegerField()
    digest = serializers.CharField()


class AddressOutput(serializers.Serializer[Any]):
    """Where the workload was reached from outside."""

    interface = serializers.CharField()
    host = serializers.CharField()
    port = serializers.IntegerField()


class LeaseOutput(serializers.Serializer[Any]):
    """A lease as its party sees it; a provider is not told who buys."""

    id = serializers.CharField()
    state = serializers.ChoiceField(choices=LeaseState.choices())
    is_charging = serializers.BooleanField()
    side = serializers.ChoiceField(choices=Side.choices(), allow_null=True)
    order = serializers.CharField(allow_null=True)
    project = serializers.CharField(allow_null=True)
    agreement = serializers.CharField()
    listing = serializers.CharField()
    revision = RevisionReference()
    provider = serializers.CharField()
    node = serializers.CharField()
    unit_count = serializers.IntegerField()
    isolation = serializers.CharField()
    simulated = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True)
    paid_until = serializers.DateTimeField(allow_null=True)
    interrupted_at = serializers.DateTimeField(allow_null=True)
    ends_at = serializers.DateTimeField()
    stop_requested_at = serializers.DateTimeField(allow_null=True)
    stopped_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    end_reason = serializers.ChoiceField(choices=EndReason.choices(), allow_null=True)


class MoneyOutput(serializers.Serializer[Any]):
    """Where the lease's money is; the parts add up to `funded_micros`."""

    funded_micros = serializers.CharField()
    settled_micros = serializers.CharField()
    open_micros = serializers.CharField()
    disputed_micros = serializers.CharField()
    reserved_micros = serializers.CharField()
    unused_micros = serializers.CharField()
    returned_micros = serializers.CharField()


class UnitOutput(serializers.Serializer[Any]):
    """One exact unit of a lease."""

    id = serializers.CharField()
    device = serializers.CharField()
    kind = serializers.CharField()
    memory_mib = serializers.IntegerField()


class LeaseDetailOutput(LeaseOutput):
    """A lease with its units, its address and its money."""

    units = UnitOutput(many=True)
    access = AddressOutput(allow_null=True)
    money = MoneyOutput()
    terms_digest = serializers.CharField()
    price_micros = serializers.CharField()
    per_quantity = serializers.IntegerField()


class TokenOutput(serializers.Serializer[Any]):
    """The access token, shown this once."""

    access_token = serializers.CharField()
    address = AddressOutput(allow_null=True)


class TopUpInput(serializers.Serializer[Any]):
    """How much more money a lease gets."""

    amount_micros = MicrosField()


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


def show_order(order: Order) -> dict[str, Any]:
    """Return an order as `OrderOutput`."""
    return {
        "id": order.public_id,
        "lease": order.lease.public_id,
        "listing": order.listing.public_id,
        "revision": order.revision.public_id,
        "project": order.project.public_id,
        "unit_count": order.unit_count,
        "budget_micros": str(order.budget_micros),
        "price_cap_micros_per_hour": str(order.price_cap_micros_per_hour),
        "max_seconds": order.max_seconds,
        "accepts_interruption": order.accepts_interruption,
        "accepts_unisolated": order.accepts_unisolated,
        "placed_by": order.placed_by,
        "placed_at": order.placed_at,
    }


def show_lease(lease: Lease, side: Side | None) -> dict[str, Any]:
    """Return a lease as `LeaseOutput` for one of its sides."""
    buys = side is not Side.PROVIDER
    return {
        "id": lease.public_id,
        "state": lease.state,
        "is_charging": lease.is_charging,
        "side": side,
        "order": lease.order.public_id if buys else None,
        "project": lease.project.public_id if buys else None,
        "agreement": lease.agreement.public_id,
        "listing": lease.revision.listing.public_id,
        "revision": {
            "id": lease.revision.public_id,
            "number": lease.revision.number,
            "digest": bytes(lease.revision.digest).hex(),
        },
        "provider": lease.provider.name,
        "node": lease.node.public_id,
        "unit_count": lease.order.unit_count,
        "isolation": lease.isolation,
        "simulated": lease.node.simulated,
        "created_at": lease.created_at,
        "ready_at": lease.ready_at,
        "paid_until": lease.paid_until,
        "interrupted_at": lease.interrupted_at,
        "ends_at": lease.ends_at,
        "stop_requested_at": lease.stop_requested_at,
        "stopped_at": lease.stopped_at,
        "ended_at": lease.ended_at,
        "end_reason": lease.end_reason or None,
    }


def show_lease_detail(lease: Lease, side: Side | None, money: LeaseMoney) -> dict[str, Any]:
    """Return a lease as `LeaseDetailOutput`; costs two queries."""
    terms = lease.agreement.terms.latest("version")
    return {
        **show_lease(lease, side),
        "units": [
            {
                "id": row.unit.public_id,
                "device": row.unit.device.public_id,
                "kind": row.unit.kind,
                "memory_mib": row.unit.memory_mib,
            }
            for row in lease.lease_units.select_related("unit__device").order_by("id")
        ],
        "access": lease.access or None,
        "money": {name: str(value) for name, value in vars(money).items()},
        "terms_digest": bytes(terms.digest).hex(),
        "price_micros": str(terms.price_micros),
        "per_quantity": terms.per_quantity,
    }


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
