"""Finding one listing for one reader; what a reader may not see does not exist for them."""

from fabric.accounts.domain.actors import Actor
from fabric.lib.errors import NotVisible
from listings.models import Listing, Revision
from listings.querysets import ListingQuerySet


def access_listing(*, actor: Actor, public_id: str) -> Listing:
    """Return the listing that this actor manages, or raise NotVisible."""
    return _one(Listing.objects.visible_to(actor), public_id)


def read_listing(*, actor: Actor | None, public_id: str) -> Listing:
    """Return a listing on sale, or one that the actor manages, or raise NotVisible."""
    return _one(Listing.objects.readable_by(actor), public_id)


def read_revision(*, actor: Actor | None, listing_id: str, number: int) -> Revision:
    """Return a revision of a listing the reader may read.

    Strangers read only what was once accepted: a refused draft stays with its provider.
    """
    listing = read_listing(actor=actor, public_id=listing_id)
    revisions = listing.revisions.filter(number=number)
    manages = actor is not None and Listing.objects.visible_to(actor).filter(pk=listing.pk).exists()
    if not manages:
        revisions = revisions.filter(checks__accepted=True)
    revision = revisions.first()
    if revision is None:
        raise NotVisible(f"There is no revision {number} of {listing_id}.")
    return revision


def _one(rows: ListingQuerySet, public_id: str) -> Listing:
    try:
        key = Listing.key_from(public_id)
    except ValueError:
        key = None
    related = rows.select_related("provider__organisation", "node", "current_revision")
    listing = related.filter(pk=key).first() if key is not None else None
    if listing is None:
        raise NotVisible(f"There is no listing {public_id}.")
    return listing
