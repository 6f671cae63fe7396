"""The life of a lease between its order and its end, one compare-and-set at a time.

The row is the queue: the sweep takes leases that are due, each in a transaction of its own, and
skips what another sweep has locked. Killed anywhere, it leaves a lease before or after a step.
"""

import uuid
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Max

from billing.domain.amounts import check_amount
from billing.services import escrow
from fabric.accounts.domain.actors import EXCHANGE, Actor
from fabric.accounts.domain.roles import Right
from fabric.journal.services import parameters
from fabric.lib.errors import NotAllowed, WrongState
from leases.access import side_of
from leases.domain.states import LIVE, EndReason, LeaseState, Side, StreamState
from leases.models import Lease, Stream, WitnessReading
from leases.services import reserving
from leases.services.budgets import require_budget
from leases.services.endings import begin_ending, continue_ending, fail_lease
from leases.services.reserving import Rules, rules_of
from leases.services.transitions import lock_lease, move_lease, tell
from leases.services.workloads import (
    last_beat_at,
    node_is_gone,
    node_is_proven,
    read_workload,
)
from providers.selectors import listening_since
from providers.services.capacity import UnitAlreadyHeld
from providers.services.observations import record_observation

log = structlog.get_logger(__name__)


def sweep(*, now: datetime, limit: int = 200) -> int:
    """Advance every lease that is due; return how many were looked at.

    A lease that cannot be advanced is logged and left due: it must not keep the others waiting.
    """
    keys = list(Lease.objects.due(now=now).values_list("pk", flat=True)[:limit])
    advanced = 0
    for key in keys:
        try:
            advanced += advance_lease(key=key, now=now)
        except Exception:
            log.exception("lease_not_advanced", lease=Lease(pk=key).public_id)
    return advanced


@transaction.atomic
def advance_lease(*, key: uuid.UUID, now: datetime) -> bool:
    """Take one due lease its next step; return False if another sweep has it or it is not due."""
    lease = lock_lease(key=key, skip_locked=True)
    if lease is None or lease.due_at is None or lease.due_at > now:
        return False
    rules = rules_of(lease)
    step = {
        LeaseState.PROVISIONING: _advance_provisioning,
        LeaseState.ACTIVE: _advance_active,
        LeaseState.INTERRUPTED: _advance_interrupted,
        LeaseState.ENDING: _advance_ending,
    }[LeaseState(lease.state)]
    step(lease, rules, now)
    if lease.state in LIVE:
        Lease.objects.filter(pk=lease.pk).update(due_at=now + _pause(lease, rules))
    return True


@transaction.atomic
def confirm_ready(*, lease: Lease, access: dict[str, object], now: datetime) -> bool:
    """Start charging, or charging again: the workload was reached from outside.

    Returns False where the lease has moved on meanwhile.
    """
    fresh = lock_lease(key=lease.pk)
    if fresh is None or fresh.state not in {LeaseState.PROVISIONING, LeaseState.INTERRUPTED}:
        return False
    if now >= fresh.ends_at:
        return False
    first_time = fresh.state == LeaseState.PROVISIONING
    if node_is_gone(fresh) or not (first_time or node_is_proven(fresh)):
        return False
    if _stream_state(fresh) != StreamState.OPEN:
        return False
    not_running_since = fresh.interrupted_at or fresh.created_at
    move_lease(
        lease=fresh,
        to=LeaseState.ACTIVE,
        actor=EXCHANGE,
        now=now,
        reason="reached from outside" if first_time else "reached again from outside",
        access=access,
        interrupted_at=None,
        due_at=now,
        **({"ready_at": now} if first_time else {}),
    )
    reserving.void_past_windows(lease=fresh, since=not_running_since, now=now)
    if first_time:
        record_observation(
            node=fresh.node,
            kind="seconds_to_ready",
            value=(now - fresh.created_at).total_seconds(),
            evidence=fresh.public_id,
            counterparty=fresh.organisation.public_id,
            now=now,
        )
    return True


