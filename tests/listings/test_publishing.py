"""Publishing: immutable revisions, checked against evidence before anyone sees them."""

import hashlib
from datetime import datetime, timedelta
from typing import Any

import pytest
import rfc8785
from django.db import DatabaseError, connection, transaction

from fabric.journal.models import Event
from fabric.lib.errors import InvalidInput, NotAllowed, NotVisible, WrongState
from listings.domain.states import ListingState
from listings.models import Listing, Revision, RevisionCheck
from listings.selectors import listings_overtaken
from listings.services import checks, publishing
from providers.models import Node
from tests.listings.bodies import BODY, body_with
from tests.listings.machines import admitted_node, facts_of, published_listing, show_evidence
from tests.world import World


def publish(world: World, node: Node, now: datetime, **extra: Any) -> Listing:
    extra.setdefault("body", BODY)
    return publishing.publish(
        actor=world.actor(world.carol), provider=world.provider, node=node, now=now, **extra
    )


def check(listing: Listing, now: datetime) -> RevisionCheck | None:
    return checks.check_revision(revision=listing.revisions.all()[0], now=now)


def test_a_promise_the_node_has_shown_is_published(world: World, now: datetime) -> None:
    """R-A10 (api): a checked listing points at one content-addressed revision."""
    node = admitted_node(world, now=now)
    listing = publish(world, node, now)
    assert listing.state == ListingState.CHECKING
    assert Listing.objects.on_sale().count() == 0

    found = check(listing, now)

    assert found is not None
    assert found.accepted
    listing.refresh_from_db()
    revision = listing.revisions.get()
    assert listing.state == ListingState.PUBLISHED
    assert listing.current_revision == revision
    assert bytes(revision.digest) == hashlib.sha256(rfc8785.dumps(BODY)).digest()
    assert bytes(revision.canonical) == rfc8785.dumps(BODY)
    assert (listing.class_slug, listing.memory_mib, listing.suits) == ("host-cpu", 1024, ["batch"])
    assert listing.price_micros_per_hour == 50_000
    assert listing.measured_gops == 20.5
    assert listing.tier == "community"
    assert Listing.objects.on_sale().get() == listing
    node.refresh_from_db()
    assert node.listed_at == now
    kinds = Event.objects.filter(subject=listing.public_id).values_list("kind", flat=True)
    assert list(kinds) == ["listing.revised", "listing.published"]


@pytest.mark.parametrize(
    ("field", "measured", "verdict"),
    [
        ("cpu_cores", 1, "short"),
        ("memory_mib", 1013, "short"),
        ("compute_gops", None, "not_measured"),
        ("disk_kind", "hdd", "different"),
        ("cpu_model", "Other CPU", "different"),
    ],
)
def test_a_promise_the_node_has_not_shown_is_refused(
    world: World, now: datetime, field: str, measured: Any, verdict: str
) -> None:
    """R-A11 (api): the refusal names the field, the promised and the measured value."""
    listing = publish(world, admitted_node(world, now=now, **{field: measured}), now)
    found = check(listing, now)
    assert found is not None
    assert not found.accepted
    [row] = [row for row in found.fields if row["verdict"] not in {"match", "better"}]
    assert (row["field"], row["verdict"]) == (field, verdict)
    assert (row["promised"], row["measured"]) == (BODY["promise"][field], measured)
    assert str(BODY["promise"][field]) in row["reason"]
    listing.refresh_from_db()
    assert (listing.state, listing.current_revision) == (ListingState.REFUSED, None)
    assert Listing.objects.on_sale().count() == 0
    event = Event.objects.get(subject=listing.public_id, kind="listing.refused")
    assert [finding["field"] for finding in event.data["findings"]] == [field]


