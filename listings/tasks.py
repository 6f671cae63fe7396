"""Background work of listings. The rows are the queue; these run safely beside themselves."""

from uuid import UUID

from celery import shared_task

from fabric.lib.clock import utc_now
from listings.models import Listing, Revision
from listings.selectors import listings_overtaken, revisions_due
from listings.services import checks

SWEEP_LIMIT = 200
HINT_LASTS_SECONDS = 30  # The next sweep sends it again; stale ones must not pile up.


@shared_task(name="listings.check_revision_task")
def check_revision_task(revision_id: str) -> None:
    """Check one revision now, because somebody has just written it."""
    revision = Revision.objects.filter(pk=UUID(revision_id)).first()
    if revision is not None:
        checks.check_revision(revision=revision, now=utc_now())


@shared_task(name="listings.recheck_listing_task")
def recheck_listing_task(listing_id: str) -> None:
    """Check a listing again, because its node has shown something new."""
    listing = Listing.objects.filter(pk=UUID(listing_id)).first()
    if listing is not None:
        checks.recheck_listing(listing=listing, now=utc_now())


@shared_task(name="listings.sweep_checks_task")
def sweep_checks_task() -> int:
    """Send out whatever waits: lost hints, nodes admitted meanwhile, new evidence.

    Each row is a task of its own, so that one that fails keeps no other waiting.
    """
    revisions = revisions_due(limit=SWEEP_LIMIT)
    listings = list(listings_overtaken().values_list("pk", flat=True)[:SWEEP_LIMIT])
    for key in revisions:
        check_revision_task.apply_async(args=(str(key),), expires=HINT_LASTS_SECONDS)
    for key in listings:
        recheck_listing_task.apply_async(args=(str(key),), expires=HINT_LASTS_SECONDS)
    return len(revisions) + len(listings)