@transaction.atomic
def end_lease(*, actor: Actor, lease: Lease, now: datetime) -> Lease:
    """End a lease for its buyer or an operator; ending it again returns it as it is."""
    fresh = lock_lease(key=lease.pk)
    if fresh is None:
        raise WrongState("The lease is gone.")
    side = side_of(actor, fresh)
    if side != Side.BUYER:
        if not actor.is_operator:
            raise NotAllowed("Only the buyer ends a lease.")
        reason = EndReason.OPERATOR_ENDED
    else:
        actor.require(Right.ORDER)
        reason = EndReason.BUYER_ENDED
    if fresh.state in {LeaseState.ENDING, LeaseState.ENDED}:
        return fresh
    if fresh.state == LeaseState.FAILED:
        raise WrongState("The lease failed to start; nothing was charged and all money is back.")
    stop_at = fresh.interrupted_at or now
    begin_ending(
        lease=fresh, rules=rules_of(fresh), reason=reason, stop_at=stop_at, actor=actor, now=now
    )
    return fresh


@transaction.atomic
def top_up_lease(
    *, actor: Actor, lease: Lease, amount_micros: int, key: str, now: datetime
) -> Lease:
    """Move more money from the buyer's wallet into the lease's escrow; once per key."""
    check_amount(amount_micros)
    fresh = lock_lease(key=lease.pk)
    if fresh is None or side_of(actor, fresh) != Side.BUYER:
        raise NotAllowed("Only the buyer tops up a lease.")
    actor.require(Right.ORDER)
    if fresh.state not in LIVE - {LeaseState.ENDING}:
        raise WrongState("A lease that is ending takes no more money.")
    require_budget(project=fresh.project, amount_micros=amount_micros)
    before = fresh.agreement.escrow.credits_posted
    escrow.fund(
        agreement=fresh.agreement,
        amount_micros=amount_micros,
        key=f"top-up:{fresh.public_id}:{key}",
        now=now,
    )
    fresh.agreement.escrow.refresh_from_db()
    if fresh.agreement.escrow.credits_posted == before:
        return fresh
    fresh.funded_micros += amount_micros
    fresh.low_funds_at, fresh.due_at = None, now
    fresh.save(update_fields=["funded_micros", "low_funds_at", "due_at"])
    tell(
        lease=fresh,
        kind="lease.was_topped_up",
        actor=actor,
        now=now,
        data={"amount_micros": str(amount_micros)},
    )
    return fresh


def _advance_provisioning(lease: Lease, rules: Rules, now: datetime) -> None:
    reserving.lock_units(lease)
    workload = read_workload(lease)
    limit = timedelta(seconds=rules.commercial.provision_timeout_seconds)
    if workload is not None and workload.failed:
        fail_lease(lease=lease, reason=EndReason.NODE_FAILED, detail=workload.detail[:200], now=now)
    elif now >= min(lease.created_at + limit, lease.ends_at):
        fail_lease(lease=lease, reason=EndReason.NOT_READY_IN_TIME, detail="", now=now)
    elif node_is_gone(lease):
        fail_lease(
            lease=lease, reason=EndReason.NODE_FAILED, detail="the node went silent", now=now
        )
    else:
        reserving.void_past_windows(lease=lease, since=lease.created_at, now=now)
        try:
            reserving.reserve_ahead(lease=lease, rules=rules, now=now)
        except UnitAlreadyHeld:
            fail_lease(lease=lease, reason=EndReason.HOLD_LAPSED, detail="", now=now)


def _advance_active(lease: Lease, rules: Rules, now: datetime) -> None:
    if node_is_gone(lease):
        _interrupt(lease, "the node went silent", _last_seen(lease, now), now)
        return
    stream = _stream_state(lease)
    if stream == StreamState.HELD:
        _interrupt(lease, "the meter contradicted itself", now, now)
        return
    if stream == StreamState.FINAL:
        _end(lease, rules, EndReason.NODE_FAILED, _metered_until(lease, now), now)
        return
    if _meter_is_silent(lease, rules, now):
        _interrupt(lease, "the meter went silent", _last_seen(lease, now), now)
        return
    if now >= lease.ends_at:
        _end(lease, rules, EndReason.TERM_REACHED, lease.ends_at, now)
        return
    try:
        reserving.reserve_ahead(lease=lease, rules=rules, now=now)
    except UnitAlreadyHeld:
        # Our hold had run out unnoticed and somebody else has the unit: nothing ran since.
        _end(lease, rules, EndReason.HOLD_LAPSED, lease.paid_until or now, now)
        return
    if lease.paid_until is None or now >= lease.paid_until:
        _end(lease, rules, EndReason.FUNDS_EXHAUSTED, lease.paid_until or now, now)
        return
    reserving.warn_if_low(lease=lease, rules=rules, now=now)


