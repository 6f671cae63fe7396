"""Reads of leases that span tables: what an order compares with, what a page shows."""

from datetime import datetime
from typing import Any

from django.db.models import Sum

from fabric.accounts.models import Project
from leases.models import Lease
from listings.domain.states import ListingState
from listings.models import Listing
from providers.domain.nodes import NodeState
from providers.services import capacity

ALTERNATIVES = 3
LOOKED_AT = 12


def committed_micros(project: Project) -> int:
    """Return what the project's open leases hold and spend."""
    total: int | None = (
        Lease.objects.live().filter(project=project).aggregate(total=Sum("funded_micros"))["total"]
    )
    return total or 0


def nearest_listings(listing: Listing, *, unit_count: int, now: datetime) -> list[Listing]:
    """Return up to three other listings of the same class with enough free units, cheapest first.

    Looks at a dozen at most: an answer to a refused order must not become a search.
    """
    others = (
        Listing.objects.filter(
            state=ListingState.PUBLISHED,
            class_slug=listing.class_slug,
            unit_count__gte=unit_count,
            node__state=NodeState.ADMITTED,
        )
        .exclude(pk=listing.pk)
        .select_related("node", "provider")
        .order_by("price_micros_per_hour", "id")[:LOOKED_AT]
    )
    found: list[Listing] = []
    for other in others:
        if len(capacity.list_free_units(node=other.node, now=now)) >= unit_count:
            found.append(other)
        if len(found) == ALTERNATIVES:
            break
    return found


def alternative(listing: Listing) -> dict[str, Any]:
    """Return an alternative as a refusal names it."""
    return {
        "listing": listing.public_id,
        "title": listing.title,
        "provider": listing.provider.name,
        "region": listing.region,
        "price_micros_per_hour": str(listing.price_micros_per_hour),
    }
