"""Moving a lease from one state to the next, and writing down that it moved."""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fabric.accounts.domain.actors import Actor
from fabric.journal.services.events import record_event
from fabric.lib.errors import WrongState
from leases.domain.states import LeaseState, can_move
from leases.models import Lease, LeaseTransition


def lock_lease(*, key: uuid.UUID, skip_locked: bool = False) -> Lease | None:
    """Lock a lease's row and return it with its parties; the first lock of every change to it."""
    return (
        Lease.objects.with_parties()
        .select_for_update(no_key=True, of=("self",), skip_locked=skip_locked)
        .filter(pk=key)
        .first()
    )


def move_lease(
    *,
    lease: Lease,
    to: LeaseState,
    actor: Actor,
    now: datetime,
    reason: str = "",
    **changes: Any,
) -> Lease:
    """Move `lease` and set `changes` with it, in one UPDATE that names the state it expects.

    Raises WrongState where the move is not allowed or somebody moved the lease first.
    """
    before = LeaseState(lease.state)
    if not can_move(before, to):
        raise WrongState(f"A lease that is {before} does not become {to}.")
    if not Lease.objects.filter(pk=lease.pk, state=before).update(state=to, **changes):
        raise WrongState("The lease has just moved on; look again.")
    lease.state = to
    for name, value in changes.items():
        setattr(lease, name, value)
    LeaseTransition.objects.create(
        lease=lease, from_state=before, to_state=to, actor=actor.id, reason=reason, at=now
    )
    tell(
        lease=lease,
        kind=f"lease.{_PAST_TENSE[to]}",
        actor=actor,
        now=now,
        data={"from": before, "reason": reason},
    )
    return lease


def tell(
    *,
    lease: Lease,
    kind: str,
    actor: Actor,
    now: datetime,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Write an event about `lease` that its buyer and its provider may read."""
    record_event(
        kind=kind,
        subject=lease.public_id,
        actor=actor.id,
        now=now,
        organisations=(lease.organisation.public_id, lease.provider.organisation.public_id),
        data=data,
    )


_PAST_TENSE = {
    LeaseState.PROVISIONING: "ordered",
    LeaseState.ACTIVE: "became_ready",
    LeaseState.ENDING: "began_ending",
    LeaseState.ENDED: "ended",
    LeaseState.INTERRUPTED: "was_interrupted",
    LeaseState.FAILED: "failed",
}
