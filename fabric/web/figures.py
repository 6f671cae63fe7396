"""Figures of the whole network for the front page, each with the words that define it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.cache import cache
from django.db.models import BigIntegerField, Count, F, Q, Sum
from django.db.models.functions import Cast

from billing.domain.states import UsageState
from billing.models import Account, UsageRecord
from leases.domain.states import CHARGING
from leases.models import Lease, Reading
from listings.domain.states import ListingState
from listings.models import Listing
from providers.domain.nodes import NodeState
from providers.models import Node

_KEY, _FRESH_SECONDS = "network-figures", 5
_DAY = timedelta(hours=24)


@dataclass(frozen=True)
class Figure:
    """One number, how it is shown, and the question to the database that it answers."""

    label: str
    value: int
    kind: str  # count, money, or share of `base`
    definition: str
    base: int | None = None


@dataclass(frozen=True)
class Figures:
    """The figures and the instant they were read."""

    as_of: datetime
    rows: list[Figure]
    simulated_nodes: int


def read_network_figures(*, now: datetime) -> Figures:
    """Return the figures, at most five seconds old; simulated nodes are left out of all of them."""
    kept: Figures | None = cache.get(_KEY)
    if kept is not None:
        return kept
    figures = _ask(now)
    cache.set(_KEY, figures, _FRESH_SECONDS)
    return figures


def _ask(now: datetime) -> Figures:
    nodes = Node.objects.aggregate(
        admitted=Count("pk", filter=Q(simulated=False, state=NodeState.ADMITTED)),
        simulated=Count("pk", filter=Q(simulated=True)),
    )
    listings = Listing.objects.filter(simulated=False, state=ListingState.PUBLISHED)
    leases = Lease.objects.filter(node__simulated=False)
    off_promise = Q(conformity__contains=[{"verdict": "short"}]) | Q(
        conformity__contains=[{"verdict": "different"}]
    )
    readings = Reading.objects.filter(
        lease__node__simulated=False, starts_at__gte=now - _DAY
    ).aggregate(all=Count("pk"), off=Count("pk", filter=off_promise))
    settled = UsageRecord.objects.filter(
        state=UsageState.SETTLED, agreement__lease__node__simulated=False
    )
    earned = settled.aggregate(
        total=Sum(Cast(F("amount_micros") * F("stands_bps") / 10_000, BigIntegerField()))
    )["total"]
    balance = Account.objects.aggregate(
        total=Sum(F("credits_posted") - F("debits_posted"), output_field=BigIntegerField())
    )["total"]
    met = readings["all"] - readings["off"]
    return Figures(
        as_of=now,
        simulated_nodes=nodes["simulated"],
        rows=[
            Figure(
                "Nodes admitted",
                nodes["admitted"],
                "count",
                "Nodes whose challenge was judged and passed, in state admitted now.",
            ),
            Figure(
                "Listings published",
                listings.count(),
                "count",
                "Listings whose newest accepted revision promises nothing its node has not shown.",
            ),
            Figure(
                "Leases charging",
                leases.filter(state__in=CHARGING).count(),
                "count",
                "Leases confirmed ready from outside the node, metered in this window.",
            ),
            Figure(
                "Readings as promised",
                met,
                "share",
                "Of the readings of the last 24 hours, those with no field short or different.",
                base=readings["all"],
            ),
            Figure(
                "Settled to date",
                int(earned or 0),
                "money",
                "Sum of all settled usage records, each by the part of its amount that stood.",
            ),
            Figure(
                "Ledger, sum of all accounts",
                int(balance or 0),
                "money",
                "Posted credits less posted debits over every account; anything but 0 is an error.",
            ),
        ],
    )
