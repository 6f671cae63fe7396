"""Finding one object for one actor; what an actor may not see does not exist for it."""

from typing import TypeVar

from django.db import models

from fabric.accounts.domain.actors import Actor
from fabric.lib.errors import NotVisible
from fabric.lib.models import PublicModel
from leases.domain.states import Side
from leases.models import Batch, Dispute, Lease, Order, Reading

Row = TypeVar("Row", bound=PublicModel)


def access_order(*, actor: Actor, public_id: str) -> Order:
    """Return the order with this public id, or raise NotVisible."""
    rows = Order.objects.visible_to(actor).select_related("listing", "revision", "project")
    return _one(rows, Order, public_id)


def access_lease(*, actor: Actor, public_id: str) -> Lease:
    """Return the lease with this public id, or raise NotVisible."""
    rows = Lease.objects.visible_to(actor).with_parties()
    return _one(rows, Lease, public_id)


def access_reading(*, actor: Actor, public_id: str) -> Reading:
    """Return the reading with this public id, or raise NotVisible."""
    rows = Reading.objects.visible_to(actor).select_related(
        "lease__provider", "lease__agreement", "usage_record", "batch"
    )
    return _one(rows, Reading, public_id)


def access_batch(*, actor: Actor, public_id: str) -> Batch:
    """Return the batch with this public id, or raise NotVisible."""
    return _one(Batch.objects.visible_to(actor), Batch, public_id)


def access_dispute(*, actor: Actor, public_id: str) -> Dispute:
    """Return the dispute with this public id, or raise NotVisible."""
    rows = Dispute.objects.visible_to(actor).select_related(
        "lease__provider", "reading__usage_record", "reading__batch"
    )
    return _one(rows, Dispute, public_id)


def side_of(actor: Actor, lease: Lease) -> Side | None:
    """Return which side of a lease the actor stands on, or None for an operator looking on."""
    if actor.organisation_id is None:
        return None
    if actor.organisation_id == lease.organisation_id:
        return Side.BUYER if actor.project_id in {None, lease.project_id} else None
    return Side.PROVIDER if actor.organisation_id == lease.provider.organisation_id else None


def _one(rows: models.QuerySet[Row], model: type[Row], public_id: str) -> Row:
    try:
        row = rows.filter(pk=model.key_from(public_id)).first()
    except ValueError:
        row = None
    if row is None:
        raise NotVisible(f"There is no {model._meta.verbose_name} {public_id}.")
    return row