def test_a_figure_in_another_unit_is_no_measurement(world: World, now: datetime) -> None:
    node = admitted_node(world, now=now, memory_mib=None)
    facts = facts_of(BODY["promise"])
    facts["memory_mib"] = {"value": 1024, "unit": "GiB", "method": "misread"}
    show_evidence(node, facts, at=now)
    found = check(publish(world, node, now), now)
    assert found is not None
    [row] = [row for row in found.fields if row["field"] == "memory_mib"]
    assert row["verdict"] == "not_measured"
    assert "1024 GiB" in row["reason"]


@pytest.mark.parametrize("state", ["held_back", "fenced"])
def test_only_an_admitted_node_is_listed(world: World, now: datetime, state: str) -> None:
    listing = publish(world, admitted_node(world, now=now, state=state), now)
    found = check(listing, now)
    assert found is not None
    assert not found.accepted
    assert found.fields[0]["field"] == "node"
    assert found.fields[0]["measured"] == state


def test_a_node_that_is_proving_makes_its_listing_wait(world: World, now: datetime) -> None:
    node = admitted_node(world, now=now, state="proving")
    listing = publish(world, node, now)
    assert check(listing, now) is None
    Node.objects.filter(pk=node.pk).update(state="admitted")
    found = check(listing, now)
    assert found is not None
    assert found.accepted


def test_a_published_listing_leaves_the_catalogue_with_its_node(
    world: World, now: datetime
) -> None:
    listing = published_listing(world, now=now)
    Node.objects.filter(pk=listing.node_id).update(state="fenced")
    assert Listing.objects.on_sale().count() == 0


def test_an_edit_writes_a_new_revision_and_leaves_the_old_one(world: World, now: datetime) -> None:
    """R-A10 (api): an edit never touches the revision that a lease was signed on."""
    listing = published_listing(world, now=now)
    signed = listing.current_revision
    assert signed is not None
    before = (bytes(signed.canonical), bytes(signed.digest), signed.body)

    publish(world, listing.node, now, listing=listing, body=body_with(price__amount_micros=60_000))
    listing.refresh_from_db()
    assert listing.state == ListingState.CHECKING
    assert listing.price_micros_per_hour == 50_000
    check(listing, now)

    listing.refresh_from_db()
    signed.refresh_from_db()
    assert (bytes(signed.canonical), bytes(signed.digest), signed.body) == before
    assert listing.current_revision != signed
    assert listing.price_micros_per_hour == 60_000
    assert [revision.number for revision in listing.revisions.all()] == [2, 1]


def test_a_revision_can_be_neither_changed_nor_removed(world: World, now: datetime) -> None:
    """R-A10 (api): the database itself refuses to change a revision."""
    revision = published_listing(world, now=now).revisions.get()
    for sql in ("UPDATE listings_revision SET number = 9", "DELETE FROM listings_revision"):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)
    revision.refresh_from_db()
    assert revision.number == 1


