"""One box that finds any public id, or a name, among what the person may see."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from billing.models import Agreement, Terms, TopUp, UsageRecord
from fabric.accounts.models import ApiKey, Organisation, Project, User
from fabric.lib.models import PublicModel
from fabric.web.frame import Frame
from leases.models import Batch, Dispute, Lease, Order, Reading, Stream
from listings.domain.states import ListingState
from listings.models import Listing, Revision
from providers.models import Challenge, Device, HardwareReport, Node, Provider, Unit

MOST_PER_KIND = 10


@dataclass(frozen=True)
class Found:
    """One thing that was found: what it is, what it is called and where its page is."""

    kind: str
    name: str
    public_id: str
    href: str


@dataclass(frozen=True)
class Kind:
    """A type of object: who may see it and which page shows it."""

    label: str
    model: Any  # a concrete PublicModel, whose manager the type checker cannot see
    visible: Callable[[Organisation | None], Q]
    href: Callable[[Any], str]


def _own(*paths: str) -> Callable[[Organisation | None], Q]:
    """Return a filter for rows that lead to the organisation by any of these paths."""

    def visible(organisation: Organisation | None) -> Q:
        condition = Q(pk__in=[])
        if organisation is not None:
            for path in paths:
                condition |= Q(**{path: organisation})
        return condition

    return visible


def _published_or_own(prefix: str) -> Callable[[Organisation | None], Q]:
    def visible(organisation: Organisation | None) -> Q:
        own = _own(f"{prefix}provider__organisation")(organisation)
        return Q(**{f"{prefix}state": ListingState.PUBLISHED}) | own

    return visible


def _listing(row: Listing) -> str:
    return f"/listings/{row.public_id}/"


def _lease(row: Lease) -> str:
    return f"/leases/{row.public_id}/"


def _node(row: Node) -> str:
    return f"/provider/nodes/{row.public_id}/"


_LEASE_SIDES = ("organisation", "provider__organisation")


def _sides(prefix: str) -> Callable[[Organisation | None], Q]:
    return _own(*(f"{prefix}{side}" for side in _LEASE_SIDES))


_KINDS = [
    Kind("Listing", Listing, _published_or_own(""), _listing),
    Kind("Revision", Revision, _published_or_own("listing__"), lambda row: _listing(row.listing)),
    Kind("Lease", Lease, _sides(""), _lease),
    Kind("Order", Order, _own("organisation"), lambda row: _lease(row.lease)),
    Kind("Dispute", Dispute, _sides("lease__"), lambda row: f"/disputes/#{row.public_id}"),
    Kind("Reading", Reading, _sides("lease__"), lambda row: _lease(row.lease)),
    Kind("Stream", Stream, _sides("lease__"), lambda row: _lease(row.lease)),
    Kind("Batch", Batch, _sides("stream__lease__"), lambda row: _lease(row.stream.lease)),
    Kind("Agreement", Agreement, _own("buyer", "provider"), lambda row: _lease(row.lease)),
    Kind(
        "Terms",
        Terms,
        _own("agreement__buyer", "agreement__provider"),
        lambda row: _lease(row.agreement.lease),
    ),
    Kind(
        "Usage record",
        UsageRecord,
        _own("agreement__buyer", "agreement__provider"),
        lambda row: _lease(row.agreement.lease),
    ),
    Kind("Top-up", TopUp, _own("organisation"), lambda row: f"/billing/top-ups/{row.public_id}/"),
    Kind("Node", Node, _own("provider__organisation"), _node),
    Kind(
        "Hardware report",
        HardwareReport,
        _own("node__provider__organisation"),
        lambda row: _node(row.node),
    ),
    Kind("Challenge", Challenge, _own("node__provider__organisation"), lambda row: _node(row.node)),
    Kind("Device", Device, _own("node__provider__organisation"), lambda row: _node(row.node)),
    Kind(
        "Unit",
        Unit,
        _own("device__node__provider__organisation"),
        lambda row: _node(row.device.node),
    ),
    Kind("Provider", Provider, _own("organisation"), lambda _: "/provider/"),
    Kind("Project", Project, _own("organisation"), lambda _: "/settings/projects/"),
    Kind("API key", ApiKey, _own("project__organisation"), lambda _: "/settings/keys/"),
    Kind("Organisation", Organisation, _own("pk"), lambda _: "/settings/organisation/"),
]
_BY_PREFIX = {kind.model.PREFIX: kind for kind in _KINDS}
# Kinds with a name a person would type, and the column that holds it.
_NAMED = [("lst", "title"), ("nod", "name"), ("prj", "name"), ("key", "name")]


def find(text: str, *, organisation: Organisation | None) -> list[Found]:
    """Return what the organisation may see that has this public id, or this text in its name.

    What belongs to another tenant is not found, exactly as if it were not there.
    """
    text = text.strip()
    if not text or "\x00" in text:
        return []
    by_id = list(_find_id(text.lower(), organisation))
    return by_id or list(_find_name(text, organisation))


def _find_id(text: str, organisation: Organisation | None) -> Iterator[Found]:
    kind = _BY_PREFIX.get(text.partition("_")[0])
    if kind is None:
        return
    try:
        key = kind.model.key_from(text)
    except ValueError:
        return
    row = kind.model.objects.filter(kind.visible(organisation), pk=key).first()
    if row is not None:
        yield _found(kind, row)


def _find_name(text: str, organisation: Organisation | None) -> Iterator[Found]:
    for prefix, column in _NAMED:
        kind = _BY_PREFIX[prefix]
        rows = kind.model.objects.filter(
            kind.visible(organisation), **{f"{column}__icontains": text}
        )
        for row in rows[:MOST_PER_KIND]:
            yield _found(kind, row)


def _found(kind: Kind, row: PublicModel) -> Found:
    return Found(kind.label, str(row), row.public_id, kind.href(row))


def find_for_operator(text: str) -> list[Found]:
    """Return any object of any tenant with this id, as the back office shows it."""
    prefix = text.strip().lower().partition("_")[0]
    models = {kind.model.PREFIX: (kind.label, kind.model) for kind in _KINDS}
    models[User.PREFIX] = ("Person", User)
    if prefix not in models:
        return []
    label, model = models[prefix]
    row = model.find_public(text.strip().lower())
    if row is None:
        return []
    meta = model._meta
    href = f"/operator/{meta.app_label}/{meta.model_name}/{row.pk}/change/"
    return [Found(label, str(row), row.public_id, href)]


@require_GET
def show_search(request: HttpRequest) -> HttpResponse:
    """Show what was found; a single exact hit is gone to at once."""
    text = request.GET.get("q", "")[:80]
    frame = Frame(request)
    found = find(text, organisation=frame.organisation)
    if frame.user is not None and frame.user.is_staff and not found:
        found = find_for_operator(text)
    if len(found) == 1 and found[0].public_id == text.strip().lower():
        return redirect(found[0].href)
    return render(request, "web/search.html", {"text": text, "found": found})
