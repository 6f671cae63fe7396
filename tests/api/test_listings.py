"""The catalogue and publishing through the REST API."""

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from listings.models import Listing, Revision
from listings.services import checks
from tests.listings.bodies import BODY, body_with
from tests.listings.machines import admitted_node, published_listing
from tests.world import World

ApiClient = Callable[..., Client]
URL = "/api/v1/listings/"


def post(client: Client, url: str, data: Any, **headers: str) -> Any:
    headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
    return client.post(url, data, content_type="application/json", headers=headers)


def put(client: Client, url: str, data: Any, **headers: str) -> Any:
    return client.put(url, data, content_type="application/json", headers=headers)


def test_a_listing_is_published_and_then_read_by_anyone(
    world: World, now: datetime, api: ApiClient
) -> None:
    """R-A11, R-C15 (api): a provider publishes; the public reads promise, evidence and advice."""
    node = admitted_node(world, now=now)
    carol = api(world.carol)
    answer = post(carol, URL, {"node": node.public_id, "body": BODY})
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["state"], made["promise"]) == ("checking", BODY["promise"])
    url = answer["Location"].removeprefix("http://testserver")
    anyone = Client()
    assert anyone.get(url).status_code == 404

    revision = Revision.objects.get()
    checks.check_revision(revision=revision, now=now)

    shown = anyone.get(url).json()
    assert shown["state"] == "published"
    assert shown["revision"]["digest"] == bytes(revision.digest).hex()
    assert shown["price"]["amount_micros"] == "50000"
    assert shown["normalised_price"] == {
        "per_accelerator_hour_micros": "50000",
        "per_gib_hour_micros": "50000",
        "per_1000_tops_hour_micros": "2439024390",
    }
    rows = {row["field"]: row for row in shown["check"]["fields"]}
    assert set(rows) == set(BODY["promise"])
    assert rows["compute_gops"]["measured"] == 20.5
    assert rows["compute_gops"]["source"].startswith("chl_")
    assert rows["cpu_cores"]["source"].startswith("rpt_")
    assert [item["work"] for item in shown["advice"] if item["suits"]] == ["batch"]
    text = anyone.get(f"{url}revisions/1/").json()
    assert text["canonical"].encode() == bytes(revision.canonical)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"promise__memory_mib": None}, "/body/promise/memory_mib"),
        ({"promise__memory_gib": 1}, "/body/promise/memory_gib"),
        ({"price__amount_micros": "-5"}, "/body/price/amount_micros"),
        ({"title": None}, "/body/title"),
    ],
)
def test_a_bad_field_is_named_where_it_stands(
    world: World, now: datetime, api: ApiClient, changes: dict[str, Any], pointer: str
) -> None:
    """R-A11 (api): a refusal points at the field and says what would be accepted."""
    node = admitted_node(world, now=now)
    answer = post(api(world.carol), URL, {"node": node.public_id, "body": body_with(**changes)})
    assert answer.status_code == 400
    problem = answer.json()
    assert problem["code"] == "INVALID_INPUT"
    [error] = problem["errors"]
    assert error["pointer"] == pointer
    assert error["detail"]
    assert error["accepted"]
    assert Listing.objects.count() == 0


def test_publishing_needs_a_key_an_idempotency_key_and_the_scope(
    world: World, now: datetime, api: ApiClient
) -> None:
    node = admitted_node(world, now=now)
    data = {"node": node.public_id, "body": BODY}
    assert post(Client(), URL, data).status_code == 401
    assert post(api(world.carol, ["catalogue:read"]), URL, data).status_code == 403
    missing = api(world.carol).post(URL, data, content_type="application/json")
    assert (missing.status_code, missing.json()["code"]) == (400, "IDEMPOTENCY_KEY_MISSING")
    assert Listing.objects.count() == 0


def test_the_same_request_twice_publishes_once(world: World, now: datetime, api: ApiClient) -> None:
    node = admitted_node(world, now=now)
    carol = api(world.carol)
    data = {"node": node.public_id, "body": BODY}
    first = post(carol, URL, data, **{"Idempotency-Key": "one"})
    again = post(carol, URL, data, **{"Idempotency-Key": "one"})
    assert first.json() == again.json()
    assert again["Idempotency-Replayed"] == "true"
    assert Listing.objects.count() == 1


def test_validating_only_says_what_would_happen_and_changes_nothing(
    world: World, now: datetime, api: ApiClient
) -> None:
    node = admitted_node(world, now=now)
    carol = api(world.carol)
    url = f"{URL}?validate_only=true"
    good = post(carol, url, {"node": node.public_id, "body": BODY})
    bad = post(carol, url, {"node": node.public_id, "body": body_with(title=None)})
    assert (good.status_code, bad.status_code) == (201, 400)
    assert Listing.objects.count() == Revision.objects.count() == 0


def test_another_providers_node_and_listing_do_not_exist(
    world: World, now: datetime, api: ApiClient
) -> None:
    listing = published_listing(world, now=now)
    dave = api(world.dave)
    node = listing.node.public_id
    assert post(dave, URL, {"node": node, "body": BODY}).status_code == 404
    url = f"{URL}{listing.public_id}/"
    assert dave.get(url).status_code == 200
    assert put(dave, url, {"body": BODY}, **{"If-Match": "*"}).status_code == 404
    assert post(dave, f"{url}withdrawal/", {}, **{"If-Match": "*"}).status_code == 404
    assert dave.get("/api/v1/provider/listings/").json()["data"] == []