def _advance_interrupted(lease: Lease, rules: Rules, now: datetime) -> None:
    """Keep windows reserved for a node that is back, so that it may start again; wait a while."""
    reserving.lock_units(lease)
    since = lease.interrupted_at or now
    limit = timedelta(seconds=rules.commercial.provision_timeout_seconds)
    if now >= min(since + limit, lease.ends_at):
        _end(lease, rules, EndReason.NODE_FAILED, since, now)
        return
    reserving.void_past_windows(lease=lease, since=since, now=now)
    if not node_is_gone(lease):
        try:
            reserving.reserve_ahead(lease=lease, rules=rules, now=now)
        except UnitAlreadyHeld:
            _end(lease, rules, EndReason.HOLD_LAPSED, since, now)


def _advance_ending(lease: Lease, rules: Rules, now: datetime) -> None:
    continue_ending(lease=lease, rules=rules, now=now)


def _end(lease: Lease, rules: Rules, reason: EndReason, stop_at: datetime, now: datetime) -> None:
    begin_ending(lease=lease, rules=rules, reason=reason, stop_at=stop_at, actor=EXCHANGE, now=now)


def _interrupt(lease: Lease, reason: str, since: datetime, now: datetime) -> None:
    """Bill nothing after the last second anybody saw it; the buyer keeps the money meanwhile."""
    move_lease(
        lease=lease,
        to=LeaseState.INTERRUPTED,
        actor=EXCHANGE,
        now=now,
        reason=reason,
        interrupted_at=since,
        due_at=now,
    )
    reserving.void_windows_from(lease=lease, at=since, now=now)
    record_observation(
        node=lease.node,
        kind="lease_interrupted",
        value=(now - since).total_seconds(),
        evidence=lease.public_id,
        counterparty=lease.organisation.public_id,
        now=now,
    )


def _stream_state(lease: Lease) -> StreamState:
    state = Stream.objects.filter(lease=lease).values_list("state", flat=True).first()
    return StreamState.OPEN if state is None else StreamState(state)


def _metered_until(lease: Lease, now: datetime) -> datetime:
    """Return where the last reading ends: a node that closed its stream runs nothing after it."""
    last = lease.readings.order_by("-window_index").values_list("ends_at", flat=True).first()
    return now if last is None else min(last, now)


def _meter_is_silent(lease: Lease, rules: Rules, now: datetime) -> bool:
    """No reading for two windows and the limit of silence since it runs: nobody meters."""
    limits = parameters.get_operational(now=now)
    patience = timedelta(seconds=limits.dead_after_seconds + 2 * rules.terms.window_seconds)
    heard = lease.readings.aggregate(at=Max("received_at"))["at"]
    began = lease.transitions.aggregate(at=Max("at"))["at"]
    moments = (heard, began, lease.created_at, listening_since())
    return now - max(at for at in moments if at is not None) > patience


def _last_seen(lease: Lease, now: datetime) -> datetime:
    """Return the last instant at which the node beat or its workload was reached."""
    looked = (
        WitnessReading.objects.filter(lease=lease, observed__reachable=True)
        .order_by("-at")
        .values_list("at", flat=True)
        .first()
    )
    seen = [at for at in (last_beat_at(lease), looked, lease.ready_at) if at is not None]
    return min(max(seen, default=now), now)


def _pause(lease: Lease, rules: Rules) -> timedelta:
    """Return how long a lease may wait for its next look: a fraction of a window."""
    window = rules.terms.window_seconds
    if lease.state == LeaseState.ENDING and lease.stopped_at is not None:
        return timedelta(seconds=min(300, max(1, rules.terms.dispute_window_seconds // 20)))
    return timedelta(seconds=min(30, max(1, window // 5)))
