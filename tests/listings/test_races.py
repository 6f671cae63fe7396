"""Publishing and checking beside themselves."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from fabric.lib.clock import utc_now
from listings.models import Listing, Revision, RevisionCheck
from listings.services import checks, publishing
from listings.services.publishing import ListingHasChanged, version_of
from tests.listings.bodies import BODY, body_with
from tests.listings.machines import admitted_node, published_listing
from tests.world import World

pytestmark = pytest.mark.slow


def at_once(work: Callable[[int], Any], times: int = 8) -> list[Any]:
    """Run `work` in threads, each with a connection of its own."""

    def run(number: int) -> Any:
        try:
            return work(number)
        except ListingHasChanged as refused:
            return refused
        finally:
            connection.close()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(run, range(times)))


def test_the_same_text_published_at_once_is_one_listing(committed_db: None, world: World) -> None:
    node = admitted_node(world, now=utc_now())
    made = at_once(
        lambda _: publishing.publish(
            actor=world.actor(world.carol),
            provider=world.provider,
            node=node,
            body=BODY,
            now=utc_now(),
        )
    )
    assert len({listing.pk for listing in made}) == 1
    assert (Listing.objects.count(), Revision.objects.count()) == (1, 1)


def test_a_revision_is_checked_once_however_many_workers_try(
    committed_db: None, world: World
) -> None:
    node = admitted_node(world, now=utc_now())
    listing = publishing.publish(
        actor=world.actor(world.carol), provider=world.provider, node=node, body=BODY, now=utc_now()
    )
    revision = listing.revisions.get()
    found = at_once(lambda _: checks.check_revision(revision=revision, now=utc_now()))
    assert len([check for check in found if check is not None]) == 1
    assert RevisionCheck.objects.count() == 1


def test_of_edits_of_one_version_one_wins(committed_db: None, world: World) -> None:
    """R-A10 (api): the others are told that the listing has changed."""
    listing = published_listing(world, now=utc_now())
    seen = version_of(listing)
    done = at_once(
        lambda number: publishing.publish(
            actor=world.actor(world.carol),
            provider=world.provider,
            node=listing.node,
            listing=listing,
            body=body_with(title=f"Edit {number}"),
            expected_version=seen,
            now=utc_now(),
        )
    )
    assert sum(isinstance(item, ListingHasChanged) for item in done) == 7
    assert listing.revisions.count() == 2
