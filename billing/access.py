"""Finding one object about money for one reader; what a reader may not see does not exist."""

from typing import TypeVar

from django.db.models import QuerySet

from billing.models import Account, Agreement, Entry, TopUp, Transfer, UsageRecord
from fabric.accounts.domain.actors import Actor
from fabric.lib.errors import NotVisible
from fabric.lib.models import PublicModel

M = TypeVar("M", bound=PublicModel)


def access_top_up(*, actor: Actor, public_id: str) -> TopUp:
    """Return a top-up of the actor's organisation, or raise NotVisible."""
    return _one(TopUp.objects.visible_to(actor), public_id)


def access_agreement(*, actor: Actor, public_id: str) -> Agreement:
    """Return an agreement in which the actor's organisation is a party, or raise NotVisible."""
    return _one(Agreement.objects.visible_to(actor), public_id)


def access_usage_record(*, actor: Actor, public_id: str) -> UsageRecord:
    """Return a usage record of one of the actor's agreements, or raise NotVisible."""
    rows = UsageRecord.objects.visible_to(actor).select_related("agreement", "terms")
    return _one(rows, public_id)


def access_transfer(*, actor: Actor, transfer_id: int) -> Transfer:
    """Return a booked transfer with a leg on one of the actor's accounts, or raise NotVisible."""
    legs = Entry.objects.filter(
        transfer_id=transfer_id, account__in=Account.objects.visible_to(actor)
    )
    transfer = (
        Transfer.objects.filter(pk=transfer_id).select_related("record").first()
        if legs.exists()
        else None
    )
    if transfer is None:
        raise NotVisible("There is no such ledger line.")
    return transfer


def _one(rows: "QuerySet[M]", public_id: str) -> M:
    try:
        found = rows.filter(pk=rows.model.key_from(public_id)).first()
    except ValueError:
        found = None
    if found is None:
        raise NotVisible(f"There is no {rows.model._meta.verbose_name} {public_id}.")
    return found
