"""Inputs and outputs of this app's endpoints."""

from typing import Any

from rest_framework import serializers

from fabric.accounts.api import MicrosField, PageQuery
from leases.domain.states import EndReason, LeaseState, Side
from leases.models import Lease, Order
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
