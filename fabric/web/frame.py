"""What every page's frame shows: who acts, the wallet and how long it lasts, the rail, the theme."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db.models import BigIntegerField, Count, F, IntegerField, OuterRef, Q, Subquery, Sum
from django.db.models.expressions import Value
from django.db.models.functions import Cast, Coalesce
from django.http import HttpRequest

from billing.domain.accounts import earned_code, wallet_code
from billing.models import Account, Terms
from fabric.accounts.access import membership_for
from fabric.accounts.models import Organisation, User
from fabric.lib.clock import utc_now
from fabric.web.navigation import Item, Standing, build_rail
from leases.domain.states import CHARGING, LIVE, DisputeState
from leases.models import Dispute, Lease
from providers.domain.nodes import NodeState
from providers.models import Node, Provider

_NEXT_THEME = {"system": "light", "light": "dark", "dark": "system"}
THEME_SESSION_KEY = "theme"
LINKS = {
    "catalogue": "/catalogue/",
    "billing": "/billing/",
    "organisation": "/settings/organisation/",
    "top_up": "/billing/top-ups/new/",
    "projects": "/settings/projects/",
    "leases": "/leases/",
    "lease_prefix": "/leases/",
    "dispute_prefix": "/disputes/#",
    "provider": "/provider/",
    "enrol": "/provider/enrol/",
    "node_prefix": "/provider/nodes/",
    "listing_new": "/provider/listings/new/",
    "earnings": "/provider/earnings/",
    "order": "/orders/new/",
}


def frame(request: HttpRequest) -> Mapping[str, object]:
    """Put the frame into every template; it asks the database only when a page draws it."""
    return {"frame": Frame(request)}


class Frame:
    """The frame of one request. Costs two queries for a person with an organisation, else none."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self.path: str = request.path
        self.full_path: str = request.get_full_path()
        self.badge: str = settings.FABRIC_ENVIRONMENT_BADGE

    @property
    def links(self) -> Mapping[str, str]:
        """Addresses of pages that other apps own."""
        return LINKS

    @property
    def now(self) -> datetime:
        """When the page was made, for its printed last line."""
        return utc_now()

    @property
    def address(self) -> str:
        """The page's full address, for its printed last line."""
        return self._request.build_absolute_uri()

    @cached_property
    def user(self) -> User | None:
        """The person who is signed in."""
        user = getattr(self._request, "user", None)
        return user if isinstance(user, User) else None

    @property
    def signed_in(self) -> bool:
        """Whether somebody is signed in."""
        return self.user is not None

    @property
    def person(self) -> str:
        """What the person is called."""
        return str(self.user) if self.user else ""

    @property
    def theme(self) -> str:
        """The chosen theme: of the account, or of the session for those without one."""
        if self.user:
            return self.user.theme
        session = getattr(self._request, "session", None)
        chosen = session.get(THEME_SESSION_KEY, "system") if session is not None else "system"
        return chosen if chosen in _NEXT_THEME else "system"

    @property
    def next_theme(self) -> str:
        """What the theme switch changes to."""
        return _NEXT_THEME[self.theme]

    @property
    def bootstrap_theme(self) -> str:
        """The theme Bootstrap starts with; a small script corrects it for those on `system`."""
        return "dark" if self.theme == "dark" else "light"

    @cached_property
    def organisation(self) -> Organisation | None:
        """The active organisation; costs a query."""
        membership = membership_for(self._request)
        return membership.organisation if membership else None

    @cached_property
    def _figures(self) -> dict[str, Any]:
        if self.organisation is None:
            return {}
        return read_figures(self.organisation)

    @property
    def available_micros(self) -> int:
        """What the wallet can still spend."""
        return self._figures.get("available") or 0

    @property
    def providing(self) -> bool:
        """Whether this page is about what the organisation provides."""
        here = self.path.startswith("/provider/") or "side=provider" in self.full_path
        return here and bool(self._figures.get("providers"))

    @property
    def earned_micros(self) -> int:
        """What has settled to the organisation as a provider."""
        return self._figures.get("earned") or 0

    @property
    def leases_provided(self) -> int:
        """How many leases run on the organisation's nodes."""
        return self._figures.get("leases_provided") or 0

    @property
    def runway_seconds(self) -> int | None:
        """How long the wallet would pay the leases that charge now; None when none does."""
        rate = self._figures.get("rate_per_hour") or 0
        return self.available_micros * 3600 // rate if rate else None

    @cached_property
    def rail(self) -> list[list[Item]]:
        """The entries of the rail, with what waits behind them."""
        figures = self._figures
        standing = Standing(
            signed_in=self.signed_in,
            buys=self.organisation is not None,
            provides=bool(figures.get("providers")),
            operates=self.user is not None and self.user.is_staff,
            open_leases=figures.get("open_leases") or 0,
            open_disputes=figures.get("open_disputes") or 0,
            leases_provided=figures.get("leases_provided") or 0,
            disputes_provided=figures.get("disputes_provided") or 0,
            nodes_held_back=figures.get("nodes_held_back") or 0,
        )
        return build_rail(self.full_path, standing)


