"""The front pages of a buyer and of a provider, and how an organisation becomes a provider."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fabric.lib.clock import utc_now
from fabric.web.provider_overview import read_overview
from leases.models import Lease, Reading
from leases.services import disputes
from providers.models import Node, Provider
from tests.leases.scene import Scene, build_scene, second
from tests.listings.machines import SLOW, admitted_node
from tests.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def start() -> datetime:
    """The beginning of a window a few seconds ago, so that pages find it recent."""
    now = utc_now().replace(microsecond=0)
    return now - timedelta(seconds=now.timestamp() % 5 + 10)


@pytest.fixture
def scene(world: World, start: datetime) -> Scene:
    return build_scene(world, start)


def run_short(scene: Scene, start: datetime) -> Lease:
    """Run one window in which the memory bandwidth fell far below what was promised."""
    lease = scene.running()
    meter = scene.meter(lease)
    body = meter.body(start)
    body["observed"]["memory_bandwidth_gb_s"] = 1.0
    scene.deliver(lease, meter.seal(body), second(start, 5))
    return lease


def show(world: World, who: str, path: str) -> str:
    answer = world.client(getattr(world, who)).get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_buyer_without_a_lease_is_shown_the_next_step(world: World) -> None:
    """R-B1 (page): the first screen of a buyer says what to do and how long it takes."""
    html = show(world, "alice", "/")
    assert "The first lease, in about five minutes" in html
    assert "Protein folding" in html


def test_a_buyer_sees_what_runs_whether_it_charges_and_what_fell_short(
    world: World, scene: Scene, start: datetime
) -> None:
    """R-C13 (page): open leases with their state, charge, verdict and money on one page."""
    lease = run_short(scene, start)
    html = show(world, "alice", "/")
    assert lease.public_id in html
    assert "charging" in html
    assert "Memory bandwidth" in html
    assert ">0.019" in html or ">0.01" in html  # what of the 0.02 in escrow is not yet promised


def test_a_provider_sees_nodes_units_leases_and_earnings(
    world: World, scene: Scene, start: datetime
) -> None:
    """R-A10 (page): nodes, health, leases and earnings by state on one page."""
    lease = run_short(scene, start)
    html = show(world, "carol", "/provider/")
    assert scene.node.name in html
    seen = read_overview(provider=world.provider, now=second(start, 6))
    assert seen.rows[0].strip.sentence == "1 leased"
    assert lease.public_id in html
    assert "Metered, open to dispute" in html
    assert "0 of 1" in html  # readings that met the promise


def test_a_provider_is_not_told_who_buys(world: World, scene: Scene, start: datetime) -> None:
    """R-E5 (page): neither the buyer's name nor its project reaches the provider."""
    run_short(scene, start)
    html = show(world, "carol", "/provider/")
    for secret in ("Meridian", "Protein", "alice@"):
        assert secret not in html


def test_what_holds_a_node_back_comes_first_with_its_code(world: World, start: datetime) -> None:
    """R-A5 (page): a node that is held back says why, and what to do."""
    admitted_node(world, now=start, name="bad-1", state="held_back")
    html = show(world, "carol", "/provider/")
    assert f"bad-1 is held back: {SLOW.code}" in html
    assert "1 action due" in html


def test_a_dispute_waits_on_both_front_pages(world: World, scene: Scene, start: datetime) -> None:
    run_short(scene, start)
    dispute = disputes.open_dispute(
        actor=scene.alice,
        reading=Reading.objects.get(),
        statement="Slow.",
        now=second(start, 6),
    )
    assert dispute.public_id in show(world, "alice", "/")
    assert "is disputed by the buyer" in show(world, "carol", "/provider/")


@pytest.mark.parametrize(("who", "path"), [("alice", "/"), ("carol", "/provider/")])
def test_more_of_everything_costs_no_more_queries(
    world: World, scene: Scene, start: datetime, who: str, path: str
) -> None:
    """R-E4 (page): a front page asks the database the same number of questions at any size."""
    run_short(scene, start)
    client = world.client(getattr(world, who))

    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert client.get(path).status_code == 200
        return len(queries)

    admitted_node(world, now=start, name="first")
    client.get(path)
    before = count()
    for number in range(3):
        admitted_node(world, now=start, name=f"more-{number}")
    assert count() == before
    assert before <= 24


def test_an_organisation_becomes_a_provider_by_describing_itself(world: World) -> None:
    """R-A1 (page): one form, then a node can be enrolled."""
    client = world.client(world.alice)
    assert "Become a provider" in client.get("/provider/").content.decode()
    answer = client.post("/provider/", {"country": "is", "region": "eu-north", "pool": "edge"})
    assert answer.status_code == 302
    provider = Provider.objects.get(organisation=world.meridian)
    assert (provider.country, provider.region, provider.pool) == ("IS", "eu-north", "edge")
    assert "Enrol a node" in client.get("/provider/").content.decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [("country", "Iceland"), ("country", "1S"), ("region", "EU North"), ("pool", "moon")],
)
def test_a_description_that_cannot_be_is_refused_by_field(
    world: World, field: str, value: str
) -> None:
    body = {"country": "IS", "region": "eu-north", "pool": "edge", field: value}
    answer = world.client(world.alice).post("/provider/", body)
    assert answer.status_code == 400
    assert f'id="id_{field}_error"' in answer.content.decode()
    assert not Provider.objects.filter(organisation=world.meridian).exists()


def test_a_viewer_offers_no_capacity(world: World) -> None:
    world.alice.memberships.update(role="viewer")
    client = world.client(world.alice)
    client.post("/provider/", {"country": "IS", "region": "eu-north", "pool": "edge"})
    assert not Provider.objects.filter(organisation=world.meridian).exists()
    assert "Your role may not offer capacity" in client.get("/provider/").content.decode()


def test_another_providers_nodes_are_not_on_my_page(world: World, start: datetime) -> None:
    """R-E5 (page): a provider's front page holds its own nodes only."""
    admitted_node(world, now=start, name="carols")
    assert "carols" not in show(world, "dave", "/provider/")
    assert Node.objects.count() == 1
