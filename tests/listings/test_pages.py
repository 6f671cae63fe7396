"""The page of a listing, and the provider's own pages about its listings."""

import hashlib
from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from listings.models import Listing
from listings.services import checks
from listings.services.publishing import version_of
from providers.models import Node
from tests.listings.bodies import BODY, body_with
from tests.listings.doors import form_data
from tests.listings.machines import admitted_node, published_listing
from tests.world import World

NEW = "/provider/listings/new/"


def page_of(listing: Listing) -> str:
    return f"/listings/{listing.public_id}/"


def manage(listing: Listing) -> str:
    return f"/provider/listings/{listing.public_id}/"


def test_promise_measurement_verdict_and_method_stand_side_by_side(
    world: World, now: datetime
) -> None:
    """R-A1, R-A2, R-A3, R-A4, R-A5 (page): all five lines with promise and measured value."""
    listing = published_listing(world, now=now, compute_gops=21.25)
    response = Client().get(page_of(listing))
    text = response.content.decode()
    rows = {row.name: row for row in response.context["table"].rows}
    assert set(rows) == set(BODY["promise"])
    assert (rows["compute_gops"].promised, rows["compute_gops"].measured) == (20.5, 21.25)
    assert rows["compute_gops"].method == "how compute_gops was found"
    assert rows["compute_gops"].source.startswith("chl_")
    assert response.context["table"].outcome == "17 fields: 17 met"
    for shown in ("20.5", "21.25", "How compute_gops was found", "Example CPU @ 2.10GHz"):
        assert shown in text
    assert text.count('class="gauge met"') == 17
    assert bytes(listing.revisions.get().digest).hex() in text


def test_the_page_says_what_it_suits_and_why_not(world: World, now: datetime) -> None:
    """R-A6 (page): serving, batch and training, each with its reasons by field."""
    listing = published_listing(world, now=now)
    text = Client().get(page_of(listing)).content.decode()
    assert "Not serving" in text
    assert "Not training" in text
    assert "1,024 MiB for weights and cache, below the 12,288 needed" in text
    assert "Who carries what" in text


def test_the_raw_promise_is_what_the_digest_is_of(world: World, now: datetime) -> None:
    """R-A10 (page): anyone can download the text and hash it again."""
    listing = published_listing(world, now=now)
    revision = listing.revisions.get()
    response = Client().get(f"{page_of(listing)}revisions/1/")
    assert hashlib.sha256(response.content).digest() == bytes(revision.digest)
    assert response["Content-Type"] == "application/json"
    assert response["Content-Disposition"].startswith("attachment")
    assert Client().get(f"{page_of(listing)}revisions/2/").status_code == 404


def test_an_edited_listing_shows_what_changed(world: World, now: datetime) -> None:
    """R-A10 (page): the history names each change; both texts stay readable."""
    listing = published_listing(world, now=now)
    body = body_with(price__amount_micros="60000", promise__disk_gib=39)
    world.client(world.carol).post(
        manage(listing), {**form_data(body), "version": version_of(listing)}
    )
    checks.check_revision(revision=listing.revisions.all()[0], now=now)
    response = Client().get(page_of(listing))
    assert [step.changes for step in response.context["steps"]] == [
        ["price $0.05 to $0.06 per accelerator-hour", "Local storage, size 40 to 39 GiB"],
        ["first published"],
    ]
    assert Client().get(f"{page_of(listing)}revisions/1/").status_code == 200


