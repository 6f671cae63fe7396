"""Page-shaped reads of nodes and what was shown about them."""

from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models.functions import Lower

from fabric.journal.domain.parameters import OperationalParameters
from fabric.journal.services.parameters import get_operational
from providers.domain.challenges import ChallengeState, Verdict
from providers.domain.liveness import Liveness, read_liveness
from providers.domain.path import Step, walk_path
from providers.models import Challenge, Enrolment, Hold, Node, NodeBeat

LISTENING_SINCE = "liveness:listening-since"
METERED_KINDS = ("seconds_to_ready",)  # Written when a lease is ready: from then on it is metered.


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


def path_of(*, node: Node) -> list[Step]:
    """Return how far a node has come, with the time each step took; costs five queries.

    Register is when its token was made, install when the agent says it was installed, verify when
    the first report came, benchmark when the first challenge was passed, schedule when a unit was
    first taken, meter when a lease on it was first ready, monitor the last beat since then.
    """
    enrolment = Enrolment.objects.filter(node=node).select_related("token").first()
    report = node.reports.order_by("received_at").first()
    passed = (
        node.challenges.filter(verdict=Verdict.PASSED).order_by("judged_at").first()
        or node.challenges.filter(state=ChallengeState.JUDGED).order_by("-judged_at").first()
    )
    first_held_at = (
        Hold.objects.filter(device__node=node, kind=Hold.Kind.LEASE)
        .order_by(Lower("period"))
        .values_list(Lower("period"), flat=True)
        .first()
    )
    metered = node.observations.filter(kind__in=METERED_KINDS).order_by("at").first()
    beat = NodeBeat.objects.filter(node=node).first()
    return walk_path(
        [
            enrolment.token.created_at if enrolment else node.enrolled_at,
            node.installed_at or node.enrolled_at,
            report.received_at if report else None,
            passed.judged_at if passed else None,
            node.admitted_at,
            first_held_at,
            metered.at if metered else None,
            beat.last_beat_at if beat and metered else None,
        ]
    )


def liveness_now(
    *, node: Node, now: datetime, rules: OperationalParameters | None = None
) -> Liveness:
    """Return how a node's silence is read at `now`.

    Costs a query unless its beat is loaded, and another for the rules in force unless given.
    """
    rules = rules or get_operational(now=now)
    beat = beat_of(node)
    return read_liveness(
        beat.last_beat_at if beat else None,
        now=now,
        suspect_after_seconds=rules.suspect_after_seconds,
        dead_after_seconds=rules.dead_after_seconds,
        listening_since=listening_since(),
    )


def listening_since() -> datetime | None:
    """Return since when we have been listening, as the last sweep found; None if none ran.

    A silence that includes our own outage says nothing about anybody.
    """
    since: datetime | None = cache.get(LISTENING_SINCE)
    return since


def beat_of(node: Node) -> NodeBeat | None:
    """Return a node's last beat, or None before the first."""
    return getattr(node, "beat", None)