class BareFrame:
    """The frame of a page that must not ask the database: the theme is the system's."""

    theme = "system"
    bootstrap_theme = "light"
    signed_in = False

    def __init__(self, request: HttpRequest) -> None:
        self.address = request.build_absolute_uri()
        self.now = utc_now()


def read_figures(organisation: Organisation) -> dict[str, Any]:
    """Return the frame's figures of an organisation in one query of scalar subqueries."""
    pk = organisation.pk
    left = F("credits_posted") - F("debits_posted") - F("debits_pending")
    wallet = Account.objects.filter(code=wallet_code(organisation.public_id)).annotate(free=left)
    earned = Account.objects.filter(code=earned_code(organisation.public_id)).annotate(free=left)
    newest_terms = Terms.objects.filter(agreement=OuterRef("agreement")).order_by("-version")
    rate = (
        Lease.objects.filter(organisation=pk, state__in=CHARGING)
        .annotate(
            hourly=Subquery(
                newest_terms.annotate(
                    hourly=F("price_micros") * F("units") * 3600 / F("per_quantity")
                ).values("hourly")[:1]
            )
        )
        .order_by()
        .values("organisation")
        .annotate(total=Cast(Sum("hourly"), BigIntegerField()))
    )
    open_dispute = Q(state=DisputeState.OPEN)
    row = (
        Organisation.objects.filter(pk=pk)
        .annotate(
            available=Subquery(wallet.values("free")[:1]),
            earned=Subquery(earned.values("free")[:1]),
            rate_per_hour=Subquery(rate.values("total")[:1]),
            open_leases=_count(Lease.objects.filter(organisation=pk, state__in=LIVE)),
            open_disputes=_count(Dispute.objects.filter(open_dispute, lease__organisation=pk)),
            providers=_count(Provider.objects.filter(organisation=pk)),
            leases_provided=_count(Lease.objects.filter(provider__organisation=pk, state__in=LIVE)),
            disputes_provided=_count(
                Dispute.objects.filter(open_dispute, lease__provider__organisation=pk)
            ),
            nodes_held_back=_count(
                Node.objects.filter(
                    provider__organisation=pk, state__in=[NodeState.HELD_BACK, NodeState.FENCED]
                )
            ),
        )
        .values(
            "available",
            "earned",
            "rate_per_hour",
            "open_leases",
            "open_disputes",
            "providers",
            "leases_provided",
            "disputes_provided",
            "nodes_held_back",
        )
        .first()
    )
    return {**row} if row else {}


def _count(rows: object) -> Coalesce:
    counted = (
        rows.order_by()  # type: ignore[attr-defined]
        .annotate(_one=Value(1))
        .values("_one")
        .annotate(_n=Count("pk"))
        .values("_n")[:1]
    )
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)
