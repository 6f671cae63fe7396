"""Showing a lease's access token to its buyer: once, and never again."""

from datetime import datetime
from typing import ClassVar

from django.db import transaction

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.journal.services.audit import record_audit
from fabric.lib.errors import DomainError, NotAllowed, WrongState
from fabric.lib.secrets import access_token
from leases.access import side_of
from leases.domain.states import LeaseState, Side
from leases.models import Lease

USABLE = frozenset({LeaseState.PROVISIONING, LeaseState.ACTIVE, LeaseState.INTERRUPTED})


class TokenAlreadyShown(DomainError):
    """The token was shown before; who lost it orders anew."""

    code: ClassVar[str] = "TOKEN_ALREADY_SHOWN"


@transaction.atomic
def show_token(*, actor: Actor, lease: Lease, now: datetime) -> str:
    """Return the token that opens the lease's workload; the second call is refused.

    So whoever reads over a shoulder, a log or an old page later finds nothing.
    """
    if side_of(actor, lease) != Side.BUYER:
        raise NotAllowed("Only the buyer gets into the workload.")
    actor.require(Right.ORDER)
    if lease.state not in USABLE:
        raise WrongState("The lease is over; its token opens nothing.")
    if not Lease.objects.filter(pk=lease.pk, access_shown_at__isnull=True).update(
        access_shown_at=now
    ):
        raise TokenAlreadyShown(
            "This token was shown before and is not shown twice.",
            suggestion="Order anew if it is lost; end this lease to get back what is unused.",
        )
    record_audit(actor=actor.id, action="lease.token_was_shown", subject=lease.public_id, now=now)
    return access_token(lease.public_id)
