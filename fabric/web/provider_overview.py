"""A provider's front page: what needs deciding, the nodes, the leases and the earnings."""

import uuid
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Prefetch, Q

from billing.services.earnings import Earnings, by_state
from fabric.accounts.models import Organisation
from fabric.journal.services.parameters import get_operational
from fabric.web.strips import Strip, Taken, draw_strip
from leases.domain.states import LIVE, DisputeState
from leases.models import Dispute, Lease, Reading
from listings.domain.states import ListingState
from listings.models import Listing
from providers.domain.liveness import Liveness
from providers.domain.nodes import NodeState
from providers.models import Challenge, Device, HardwareReport, Hold, Node, Provider
from providers.selectors import liveness_now

_DAY = timedelta(hours=24)
MOST_LEASES = 25


@dataclass(frozen=True)
class Due:
    """Something that costs money if left: when, what, why, and where to act."""

    when: str
    colour: str
    what: str
    why: str
    href: str
    act: str


@dataclass(frozen=True)
class NodeRow:
    """A node in the table: what it is, what is let, and what holds it back."""

    node: Node
    strip: Strip
    liveness: str
    last_beat_at: datetime | None
    reasons: list[dict[str, Any]]
    listings: int


@dataclass(frozen=True)
class Step:
    """One step of the way from enrolment to earning."""

    name: str
    state: str  # done, now or next
    note: str


@dataclass(frozen=True)
class Path:
    """How far the newest node has come."""

    node: Node
    steps: list[Step]
    since: timedelta


@dataclass(frozen=True)
class Overview:
    """Everything the page prints."""

    as_of: datetime
    provider: Provider
    rows: list[NodeRow]
    dues: list[Due]
    leases: list[Lease]
    earnings: Earnings
    readings: int
    readings_met: int
    disputes: dict[str, int]
    path: Path | None

    @property
    def units(self) -> tuple[int, int]:
        """Slots in use and slots in all."""
        used = sum(row.strip.used for row in self.rows)
        return used, sum(row.strip.total for row in self.rows)

    @property
    def owed_micros(self) -> int:
        """All of the provider's shares together."""
        return self.earnings.pending + self.earnings.disputed + self.earnings.earned

    @property
    def held_back(self) -> list[NodeRow]:
        """The nodes that something holds back."""
        return [row for row in self.rows if row.reasons]


def find_provider(organisation: Organisation) -> Provider | None:
    """Return the organisation as a provider, if it is one."""
    return Provider.objects.filter(organisation=organisation).first()


def read_overview(*, provider: Provider, now: datetime) -> Overview:
    """Return the page's figures; the number of queries does not depend on how much there is."""
    listings = list(Listing.objects.filter(provider=provider).only("id", "node", "state", "title"))
    rows = _read_rows(provider, listings, now)
    off_promise = Q(conformity__contains=[{"verdict": "short"}]) | Q(
        conformity__contains=[{"verdict": "different"}]
    )
    readings = Reading.objects.filter(
        lease__provider=provider, starts_at__gte=now - _DAY
    ).aggregate(all=Count("pk"), off=Count("pk", filter=off_promise))
    disputes = list(
        Dispute.objects.filter(lease__provider=provider)
        .select_related("lease__node", "reading__usage_record")
        .order_by("-opened_at")[:200]
    )
    leases = (
        Lease.objects.filter(provider=provider, state__in=LIVE)
        .select_related("node", "revision__listing")
        .annotate(units=Count("lease_units"))
    )
    return Overview(
        as_of=now,
        provider=provider,
        rows=rows,
        dues=[*_nodes_due(rows), *_disputes_due(disputes), *_listings_due(listings, rows)],
        leases=list(leases[:MOST_LEASES]),
        earnings=by_state(provider.organisation),
        readings=readings["all"],
        readings_met=readings["all"] - readings["off"],
        disputes={
            "open": sum(1 for one in disputes if one.state == DisputeState.OPEN),
            "ruled": sum(1 for one in disputes if one.state == DisputeState.RULED),
            "upheld": sum(
                1
                for one in disputes
                if one.state == DisputeState.RULED and (one.stands_bps or 0) < 10_000
            ),
        },
        path=_read_path(rows, now),
    )


def _read_rows(provider: Provider, listings: list[Listing], now: datetime) -> list[NodeRow]:
    holds = Hold.objects.filter(live=True, period__contains=now)
    devices = Device.objects.prefetch_related(
        Prefetch("holds", queryset=holds, to_attr="holds_now")
    )
    nodes = (
        Node.objects.filter(provider=provider)
        .standing()
        .select_related("hardware_class", "beat", "enrolment__token")
        .prefetch_related(Prefetch("devices", queryset=devices))
    )
    rules = get_operational(now=now)
    published: dict[uuid.UUID, int] = defaultdict(int)
    for listing in listings:
        if listing.state == ListingState.PUBLISHED:
            published[listing.node_id] += 1
    rows = []
    for node in nodes:
        beat = getattr(node, "beat", None)
        last = beat.last_beat_at if beat else None
        liveness = liveness_now(node=node, now=now, rules=rules)
        rows.append(
            NodeRow(
                node=node,
                strip=_strip_of(node),
                liveness=_LIVENESS_WORDS[liveness],
                last_beat_at=last,
                reasons=[_NO_REASON | reason for reason in node.held_back_reasons],
                listings=published[node.pk],
            )
        )
    return sorted(rows, key=lambda row: (not row.reasons, row.liveness == "alive", row.node.name))


