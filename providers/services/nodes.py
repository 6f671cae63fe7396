"""The life of a node: its moves between states, and what has been shown about it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.journal.services.audit import record_audit
from fabric.journal.services.events import record_event
from fabric.lib.errors import NotVisible, WrongState
from providers.domain.challenges import ChallengeState, Verdict
from providers.domain.nodes import MOVES, NodeState
from providers.domain.reasons import Reason
from providers.models import (
    Challenge,
    DesiredItem,
    Device,
    HardwareReport,
    Hold,
    Node,
    NodeKey,
    NodeTransition,
    Provider,
    Unit,
)
from providers.services.capacity import lock_devices


@transaction.atomic
def move_node(
    *,
    node: Node,
    expected: NodeState,
    to: NodeState,
    actor: Actor,
    now: datetime,
    reason: str = "",
    evidence: str = "",
    changes: Mapping[str, Any] | None = None,
) -> Node:
    """Move `node` from the state the caller expects, with `changes` in the same update.

    A compare-and-set: WrongState where the node has meanwhile gone elsewhere, or where no such
    move exists. The devices are locked first, so that whoever is placing holds on them either
    finishes before the move or sees it.
    """
    if to not in MOVES[expected]:
        raise WrongState(f"A node that is {expected} does not become {to}.")
    lock_devices(Device.objects.filter(node=node).values_list("pk", flat=True))
    values = {"state": to, **(changes or {})}
    moved = Node.objects.filter(pk=node.pk, state=expected).update(**values)
    if not moved:
        raise WrongState(f"{node.name} is no longer {expected.replace('_', ' ')}.")
    for name, value in values.items():
        setattr(node, name, value)
    NodeTransition.objects.create(
        node=node,
        from_state=expected,
        to_state=to,
        actor=actor.id,
        reason=reason,
        evidence=evidence,
        at=now,
    )
    record_event(
        kind=f"node.{to}",
        subject=node.public_id,
        actor=actor.id,
        organisations=[node.provider.organisation.public_id],
        data={"from": expected.value, "reason": reason, "evidence": evidence},
        now=now,
    )
    return node


def hold_back(
    *,
    node: Node,
    reasons: Sequence[Reason],
    actor: Actor,
    evidence: str,
    now: datetime,
) -> Node:
    """Keep `node` from being placed on, with the reasons its provider sees; `evidence` is a record.

    A node that is held back already gets the new reasons.
    """
    stored = [reason.as_json() for reason in reasons]
    if node.state == NodeState.HELD_BACK:
        Node.objects.filter(pk=node.pk).update(held_back_reasons=stored)
        node.held_back_reasons = stored
        return node
    return move_node(
        node=node,
        expected=NodeState(node.state),
        to=NodeState.HELD_BACK,
        actor=actor,
        now=now,
        reason=", ".join(sorted({reason.code for reason in reasons})),
        evidence=evidence,
        changes={"held_back_reasons": stored},
    )


@transaction.atomic
def retire_node(*, actor: Actor, node: Node, now: datetime) -> Node:
    """Take a node out of service for good: its keys end, and its devices may enrol anew.

    Refused while anything is held on it: a lease ends first.
    """
    require_provider(actor=actor, provider=node.provider)
    lock_devices(Device.objects.filter(node=node).values_list("pk", flat=True))
    node.refresh_from_db()
    if node.state == NodeState.RETIRED:
        return node
    if Hold.objects.in_force(now=now).filter(device__node=node).exists():
        raise WrongState(
            f"{node.name} has a live hold.", suggestion="End its leases, then retire it."
        )
    move_node(
        node=node,
        expected=NodeState(node.state),
        to=NodeState.RETIRED,
        actor=actor,
        now=now,
        reason="retired by its provider",
        changes={"held_back_reasons": []},
    )
    Unit.objects.filter(device__node=node).update(active=False)
    Device.objects.filter(node=node).update(present=False)
    NodeKey.objects.filter(node=node, revoked_at__isnull=True).update(revoked_at=now)
    DesiredItem.objects.filter(node=node).delete()
    Challenge.objects.filter(node=node).open().update(state=ChallengeState.EXPIRED)
    record_audit(actor=actor.id, action="node.retire", subject=node.public_id, now=now)
    return node


@transaction.atomic
def revoke_keys(*, actor: Actor, node: Node, reason: str, now: datetime) -> int:
    """End every key of `node` at once, for one that was stolen; return how many ended."""
    require_provider(actor=actor, provider=node.provider)
    ended = NodeKey.objects.filter(node=node, revoked_at__isnull=True).update(revoked_at=now)
    record_audit(
        actor=actor.id, action="node.revoke_keys", subject=node.public_id, reason=reason, now=now
    )
    record_event(
        kind="node.keys_revoked",
        subject=node.public_id,
        actor=actor.id,
        organisations=[node.provider.organisation.public_id],
        data={"ended": ended, "reason": reason},
        now=now,
    )
    return ended


def mark_listed(*, node: Node, now: datetime) -> bool:
    """Write down when the node was first listed; return whether this was the first time."""
    marked = Node.objects.filter(pk=node.pk, listed_at__isnull=True).update(listed_at=now)
    if marked:
        node.listed_at = now
    return bool(marked)


def latest_evidence(node: Node) -> tuple[HardwareReport | None, Challenge | None]:
    """Return the newest report and the last challenge that was passed; costs two queries."""
    report = node.reports.order_by("-received_at", "-id").first()
    challenge = (
        node.challenges.filter(state=ChallengeState.JUDGED, verdict=Verdict.PASSED)
        .order_by("-judged_at", "-id")
        .first()
    )
    return report, challenge


def measured_facts(*, node: Node) -> dict[str, dict[str, Any]]:
    """Return what has been shown about `node`, field by field.

    Each value carries `unit`, `method`, `at` and `source` (the public id of its record). The
    judge's own figures come before what the node says about itself; class, count and kind of units
    are what the exchange recorded, whatever the report calls them.
    """
    report, challenge = latest_evidence(node)
    facts: dict[str, dict[str, Any]] = {}
    if report is not None:
        for field, fact in report.body.get("facts", {}).items():
            facts[field] = _fact(fact, at=report.received_at, source=report.public_id)
    if challenge is not None and challenge.judged_at is not None:
        for field, fact in challenge.figures.items():
            facts[field] = _fact(fact, at=challenge.judged_at, source=challenge.public_id)
    if report is not None:
        facts.update(_recorded_facts(node, report))
    return facts


def require_provider(*, actor: Actor, provider: Provider) -> None:
    """Raise unless `actor` may act for `provider`: NotVisible to strangers, else NotAllowed."""
    if actor.is_operator:
        return
    if actor.organisation_id != provider.organisation_id:
        raise NotVisible("There is no such provider.")
    actor.require(Right.PROVIDE)


def _fact(fact: Mapping[str, Any], *, at: datetime, source: str) -> dict[str, Any]:
    return {
        "value": fact.get("value"),
        "unit": fact.get("unit", ""),
        "method": fact.get("method", ""),
        "at": at.isoformat(),
        "source": source,
    }


def _recorded_facts(node: Node, report: HardwareReport) -> dict[str, dict[str, Any]]:
    units = list(Unit.objects.offered().filter(device__node=node))
    kinds = {unit.kind for unit in units}
    recorded = {
        "device_class": (node.hardware_class_id or "", "", "judged by its figures"),
        "unit_count": (len(units), "", "inventory"),
        "unit_kind": (kinds.pop() if len(kinds) == 1 else "mixed", "", "inventory"),
        "isolation": (node.isolation, "", "inventory"),
    }
    return {
        field: _fact(
            {"value": value, "unit": unit, "method": method},
            at=report.received_at,
            source=report.public_id,
        )
        for field, (value, unit, method) in recorded.items()
    }
