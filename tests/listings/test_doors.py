"""Three doors, one service: form, API and agent accept and refuse alike, in the same words."""

import math
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.test import Client

from fabric.accounts.access import actor_of_person
from fabric.accounts.models import Membership
from fabric.accounts.services.api_keys import issue_key
from fabric.lib.clock import utc_now
from fabric_protocol import canonical, dsse, keys, payloads
from listings.domain.bodies import read_body
from listings.models import Listing, Revision
from listings.services import checks
from providers.models import Node, NodeKey
from tests.listings.bodies import BODY, body_with
from tests.listings.doors import form_data
from tests.listings.machines import admitted_node, published_listing
from tests.providers.agents import TestAgent
from tests.world import World

Refusals = dict[str, tuple[str, str]]
Door = Callable[[dict[str, Any]], tuple[int, Refusals]]


@pytest.fixture
def node(world: World) -> Node:
    """Carol's node, proved and admitted."""
    return admitted_node(world, now=utc_now())


@pytest.fixture
def agent(node: Node) -> TestAgent:
    """The agent on Carol's node."""
    return agent_of(node)


def agent_of(node: Node) -> TestAgent:
    key = keys.SigningKey.generate()
    NodeKey.objects.create(
        node=node,
        key_id=key.key_id,
        public_key=key.public_bytes,
        active_from=utc_now() - timedelta(minutes=5),
    )
    return TestAgent(key=key, node_id=node.public_id)


def seal(agent: TestAgent, document: Any, key: keys.SigningKey | None = None) -> bytes:
    return dsse.seal(payloads.LISTING, canonical.dumps(document), key or agent.key)


def named(errors: list[dict[str, str]]) -> Refusals:
    """Return reasons by field, whether the body is the whole document or a part of it."""
    places = [error["pointer"].removeprefix("/body").lstrip("/") for error in errors]
    return {
        place.replace("/", "."): (error["detail"], error["accepted"])
        for place, error in zip(places, errors, strict=True)
    }


def through_agent(agent: TestAgent) -> Door:
    def knock(body: dict[str, Any]) -> tuple[int, Refusals]:
        reply = agent.post("listings/", seal(agent, {"listing_id": None, "body": body}))
        return reply.status, named(reply.body.get("errors", []))

    return knock


def through_api(world: World, node: Node) -> Door:
    membership = Membership.objects.get(user=world.carol)
    text, _ = issue_key(
        actor=actor_of_person(world.carol, membership),
        created_by=world.carol,
        project=world.northwind_project,
        name="doors",
        scopes=["provider:write"],
        now=utc_now(),
    )

    def knock(body: dict[str, Any]) -> tuple[int, Refusals]:
        response = Client().post(
            "/api/v1/listings/",
            {"node": node.public_id, "body": body},
            content_type="application/json",
            headers={"Authorization": f"Bearer {text}", "Idempotency-Key": str(uuid.uuid4())},
        )
        return response.status_code, named(response.json().get("errors", []))

    return knock


def through_form(world: World, node: Node) -> Door:
    def knock(body: dict[str, Any]) -> tuple[int, Refusals]:
        response = world.client(world.carol).post(
            "/provider/listings/new/", {**form_data(body), "node": node.public_id}
        )
        if response.status_code == 302:
            return 201, {}
        return response.status_code, form_refusals(response.context["form"])

    return knock


def form_refusals(form: Any) -> Refusals:
    """Return what the page says beside each input, in the shape of the other doors."""
    said = [
        (name, message) if name != "__all__" else tuple(message.split(": ", 1))
        for name, messages in form.errors.items()
        for message in messages
    ]
    return {name: tuple(message.split("; accepted: ", 1)) for name, message in said}


@pytest.mark.parametrize(
    "changes",
    [
        {"promise__memory_mib": None},
        {"promise__memory_gib": 24},
        {"promise__memory_mib": 24},
        {"promise__memory_mib": "24 GiB"},
        {"promise__cpu_cores": -2},
        {"promise__unit_count": 0},
        {"promise__unit_count": 10**15},
        {"promise__compute_gops": 1.23456},
        {"promise__compute_gops": "NaN"},
        {"promise__disk_kind": "tape"},
        {"promise__device_class": "NVIDIA H100"},
        {"promise__unit_kind": "slice"},
        {"price__per_quantity": 60},
        {"price__meter_unit": "token"},
        {"price__currency": "USD"},
        {"title": None},
        {"title": "x" * 121},
        {"country": "XX"},
        {"colour": "red"},
        {"title": None, "country": "xx", "promise__disk_gib": -1, "promise__runtime": None},
    ],
)
def test_the_same_bad_body_is_refused_alike(
    world: World, node: Node, agent: TestAgent, changes: dict[str, Any]
) -> None:
    """R-A11 (page, api, agent): same fields, same reasons, same accepted values at every door."""
    body = body_with(**changes)
    by_agent = through_agent(agent)(body)
    assert by_agent[0] == 400
    assert by_agent[1]
    assert through_api(world, node)(body) == by_agent
    assert through_form(world, node)(body) == by_agent
    assert Listing.objects.count() == 0