# A reason may lack what it cannot know: nothing was measured, or no single field is at fault.
_NO_REASON: dict[str, Any] = {
    "code": "NO_CODE",
    "field": "",
    "promised": None,
    "measured": None,
    "detail": "",
    "remedy": "Run the challenge again",
}
_LIVENESS_WORDS = {
    Liveness.ALIVE: "alive",
    Liveness.SUSPECT: "late",
    Liveness.DEAD: "silent",
    Liveness.NEVER_HEARD: "not_observed",
}


def _strip_of(node: Node) -> Strip:
    devices = [
        (
            device.slots,
            [
                Taken(hold.slots.lower, hold.slots.upper, hold.kind)
                for hold in device.holds_now  # type: ignore[attr-defined]  # the prefetch's name
            ],
        )
        for device in node.devices.all()
    ]
    return draw_strip(devices, rentable=node.state == NodeState.ADMITTED)


def _nodes_due(rows: list[NodeRow]) -> list[Due]:
    dues = []
    for row in rows:
        href = f"/provider/nodes/{row.node.public_id}/"
        dues += [
            Due(
                "now",
                "missed",
                f"{row.node.name} is held back: {reason['code']}",
                f"{reason['detail']} {reason['remedy']}.".strip().replace("..", "."),
                href,
                "See the evidence",
            )
            for reason in row.reasons[:1]
        ]
        if row.liveness == "silent" and row.node.state == NodeState.ADMITTED:
            dues.append(
                Due(
                    "now",
                    "missed",
                    f"{row.node.name} is silent",
                    "No beat arrives, so its leases are not billed. Start the agent again.",
                    href,
                    "Look at the node",
                )
            )
    return dues


def _disputes_due(disputes: list[Dispute]) -> list[Due]:
    return [
        Due(
            "until ruled",
            "short",
            f"A reading of {dispute.lease.node.name} is disputed by the {dispute.opened_side}",
            f"Window {dispute.reading.starts_at:%d %b %H:%M:%S} UTC; its line is held, "
            "every other line settles.",
            f"/disputes/?side=provider#{dispute.public_id}",
            "Read it",
        )
        for dispute in disputes
        if dispute.state == DisputeState.OPEN
    ]


def _listings_due(listings: list[Listing], rows: list[NodeRow]) -> list[Due]:
    dues = [
        Due(
            "now",
            "missed",
            f"Listing refused: {listing.title}",
            "It promises something its node has not shown; the findings name the field.",
            f"/provider/listings/{listing.public_id}/",
            "See the findings",
        )
        for listing in listings
        if listing.state == ListingState.REFUSED
    ]
    offered = {listing.node_id for listing in listings}
    dues += [
        Due(
            "when you like",
            "unknown",
            f"{row.node.name} is admitted and not listed",
            "It earns nothing until it is offered.",
            "/provider/listings/new/",
            "List it",
        )
        for row in rows
        if row.node.state == NodeState.ADMITTED and row.node.pk not in offered
    ]
    return dues


def _read_path(rows: list[NodeRow], now: datetime) -> Path | None:
    """Return how far the newest node that is not on sale has come; costs up to three queries."""
    fresh = [row.node for row in rows if row.node.listed_at is None]
    if not fresh:
        return None
    node = max(fresh, key=lambda one: one.enrolled_at)
    enrolment = getattr(node, "enrolment", None)
    begun = enrolment.token.created_at if enrolment else node.enrolled_at
    report = HardwareReport.objects.filter(node=node).order_by("received_at").first()
    challenge = Challenge.objects.filter(node=node).order_by("-issued_at").first()
    metered = Reading.objects.filter(lease__node=node).order_by("starts_at").first()
    reached: list[tuple[str, datetime | None]] = [
        ("Register", begun),
        ("Install", node.enrolled_at),
        ("Verify", report.received_at if report else None),
        ("Benchmark", challenge.judged_at if challenge else None),
        ("Admit", node.admitted_at if node.state == NodeState.ADMITTED else None),
        ("Schedule", node.listed_at),
        ("Meter", metered.starts_at if metered else None),
        ("Monitor", metered.starts_at if metered else None),
    ]
    steps, waiting = [], False
    for name, at in reached:
        if at is not None and not waiting:
            steps.append(Step(name, "done", _clock(at - begun)))
        else:
            steps.append(Step(name, "next" if waiting else "now", "" if waiting else "now"))
            waiting = True
    return Path(node, steps, now - begun)


def _clock(elapsed: timedelta) -> str:
    minutes, seconds = divmod(max(0, int(elapsed.total_seconds())), 60)
    return f"{minutes:02d}:{seconds:02d}"
