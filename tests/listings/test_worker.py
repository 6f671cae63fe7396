"""Checks in a real worker: hints are quick, and the row alone is enough."""

import time
from typing import Any

import pytest
from django.db import transaction

from fabric.lib.clock import utc_now
from listings.models import Listing
from listings.services.publishing import publish
from providers.models import Node
from tests.listings.bodies import BODY, body_with
from tests.listings.machines import admitted_node
from tests.world import World

pytestmark = pytest.mark.slow


def publish_on(world: World, node: Node, body: dict[str, Any]) -> Listing:
    with transaction.atomic():
        return publish(
            actor=world.actor(world.carol),
            provider=world.provider,
            node=node,
            body=body,
            now=utc_now(),
        )


def wait_for(listing: Listing, state: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        listing.refresh_from_db()
        if listing.state == state:
            return
        time.sleep(0.1)
    pytest.fail(f"still {listing.state}")


def test_a_worker_publishes_what_is_true_and_refuses_what_is_not(
    world: World, celery_worker_process: Any
) -> None:
    """R-A10, R-A11 (api): a Celery task compares the promise with the evidence by itself."""
    node = admitted_node(world, now=utc_now())
    wait_for(publish_on(world, node, BODY), "published")
    wait_for(publish_on(world, node, body_with(promise__cpu_cores=64)), "refused")


def test_a_listing_goes_on_sale_by_itself_once_its_node_is_admitted(
    world: World, celery_worker_process: Any
) -> None:
    """R-B1 (api): nobody asks again; the sweep finds the row that waits."""
    node = admitted_node(world, now=utc_now(), state="proving")
    listing = publish_on(world, node, BODY)
    time.sleep(2.5)
    listing.refresh_from_db()
    assert listing.state == "checking"
    Node.objects.filter(pk=node.pk).update(state="admitted")
    wait_for(listing, "published")