@pytest.mark.parametrize("amount", ["-50000", "0", "NaN", "9" * 30])
def test_the_same_bad_price_is_refused_alike(
    world: World, node: Node, agent: TestAgent, amount: str
) -> None:
    """R-A11 (page, api, agent): negative, zero, NaN and huge prices; the page says it in dollars."""
    body = body_with(price__amount_micros=amount)
    status, refusals = through_agent(agent)(body)
    assert status == 400
    assert list(refusals) == ["price.amount_micros"]
    assert through_api(world, node)(body) == (status, refusals)
    form_status, shown = through_form(world, node)(body)
    assert (form_status, list(shown)) == (status, list(refusals))
    assert "dollars from 0.000001 to 10,000" in shown["price.amount_micros"][1]


def test_the_same_good_body_is_the_same_revision(
    world: World, node: Node, agent: TestAgent
) -> None:
    """R-A10, R-A11 (page, api, agent): one text has one digest, whichever door it came through."""
    for knock in (through_agent(agent), through_api(world, node), through_form(world, node)):
        assert knock(BODY) == (201, {})
    revision = Revision.objects.get()
    assert revision.body == BODY
    assert revision.created_by == node.public_id


def test_an_agent_publishes_and_revises_its_listing(world: World, agent: TestAgent) -> None:
    """R-A11 (agent): a sealed listing is published, and the next text revises it."""
    first = agent.post("listings/", seal(agent, {"listing_id": None, "body": BODY}))
    assert (first.status, first.body["state"]) == (201, "checking")
    listing = Listing.objects.get()
    checks.check_revision(revision=listing.revisions.get(), now=utc_now())
    body = body_with(price__amount_micros=60_000)
    again = agent.post("listings/", seal(agent, {"listing_id": listing.public_id, "body": body}))
    assert again.status == 201
    assert again.body["id"] == listing.public_id
    assert again.body["revision"]["number"] == 2


def test_an_agents_draft_promises_what_was_shown_and_is_accepted(
    world: World, agent: TestAgent
) -> None:
    """R-A11 (agent): the drafted listing needs a price, and then passes its own check."""
    draft = agent.get("listings/draft/").body
    assert draft["promise"]["device_class"] == "host-cpu"
    unpriced = agent.post("listings/", seal(agent, {"listing_id": None, "body": draft}))
    assert {error["pointer"].split("/")[1] for error in unpriced.body["errors"]} == {"price"}
    body = {**draft, "price": BODY["price"]}
    assert agent.post("listings/", seal(agent, {"listing_id": None, "body": body})).status == 201
    revision = Revision.objects.get()
    checks.check_revision(revision=revision, now=utc_now())
    assert Listing.objects.get().state == "published"


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"listing_id": None}, "/body"),
        ({"body": BODY, "listing": None}, "/listing"),
        ({"body": BODY, "listing_id": 7}, "/listing_id"),
        ({"body": [1], "listing_id": None}, "/body"),
        ({"body": body_with(price__amount_micros=0.5), "listing_id": None}, "/price/amount_micros"),
    ],
)
def test_what_is_no_listing_document_is_refused(
    agent: TestAgent, document: dict[str, Any], field: str
) -> None:
    reply = agent.post("listings/", seal(agent, document))
    assert reply.status == 400
    assert [error["pointer"] for error in reply.body["errors"]] == [field]


def test_only_the_nodes_own_seal_counts(agent: TestAgent) -> None:
    """R-A11 (agent): a listing sealed by another key, or for another purpose, is refused."""
    document = {"listing_id": None, "body": BODY}
    stranger = agent.post("listings/", seal(agent, document, keys.SigningKey.generate()))
    report = dsse.seal(payloads.REPORT, canonical.dumps(document), agent.key)
    for reply in (stranger, agent.post("listings/", report)):
        assert (reply.status, reply.code) == (400, "ENVELOPE_REFUSED")
    assert Listing.objects.count() == 0


def test_an_agent_reaches_no_listing_of_another_node(world: World, agent: TestAgent) -> None:
    theirs = published_listing(
        world, now=utc_now(), name="theirs", provider=world.strangers_provider
    )
    sibling = published_listing(world, now=utc_now(), name="sibling")
    for listing, status in ((theirs, 404), (sibling, 400)):
        document = {"listing_id": listing.public_id, "body": body_with(title="Taken over")}
        assert agent.post("listings/", seal(agent, document)).status == status
        assert listing.revisions.count() == 1


def test_not_a_number_never_reaches_a_price(world: World, node: Node) -> None:
    """R-A11 (api): JSON has no NaN, and a body that carries one is not read."""
    status, _ = through_api(world, node)(body_with(price__amount_micros=math.inf))
    assert status == 400
    assert Listing.objects.count() == 0


def test_the_example_file_is_a_listing() -> None:
    """R-A11 (agent): what the how-to shows can be published as it stands, once it is true."""
    path = Path(settings.BASE_DIR) / "docs" / "how-to" / "listing.yaml"
    body = read_body(yaml.safe_load(path.read_text()))
    assert body["promise"]["device_class"] == "host-cpu"
    assert len(body["promise"]) >= 12
