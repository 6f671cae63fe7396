"""How a lease comes to its end: stop, last batch, units freed, last line settled, money back."""

from datetime import datetime, timedelta

from billing.domain.states import AgreementState
from billing.services import agreements
from fabric.accounts.domain.actors import EXCHANGE, Actor
from fabric.journal.services import parameters
from leases.domain.states import EndReason, LeaseState, StreamState
from leases.domain.windows import ceil_second
from leases.models import Lease, Stream
from leases.services import desired, reserving
from leases.services.readings import record_unmetered
from leases.services.reserving import Rules
from leases.services.transitions import move_lease, tell
from leases.services.workloads import node_is_gone
from providers.services import capacity
from providers.services.observations import record_observation


def begin_ending(
    *,
    lease: Lease,
    rules: Rules,
    reason: EndReason,
    stop_at: datetime,
    actor: Actor,
    now: datetime,
) -> None:
    """Stop the lease at `stop_at`: nothing later is billed, and what is unreserved goes back now.

    The unit stays held until the node has sent its last batch, or is given up.
    """
    move_lease(
        lease=lease,
        to=LeaseState.ENDING,
        actor=actor,
        now=now,
        reason=reason,
        stop_requested_at=stop_at,
        end_reason=reason,
        interrupted_at=None,
        due_at=now,
        probe_due_at=None,
    )
    if lease.ready_at is None:
        reserving.void_all_windows(lease=lease, now=now)
    else:
        reserving.void_windows_from(lease=lease, at=ceil_second(stop_at), now=now)
    agreements.close_if_done(agreement=lease.agreement, now=now)
    if lease.ready_at is None:
        _stop(lease=lease, rules=rules, now=now)
    else:
        desired.tell_node(lease=lease, terms=rules.terms, now=now, stop=True)


def continue_ending(*, lease: Lease, rules: Rules, now: datetime) -> None:
    """Free the units once the last batch is in or given up; close once the last line settled."""
    if lease.stopped_at is None:
        if not (_last_batch_is_in(lease) or _give_up(lease=lease, rules=rules, now=now)):
            return
        _stop(lease=lease, rules=rules, now=now)
    lease.agreement.refresh_from_db()
    if lease.agreement.state != AgreementState.CLOSED and not agreements.close_if_done(
        agreement=lease.agreement, now=now
    ):
        return
    move_lease(
        lease=lease,
        to=LeaseState.ENDED,
        actor=EXCHANGE,
        now=now,
        reason=lease.end_reason,
        ended_at=now,
        due_at=None,
    )


def fail_lease(*, lease: Lease, reason: EndReason, detail: str, now: datetime) -> None:
    """Give up a lease that never became ready: all money back, all units free, nothing billed."""
    move_lease(
        lease=lease,
        to=LeaseState.FAILED,
        actor=EXCHANGE,
        now=now,
        reason=detail or reason,
        end_reason=reason,
        ended_at=now,
        stopped_at=now,
        due_at=None,
        probe_due_at=None,
    )
    reserving.void_all_windows(lease=lease, now=now)
    agreements.close_if_done(agreement=lease.agreement, now=now)
    capacity.release_holds(holder=lease.public_id, now=now)
    desired.forget(lease=lease, now=now)
    record_observation(
        node=lease.node,
        kind="lease_failed",
        value=0.0,
        evidence=lease.public_id,
        counterparty=lease.organisation.public_id,
        now=now,
    )


def _stop(*, lease: Lease, rules: Rules, now: datetime) -> None:
    """Write zeros for windows nobody metered, free the units, and forget the workload."""
    if lease.ready_at is not None:
        record_unmetered(lease=lease, terms=rules.terms, before_index=None, now=now)
    capacity.release_holds(holder=lease.public_id, now=now)
    desired.forget(lease=lease, now=now)
    Lease.objects.filter(pk=lease.pk).update(stopped_at=now)
    lease.stopped_at = now
    tell(lease=lease, kind="lease.freed_its_units", actor=EXCHANGE, now=now)


def _last_batch_is_in(lease: Lease) -> bool:
    return Stream.objects.filter(lease=lease, state=StreamState.FINAL).exists()


def _give_up(*, lease: Lease, rules: Rules, now: datetime) -> bool:
    """Return whether to stop waiting: a node gone, or silent long after, sends no last batch."""
    if lease.stop_requested_at is None:
        raise RuntimeError(f"{lease.public_id} is ending without a stop")
    waited = now - max(lease.stop_requested_at, lease.ready_at or lease.created_at)
    limits = parameters.get_operational(now=now)
    patience = timedelta(seconds=2 * rules.terms.window_seconds + limits.dead_after_seconds)
    return waited > patience or (
        waited > timedelta(seconds=limits.dead_after_seconds) and node_is_gone(lease)
    )