def test_only_a_listing_on_sale_is_public(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    Node.objects.filter(pk=listing.node_id).update(state="fenced")
    assert Client().get(page_of(listing)).status_code == 404
    assert world.client(world.dave).get(page_of(listing)).status_code == 404
    assert world.client(world.carol).get(page_of(listing)).status_code == 200


def test_the_form_begins_with_what_the_node_has_shown(world: World, now: datetime) -> None:
    node = admitted_node(world, now=now)
    response = world.client(world.carol).get(NEW)
    assert response.context["node"] == node
    form = response.context["form"]
    assert form["promise.cpu_model"].value() == "Example CPU @ 2.10GHz"
    assert form["promise.memory_mib"].value() == 1024
    assert form["region"].value() == "eu-central"
    assert b"not promised" in response.content


def test_a_listing_is_written_in_the_form_and_then_on_sale(world: World, now: datetime) -> None:
    """R-A11 (page): the form publishes through the same service, without JavaScript."""
    node = admitted_node(world, now=now)
    carol = world.client(world.carol)
    response = carol.post(NEW, {**form_data(BODY), "node": node.public_id}, follow=True)
    listing = Listing.objects.get()
    assert response.redirect_chain == [(manage(listing), 302)]
    assert listing.revisions.get().body == BODY
    assert "Checking" in response.content.decode()
    checks.check_revision(revision=listing.revisions.get(), now=now)
    assert "Published" in carol.get(manage(listing)).content.decode()


def test_a_refused_promise_shows_promised_and_measured_value(world: World, now: datetime) -> None:
    """R-A11 (page): the provider sees field, promised and measured value."""
    node = admitted_node(world, now=now, cpu_cores=1)
    carol = world.client(world.carol)
    carol.post(NEW, {**form_data(BODY), "node": node.public_id})
    listing = Listing.objects.get()
    checks.check_revision(revision=listing.revisions.get(), now=now)
    text = carol.get(manage(listing)).content.decode()
    assert "CPU cores: 2 promised, 1 measured, tolerance 0 %." in text
    assert "was refused" in text
    assert Client().get(page_of(listing)).status_code == 404


def test_a_stale_form_is_refused_and_keeps_what_was_written(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    carol = world.client(world.carol)
    stale = {**form_data(body_with(title="Mine")), "version": "0-checking"}
    response = carol.post(manage(listing), stale)
    assert response.status_code == 412
    assert b"has changed since you read it" in response.content
    assert b'value="Mine"' in response.content
    assert listing.revisions.count() == 1


def test_withdrawing_from_the_page(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    carol = world.client(world.carol)
    response = carol.post(f"{manage(listing)}withdrawal/", follow=True)
    assert "Withdrawn" in response.content.decode()
    assert Client().get(page_of(listing)).status_code == 404
    assert carol.get(page_of(listing)).status_code == 200


def test_the_waiting_page_asks_again_by_itself(world: World, now: datetime) -> None:
    node = admitted_node(world, now=now, state="proving")
    carol = world.client(world.carol)
    carol.post(NEW, {**form_data(BODY), "node": node.public_id})
    listing = Listing.objects.get()
    part = carol.get(manage(listing), headers={"HX-Request": "true"}).content.decode()
    assert 'hx-trigger="every 2s"' in part
    assert "waits until the node is admitted" in part
    assert "<html" not in part


@pytest.mark.parametrize("person", ["alice", "dave"])
def test_strangers_find_nothing(world: World, now: datetime, person: str) -> None:
    """R-A11 (page): another tenant's listings and nodes answer 404, read or written."""
    listing = published_listing(world, now=now)
    client = world.client(getattr(world, person))
    data = form_data(BODY)
    assert client.get(manage(listing)).status_code == 404
    assert client.post(manage(listing), data).status_code == 404
    assert client.post(f"{manage(listing)}withdrawal/").status_code == 404
    assert client.post(NEW, {**data, "node": listing.node.public_id}).status_code == 404
    assert client.get(f"{NEW}?node={listing.node.public_id}").status_code == 404
    assert listing.revisions.count() == Listing.objects.count() == 1


def test_a_viewer_looks_and_changes_nothing(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    world.carol.memberships.update(role="viewer")
    client = world.client(world.carol)
    assert "can look and not change" in client.get(manage(listing)).content.decode()
    assert client.post(manage(listing), form_data(body_with(title="New"))).status_code == 403
    assert client.post(f"{manage(listing)}withdrawal/").status_code == 403
    assert listing.revisions.count() == 1


def test_the_anonymous_are_sent_to_sign_in(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    for path in ("/provider/listings/", NEW, manage(listing)):
        response = Client().get(path)
        assert response.status_code == 302
        assert response["Location"].startswith(reverse("account_login"))


def test_a_form_without_a_token_is_refused(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.carol, backend="django.contrib.auth.backends.ModelBackend")
    data: dict[str, Any] = {**form_data(BODY), "node": listing.node.public_id}
    for path in (NEW, manage(listing), f"{manage(listing)}withdrawal/"):
        assert client.post(path, data).status_code == 403
        htmx = client.post(path, data, headers={"HX-Request": "true"})
        assert htmx.status_code == 403
    listing.refresh_from_db()
    assert listing.state == "published"


def test_own_listings_in_every_state(
    world: World, now: datetime, django_assert_num_queries: Any
) -> None:
    published_listing(world, now=now, name="a", body=body_with(title="On sale"))
    carol = world.client(world.carol)
    node = admitted_node(world, now=now, name="b", cpu_cores=1)
    carol.post(NEW, {**form_data(body_with(title="Refused")), "node": node.public_id})
    refused = Listing.objects.get(title="Refused")
    checks.check_revision(revision=refused.revisions.get(), now=now)
    text = carol.get("/provider/listings/").content.decode()
    for shown in ("On sale", "Published", "Refused", "2 listings, newest first"):
        assert shown in text
    assert "No listing yet" not in text


def test_first_steps_are_offered_before_there_is_anything(world: World, now: datetime) -> None:
    carol = world.client(world.carol)
    assert "Enrol a node first" in carol.get("/provider/listings/").content.decode()
    assert "Enrol a node first" in carol.get(NEW).content.decode()
    admitted_node(world, now=now)
    assert "No listing yet" in carol.get("/provider/listings/").content.decode()
    assert world.client(world.alice).get("/provider/listings/").status_code == 404