def test_an_edit_names_the_version_it_edits(world: World, now: datetime, api: ApiClient) -> None:
    """R-A10 (api): an edit is a new revision, and a stale one is refused."""
    listing = published_listing(world, now=now)
    carol = api(world.carol)
    url = f"{URL}{listing.public_id}/"
    body = body_with(price__amount_micros="60000")
    seen = carol.get(url)["ETag"]
    assert put(carol, url, {"body": body}).status_code == 428

    edited = put(carol, url, {"body": body}, **{"If-Match": seen})
    assert edited.status_code == 200
    assert edited.json()["price"]["amount_micros"] == "50000"
    assert [item["number"] for item in edited.json()["revisions"]] == [2, 1]
    stale = put(carol, url, {"body": BODY}, **{"If-Match": seen})
    assert (stale.status_code, stale.json()["code"]) == (412, "PRECONDITION_FAILED")

    checks.check_revision(revision=listing.revisions.all()[0], now=now)
    assert Client().get(url).json()["price"]["amount_micros"] == "60000"


def test_withdrawing_takes_it_off_the_catalogue(
    world: World, now: datetime, api: ApiClient
) -> None:
    listing = published_listing(world, now=now)
    carol = api(world.carol)
    url = f"{URL}{listing.public_id}/"
    assert post(carol, f"{url}withdrawal/", {}).status_code == 428
    answer = post(carol, f"{url}withdrawal/", {}, **{"If-Match": carol.get(url)["ETag"]})
    assert (answer.status_code, answer.json()["state"]) == (200, "withdrawn")
    assert Client().get(url).status_code == 404
    assert Client().get(URL).json()["data"] == []


def test_a_refused_draft_stays_with_its_provider(
    world: World, now: datetime, api: ApiClient
) -> None:
    listing = published_listing(world, now=now)
    carol = api(world.carol)
    url = f"{URL}{listing.public_id}/"
    draft = body_with(promise__cpu_cores=64)
    put(carol, url, {"body": draft}, **{"If-Match": carol.get(url)["ETag"]})
    checks.check_revision(revision=listing.revisions.all()[0], now=now)

    own = carol.get(url).json()
    assert own["newest_check"]["accepted"] is False
    assert own["promise"]["cpu_cores"] == 2
    public = Client().get(url).json()
    assert [item["number"] for item in public["revisions"]] == [1]
    assert Client().get(f"{url}revisions/2/").status_code == 404
    assert carol.get(f"{url}revisions/2/").status_code == 200


def test_the_catalogue_is_public_filtered_and_paged(world: World, now: datetime) -> None:
    """R-A6, R-C15 (api): search by what is promised, a page at a time, in a published order."""
    cheap = published_listing(world, now=now, name="a")
    dear = published_listing(
        world, now=now, name="b", body=body_with(price__amount_micros="90000", title="Dear")
    )
    other = published_listing(
        world, now=now, name="c", body=body_with(promise__memory_mib=2048, region="eu-west")
    )
    anyone = Client()

    def ids(query: str) -> list[str]:
        answer = anyone.get(f"{URL}{query}")
        assert answer.status_code == 200, answer.content
        return [row["id"] for row in answer.json()["data"]]

    assert set(ids("")) == {cheap.public_id, dear.public_id, other.public_id}
    assert ids("?memory_mib_min=2048") == [other.public_id]
    assert ids("?region=eu-west") == [other.public_id]
    assert ids("?price_max=0.06&memory_mib_max=1500") == [cheap.public_id]
    assert ids("?suits=training") == []
    assert len(ids("?suits=batch&suits=none")) == 3
    assert ids("?sort=-price")[0] == dear.public_id
    assert ids("?simulated=yes") == []
    assert ids("?device_class=nvidia-h100-80gb-sxm") == []
    first = anyone.get(f"{URL}?limit=2&sort=price").json()
    rest = anyone.get(f"{URL}?limit=2&sort=price&cursor={first['next_cursor']}").json()
    assert [len(first["data"]), len(rest["data"])] == [2, 1]
    assert rest["data"][0]["id"] == dear.public_id


@pytest.mark.parametrize("query", ["?memory_gib=24", "?price_max=nan", "?tier=best", "?sort=fame"])
def test_a_filter_that_is_not_understood_is_refused(world: World, query: str) -> None:
    """R-A11 (api): an unknown or wrong filter is an error, never silently left out."""
    answer = Client().get(f"{URL}{query}")
    assert answer.status_code == 400
    assert query[1:].split("=", maxsplit=1)[0] in answer.json()["errors"][0]["pointer"]


def test_a_page_of_the_catalogue_costs_one_query(
    world: World, now: datetime, django_assert_num_queries: Any
) -> None:
    for name in "abcde":
        published_listing(world, now=now, name=name)
    with django_assert_num_queries(1):
        assert len(Client().get(URL).json()["data"]) == 5
