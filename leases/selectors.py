"""Reads of leases that span tables: what an order compares with, what a page shows."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Sum

from billing.domain.states import UsageState
from billing.models import Account, Transfer, UsageRecord
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


@dataclass(frozen=True)
class LeaseMoney:
    """Where a lease's money is; the parts add up to what was funded."""

    funded_micros: int
    settled_micros: int
    open_micros: int
    disputed_micros: int
    reserved_micros: int
    unused_micros: int
    returned_micros: int

    @property
    def contestable_micros(self) -> int:
        """What is metered and not settled: open to dispute, or held by one."""
        return self.open_micros + self.disputed_micros

    @property
    def free_micros(self) -> int:
        """What the escrow holds for no window, and what went back already."""
        return self.unused_micros + self.returned_micros

    @property
    def refund_micros(self) -> int:
        """What ending now returns at once: all that is not promised to a window."""
        return self.unused_micros


def money_of(lease: Lease) -> LeaseMoney:
    """Return where the money of a lease is, from the ledger's own counters. Four queries."""
    escrow = Account.objects.get(pk=lease.agreement.escrow_id)
    returned: int = (
        Transfer.objects.filter(debit_account=escrow, kind="return").aggregate(
            total=Sum("amount_micros")
        )["total"]
        or 0
    )
    unsettled = {
        row["state"]: row["total"]
        for row in UsageRecord.objects.filter(agreement=lease.agreement_id)
        .exclude(state=UsageState.SETTLED)
        .order_by()
        .values("state")
        .annotate(total=Sum("amount_micros"))
    }
    open_micros = unsettled.get(UsageState.PENDING, 0)
    disputed = unsettled.get(UsageState.DISPUTED, 0)
    return LeaseMoney(
        funded_micros=escrow.credits_posted,
        settled_micros=escrow.debits_posted - returned,
        open_micros=open_micros,
        disputed_micros=disputed,
        reserved_micros=escrow.debits_pending - open_micros - disputed,
        unused_micros=escrow.available_micros,
        returned_micros=returned,
    )


def last_line(lease: Lease) -> UsageRecord | None:
    """Return the newest metered line of a lease that charges something."""
    return (
        UsageRecord.objects.filter(agreement=lease.agreement_id, amount_micros__gt=0)
        .select_related("terms")
        .order_by("-window_index")
        .first()
    )