def test_a_refused_edit_leaves_on_sale_what_buyers_saw(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    publish(world, listing.node, now, listing=listing, body=body_with(promise__cpu_cores=64))
    found = check(listing, now)
    assert found is not None
    assert not found.accepted
    listing.refresh_from_db()
    assert listing.state == ListingState.PUBLISHED
    assert listing.current_revision is not None
    assert listing.current_revision.number == 1


def test_a_refused_edit_keeps_nothing_on_sale_that_is_no_longer_true(
    world: World, now: datetime
) -> None:
    listing = published_listing(world, now=now)
    show_evidence(listing.node, facts_of(BODY["promise"], cpu_cores=1), at=now)
    publish(world, listing.node, now, listing=listing, body=body_with(promise__cpu_cores=64))
    check(listing, now)
    listing.refresh_from_db()
    assert listing.state == ListingState.REFUSED


def test_new_evidence_takes_a_broken_promise_off_the_catalogue(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    assert listings_overtaken().count() == 0
    later = now + timedelta(minutes=1)
    show_evidence(listing.node, facts_of(BODY["promise"], compute_gops=1), at=later)
    assert listings_overtaken().get() == listing
    found = checks.recheck_listing(listing=listing, now=later)
    assert found is not None
    assert not found.accepted
    listing.refresh_from_db()
    assert listing.state == ListingState.REFUSED
    assert listings_overtaken().count() == 0


def test_new_evidence_that_agrees_refreshes_what_is_shown(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    later = now + timedelta(minutes=1)
    show_evidence(listing.node, facts_of(BODY["promise"], compute_gops=25), at=later)
    checks.recheck_listing(listing=listing, now=later)
    listing.refresh_from_db()
    assert (listing.state, listing.measured_gops) == (ListingState.PUBLISHED, 25)
    assert listings_overtaken().count() == 0


def test_a_refused_listing_is_published_by_evidence_alone(world: World, now: datetime) -> None:
    """R-A11 (page): what was refused is checked again when its node shows more, and says so."""
    node = admitted_node(world, now=now, compute_gops=1)
    listing = publish(world, node, now)
    refused = check(listing, now)
    assert refused is not None
    assert not refused.accepted
    assert listings_overtaken().count() == 0
    later = now + timedelta(minutes=1)
    show_evidence(node, facts_of(BODY["promise"]), at=later)
    assert listings_overtaken().get() == listing

    found = checks.recheck_listing(listing=listing, now=later)

    assert found is not None
    assert found.accepted
    listing.refresh_from_db()
    assert (listing.state, listing.revisions.count()) == (ListingState.PUBLISHED, 1)
    assert listing.current_revision == listing.revisions.get()
    told = Event.objects.filter(subject=listing.public_id).order_by("id")
    assert [event.kind for event in told][-2:] == ["listing.refused", "listing.published"]
    assert listings_overtaken().count() == 0


def test_a_refused_listing_stays_refused_by_evidence_that_falls_short(
    world: World, now: datetime
) -> None:
    """R-A11 (page): less than was promised is refused again, once for each new evidence."""
    listing = publish(world, admitted_node(world, now=now, compute_gops=1), now)
    check(listing, now)
    later = now + timedelta(minutes=1)
    show_evidence(listing.node, facts_of(BODY["promise"], compute_gops=2), at=later)

    found = checks.recheck_listing(listing=listing, now=later)

    assert found is not None
    assert [row["measured"] for row in found.fields if row["field"] == "compute_gops"] == [2]
    listing.refresh_from_db()
    assert listing.state == ListingState.REFUSED
    assert listings_overtaken().count() == 0


def test_a_refused_edit_is_put_on_sale_by_evidence_alone(world: World, now: datetime) -> None:
    """R-A11 (page): the newest text of a listing on sale is offered as soon as its node shows it."""
    listing = published_listing(world, now=now)
    earlier = listing.current_revision
    promise = {**BODY["promise"], "compute_gops": 40}
    publish(world, listing.node, now, listing=listing, body={**BODY, "promise": promise})
    check(listing, now)
    listing.refresh_from_db()
    assert (listing.state, listing.current_revision) == (ListingState.PUBLISHED, earlier)
    for minutes, gops in ((1, 30), (2, 40)):
        later = now + timedelta(minutes=minutes)
        show_evidence(listing.node, facts_of(BODY["promise"], compute_gops=gops), at=later)
        checks.recheck_listing(listing=listing, now=later)
        listing.refresh_from_db()
        assert listing.state == ListingState.PUBLISHED
        assert (listing.current_revision == earlier) == (gops < 40)
        assert listings_overtaken().count() == 0
    kinds = Event.objects.filter(subject=listing.public_id).values_list("kind", flat=True)
    assert list(kinds).count("listing.edit_refused") == 2


def test_a_withdrawn_listing_is_not_brought_back_by_evidence(world: World, now: datetime) -> None:
    listing = publish(world, admitted_node(world, now=now, compute_gops=1), now)
    check(listing, now)
    withdrawn = publishing.withdraw(actor=world.actor(world.carol), listing=listing, now=now)
    later = now + timedelta(minutes=1)
    show_evidence(listing.node, facts_of(BODY["promise"]), at=later)
    assert listings_overtaken().count() == 0
    assert checks.recheck_listing(listing=withdrawn, now=later) is None


def test_publishing_the_same_text_twice_changes_nothing(world: World, now: datetime) -> None:
    node = admitted_node(world, now=now)
    first = publish(world, node, now)
    again = publish(world, node, now)
    check(first, now)
    published = publish(world, node, now, listing=first)
    assert first.pk == again.pk == published.pk
    assert (Listing.objects.count(), Revision.objects.count()) == (1, 1)
    assert check(first, now) is None
    assert RevisionCheck.objects.count() == 1


def test_a_check_of_an_overtaken_revision_does_nothing(world: World, now: datetime) -> None:
    node = admitted_node(world, now=now)
    listing = publish(world, node, now)
    first = listing.revisions.get()
    publish(world, node, now, listing=listing, body=body_with(title="Second"))
    assert checks.check_revision(revision=first, now=now) is None
    listing.refresh_from_db()
    assert listing.state == ListingState.CHECKING


def test_a_bad_body_changes_nothing(world: World, now: datetime) -> None:
    node = admitted_node(world, now=now)
    with pytest.raises(InvalidInput):
        publish(world, node, now, body=body_with(price__amount_micros=-1))
    assert Listing.objects.count() == Event.objects.count() == 0


def test_strangers_cannot_publish_on_a_node_that_is_not_theirs(world: World, now: datetime) -> None:
    node = admitted_node(world, now=now)
    dave = world.actor(world.dave)
    with pytest.raises(NotVisible):
        publishing.publish(actor=dave, provider=world.provider, node=node, body=BODY, now=now)
    with pytest.raises(NotVisible):
        publishing.publish(
            actor=dave, provider=world.strangers_provider, node=node, body=BODY, now=now
        )
    assert Listing.objects.count() == 0


def test_a_viewer_cannot_publish(world: World, now: datetime) -> None:
    node = admitted_node(world, now=now)
    world.carol.memberships.update(role="viewer")
    with pytest.raises(NotAllowed):
        publish(world, node, now)


def test_a_stale_edit_is_refused(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    seen = publishing.version_of(listing)
    body = body_with(price__amount_micros=60_000)
    publish(world, listing.node, now, listing=listing, body=body, expected_version=seen)
    with pytest.raises(publishing.ListingHasChanged):
        publish(world, listing.node, now, listing=listing, body=BODY, expected_version=seen)
    assert listing.revisions.count() == 2


def test_a_withdrawn_listing_is_off_the_catalogue_and_can_return(
    world: World, now: datetime
) -> None:
    listing = published_listing(world, now=now)
    carol = world.actor(world.carol)
    publishing.withdraw(actor=carol, listing=listing, now=now)
    publishing.withdraw(actor=carol, listing=listing, now=now)
    assert Listing.objects.on_sale().count() == 0
    assert Event.objects.filter(kind="listing.withdrawn").count() == 1
    listing.refresh_from_db()
    publish(world, listing.node, now, listing=listing)
    check(listing, now)
    listing.refresh_from_db()
    assert listing.state == ListingState.PUBLISHED


def test_a_move_from_another_state_is_refused(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    stale = Listing.objects.get(pk=listing.pk)
    publishing.withdraw(actor=world.actor(world.carol), listing=listing, now=now)
    with pytest.raises(WrongState):
        publishing.move_listing(listing=stale, to=ListingState.CHECKING)
    with pytest.raises(WrongState):
        publishing.move_listing(listing=Listing.objects.get(), to=ListingState.PUBLISHED)


def test_a_simulated_node_makes_a_simulated_listing(world: World, now: datetime) -> None:
    assert published_listing(world, now=now, simulated=True).simulated
