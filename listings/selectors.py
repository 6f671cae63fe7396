"""Page-shaped and shared reads of listings."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery

from listings.domain.states import ListingState
from listings.models import Listing, Revision, RevisionCheck
from providers.domain.challenges import ChallengeState, Verdict
from providers.domain.nodes import NodeState
from providers.models import Challenge, HardwareReport, Hold, Unit


def promise_of(revision: Revision) -> dict[str, Any]:
    """Return what a revision promises: field → value, in the units its kind's table names."""
    promise: dict[str, Any] = revision.body["promise"]
    return promise


def check_of(revision: Revision | None) -> RevisionCheck | None:
    """Return the newest check of a revision; costs a query."""
    return revision.checks.first() if revision is not None else None


def free_unit_counts(listings: Sequence[Listing], *, now: datetime) -> dict[UUID, int]:
    """Return how many units of each listing's node nobody holds at `now`, in one query."""
    held = Hold.objects.in_force(now=now).filter(
        device=OuterRef("device"), slots__overlap=OuterRef("slots")
    )
    free = (
        Unit.objects.offered()
        .filter(~Exists(held), device__node__in=[listing.node_id for listing in listings])
        .values_list("device__node")
        .annotate(count=Count("pk"))
        .order_by()
    )
    by_node = dict(free)
    return {listing.pk: by_node.get(listing.node_id, 0) for listing in listings}


def revisions_due(*, limit: int) -> list[UUID]:
    """Return the newest revisions that can be checked now, longest waiting first."""
    proving = [NodeState.ENROLLED, NodeState.PROVING]
    waiting = Listing.objects.waiting_for_check().exclude(node__state__in=proving)
    newest = Revision.objects.filter(listing__in=waiting.values("pk")[:limit])
    newest = newest.order_by("listing_id", "-number").distinct("listing_id")
    return list(newest.values_list("pk", flat=True))


def listings_overtaken() -> QuerySet[Listing]:
    """Return the listings, on sale or refused, whose node has shown something since their check."""
    checked_at = Subquery(
        RevisionCheck.objects.filter(revision__listing=OuterRef(OuterRef("pk")))
        .order_by("-checked_at")
        .values("checked_at")[:1]
    )
    reports = HardwareReport.objects.filter(node=OuterRef("node"), received_at__gt=checked_at)
    passed = Challenge.objects.filter(
        node=OuterRef("node"),
        state=ChallengeState.JUDGED,
        verdict=Verdict.PASSED,
        judged_at__gt=checked_at,
    )
    states = [ListingState.PUBLISHED, ListingState.REFUSED]
    shown = Listing.objects.filter(state__in=states, node__state=NodeState.ADMITTED)
    return shown.filter(Exists(reports) | Exists(passed)).order_by("pk")
