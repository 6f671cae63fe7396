"""Page-shaped reads of nodes and what was shown about them."""

from datetime import datetime
from typing import Any

from fabric.journal.services.parameters import get_operational
from providers.models import Challenge, Node


def beat_seconds(*, now: datetime) -> int:
    """Return how often agents beat under the rules in force."""
    return get_operational(now=now).beat_seconds


def standing_of(*, node: Node) -> dict[str, Any]:
    """Return what a node is told about itself; costs two queries."""
    node = Node.objects.get(pk=node.pk)
    checks = node.challenges.all()[:10]
    return {
        "node_id": node.public_id,
        "name": node.name,
        "state": node.state,
        "tier": node.tier,
        "hardware_class": node.hardware_class_id or "",
        "simulated": node.simulated,
        "isolation": node.isolation,
        "held_back_reasons": node.held_back_reasons,
        "checks": [show_check(challenge) for challenge in checks],
    }


def show_check(challenge: Challenge) -> dict[str, Any]:
    """Return one challenge as programs see it."""
    return {
        "challenge": challenge.public_id,
        "purpose": challenge.purpose,
        "state": challenge.state,
        "verdict": challenge.verdict,
        "figures": challenge.figures,
        "reasons": challenge.reasons,
        "issued_at": challenge.issued_at.isoformat(),
        "judged_at": challenge.judged_at.isoformat() if challenge.judged_at else None,
    }
