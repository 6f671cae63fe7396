"""Fencing nodes that fell silent, and letting them prove themselves when they are back."""

from datetime import datetime, timedelta
from uuid import UUID

from django.core.cache import cache
from django.db import models, transaction

from fabric.accounts.domain.actors import EXCHANGE
from fabric.journal.domain.parameters import OperationalParameters
from fabric.journal.services.parameters import get_operational
from providers.domain.challenges import ChallengePurpose
from providers.domain.nodes import NodeState
from providers.models import NodeBeat
from providers.selectors import LISTENING_SINCE, listening_since
from providers.services.capacity import lock_node
from providers.services.challenges import expire_open_challenges, issue_challenge
from providers.services.nodes import move_node
from providers.services.observations import record_observation

_SWEPT_AT = "liveness:swept-at"
_REMEMBER_SECONDS = 7 * 86_400


def sweep_liveness(*, now: datetime, limit: int = 500) -> tuple[int, int]:
    """Fence the nodes that are dead and challenge the fenced ones that beat again.

    Returns how many of each. Safe beside itself: each node is taken with SKIP LOCKED and moved by
    a compare-and-set. Silence counts only while the exchange listened, so that our own outage
    fences nobody.
    """
    rules = get_operational(now=now)
    since = _listening_since(rules, now)
    return _fence_dead(rules, since, now, limit), _challenge_returned(rules, now, limit)


def _listening_since(rules: OperationalParameters, now: datetime) -> datetime:
    """Return since when we have been listening without a pause worth a suspicion."""
    swept_at: datetime | None = cache.get(_SWEPT_AT)
    since = listening_since()
    paused = swept_at is None or now - swept_at > timedelta(seconds=rules.suspect_after_seconds)
    if since is None or paused:
        since = now
        cache.set(LISTENING_SINCE, since, _REMEMBER_SECONDS)
    cache.set(_SWEPT_AT, now, _REMEMBER_SECONDS)
    return since


def _fence_dead(rules: OperationalParameters, since: datetime, now: datetime, limit: int) -> int:
    deadline = now - timedelta(seconds=rules.dead_after_seconds)
    if since >= deadline:
        return 0
    silent = NodeBeat.objects.filter(
        last_beat_at__lt=deadline, node__state__in=[NodeState.ADMITTED, NodeState.PROVING]
    ).order_by("last_beat_at")
    return sum(_fence(node_id, deadline, now) for node_id in _keys(silent, limit))


@transaction.atomic
def _fence(node_id: UUID, deadline: datetime, now: datetime) -> bool:
    node = lock_node(node_id, skip_locked=True)
    if node is None or node.state not in {NodeState.ADMITTED, NodeState.PROVING}:
        return False
    beat = NodeBeat.objects.get(node=node)
    if beat.last_beat_at >= deadline:
        return False
    silence = (now - beat.last_beat_at).total_seconds()
    expire_open_challenges(node=node, now=now)
    move_node(
        node=node,
        expected=NodeState(node.state),
        to=NodeState.FENCED,
        actor=EXCHANGE,
        now=now,
        reason=f"silent for {silence:.0f} s",
    )
    record_observation(node=node, kind="fenced", value=silence, evidence=node.public_id, now=now)
    return True


def _challenge_returned(rules: OperationalParameters, now: datetime, limit: int) -> int:
    alive_since = now - timedelta(seconds=rules.suspect_after_seconds)
    returned = NodeBeat.objects.filter(
        last_beat_at__gte=alive_since, node__state=NodeState.FENCED
    ).order_by("last_beat_at")
    return sum(_challenge(node_id, now) for node_id in _keys(returned, limit))


@transaction.atomic
def _challenge(node_id: UUID, now: datetime) -> bool:
    node = lock_node(node_id, skip_locked=True)
    if node is None or node.state != NodeState.FENCED:
        return False
    report = node.reports.first()
    if report is None:
        return False
    issue_challenge(
        node=node, report=report, purpose=ChallengePurpose.RECHECK, actor=EXCHANGE, now=now
    )
    return True


def _keys(beats: models.QuerySet[NodeBeat], limit: int) -> list[UUID]:
    return list(beats.values_list("node_id", flat=True)[:limit])
