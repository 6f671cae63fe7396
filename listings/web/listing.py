"""The page of one listing, and the text of each of its revisions."""

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from fabric.accounts.access import actor_for
from fabric.accounts.domain.actors import Actor
from fabric.lib.clock import utc_now
from listings.access import read_listing, read_revision
from listings.domain.changes import list_changes
from listings.domain.depths import DEPTHS
from listings.domain.prices import normalise
from listings.domain.suitability import advise, one_machine
from listings.models import Listing, Revision
from listings.selectors import check_of, free_unit_counts, promise_of
from listings.web.facets import class_words, name_classes
from listings.web.promises import build_promise_table

SHOWN_REVISIONS = 6


@dataclass(frozen=True)
class Step:
    """One revision in the history, with what it changed."""

    number: int
    digest: bytes
    created_at: datetime
    changes: list[str]


@require_GET
def show_listing(request: HttpRequest, listing_id: str) -> HttpResponse:
    """Show promise, measurement, verdict and method side by side, and what can be ordered."""
    now = utc_now()
    reader = reader_of(request)
    listing = read_listing(actor=reader, public_id=listing_id)
    revision = listing.current_revision or listing.revisions.all()[0]
    check = check_of(revision)
    promise = promise_of(revision)
    depth_words, duties = DEPTHS[revision.body["depth"]]
    context = {
        "now": now,
        "listing": listing,
        "revision": revision,
        "body": revision.body,
        "offer": class_words(listing, name_classes()),
        "table": build_promise_table(revision, check),
        "check": check,
        "advice": advise(listing.kind, promise),
        "one_machine": one_machine(promise),
        "price": normalise(
            micros_per_hour=listing.price_micros_per_hour,
            memory_mib=listing.measured_memory_mib,
            gops=listing.measured_gops,
        ),
        "free": min(free_unit_counts([listing], now=now)[listing.pk], listing.unit_count),
        "depth_words": depth_words,
        "duties": duties,
        "steps": history_of(listing, accepted_only=True),
        "provider_listings": Listing.objects.on_sale().filter(provider=listing.provider).count(),
        "manages": manages(reader, listing),
    }
    return render(request, "listings/listing_detail.html", context)


@require_GET
def download_revision(request: HttpRequest, listing_id: str, number: int) -> HttpResponse:
    """Return the exact bytes whose SHA-256 is the revision's digest."""
    reader = reader_of(request)
    revision = read_revision(actor=reader, listing_id=listing_id, number=number)
    response = HttpResponse(bytes(revision.canonical), content_type="application/json")
    name = f"{listing_id}-revision-{number}.json"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["ETag"] = f'"{bytes(revision.digest).hex()}"'
    return response


def reader_of(request: HttpRequest) -> Actor | None:
    """Return who reads a public page, or None for somebody unknown."""
    return actor_for(request) if request.user.is_authenticated else None


def manages(reader: Actor | None, listing: Listing) -> bool:
    """Return whether the reader's organisation is the one that offers this."""
    return reader is not None and reader.organisation_id == listing.provider.organisation_id


def history_of(listing: Listing, *, accepted_only: bool) -> list[Step]:
    """Return the newest revisions with what each changed; costs a query."""
    revisions = listing.revisions.all()
    if accepted_only:
        revisions = revisions.filter(checks__accepted=True).distinct()
    newest = list(revisions[: SHOWN_REVISIONS + 1])
    steps = []
    for index, revision in enumerate(newest[:SHOWN_REVISIONS]):
        earlier = newest[index + 1] if index + 1 < len(newest) else None
        steps.append(_step(revision, earlier))
    return steps


def _step(revision: Revision, earlier: Revision | None) -> Step:
    changes = list_changes(earlier.body, revision.body) if earlier else ["first published"]
    return Step(revision.number, bytes(revision.digest), revision.created_at, changes)
