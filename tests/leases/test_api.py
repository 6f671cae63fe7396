"""Orders, leases and disputes through the REST API."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from fabric.accounts.models import Project
from fabric.lib.clock import utc_now
from fabric.lib.secrets import access_token
from leases.models import Lease, Order
from leases.services import disputes
from tests.leases.clients import addresses_of, key_client, order_body
from tests.leases.scene import BUDGET, MONEY, PRICE, Scene, build_scene, second
from tests.world import World

BODY_OF = {"top-ups": {"amount_micros": "100"}}


@pytest.fixture
def scene(world: World) -> Scene:
    """The scene at the clock's own time, since endpoints read the clock."""
    return build_scene(world, utc_now().replace(microsecond=0))


@pytest.fixture
def alice(scene: Scene) -> Client:
    return key_client(scene.world.alice)


def post(client: Client, path: str, body: dict[str, Any] | None = None, key: str = "k-1") -> Any:
    return client.post(
        path, json.dumps(body or {}), "application/json", headers={"Idempotency-Key": key}
    )


def metered(scene: Scene) -> Lease:
    """Return a running lease with one reading and one dispute about it."""
    start = datetime.fromtimestamp(int(scene.now.timestamp()) // 5 * 5 - 20, tz=UTC)
    scene.beat(start)
    lease = scene.running(now=start)
    scene.deliver(lease, scene.meter(lease).next(start), second(start, 5))
    disputes.open_dispute(
        actor=scene.alice,
        reading=lease.readings.get(),
        statement="Slow.",
        now=second(start, 6),
    )
    return scene.again(lease)


def test_an_order_is_placed_once_and_answers_with_its_lease(scene: Scene, alice: Client) -> None:
    """R-C1, R-C15 (api): the answer names the lease, and a repeat is the same answer."""
    first = post(alice, "/api/v1/orders/", order_body(scene))
    assert first.status_code == 201, first.json()
    assert first.json()["budget_micros"] == str(BUDGET)
    assert first["Location"].endswith(f"/api/v1/orders/{first.json()['id']}/")
    again = post(alice, "/api/v1/orders/", order_body(scene))
    assert (again.status_code, again.json()) == (201, first.json())
    assert Order.objects.count() == 1
    lease = alice.get(f"/api/v1/leases/{first.json()['lease']}/").json()
    assert (lease["state"], lease["is_charging"], lease["side"]) == ("provisioning", False, "buyer")
    money = {name: int(value) for name, value in lease["money"].items()}
    assert money["funded_micros"] == BUDGET == sum(money.values()) - money["funded_micros"]
    other = post(alice, "/api/v1/orders/", order_body(scene, budget_micros="1"))
    assert other.status_code == 422


def test_an_order_can_be_asked_about_without_being_placed(scene: Scene, alice: Client) -> None:
    """R-C15 (api): validate_only runs every rule and leaves nothing."""
    asked = post(alice, "/api/v1/orders/?validate_only=true", order_body(scene))
    assert asked.status_code == 201
    assert not Order.objects.exists()
    assert scene.wallet_micros() == MONEY


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"budget_micros": str(MONEY + 1)}, 402, "INSUFFICIENT_FUNDS"),
        ({"price_cap_micros_per_hour": str(PRICE - 1)}, 409, "PRICE_ABOVE_CAP"),
        ({"accepts_interruption": False}, 409, "CONSENT_MISSING"),
        ({"budget_micros": "-5"}, 400, ""),
        ({"budget_micros": "NaN"}, 400, ""),
        ({"budget_micros": "1e9"}, 400, ""),
        ({"budget_micros": "99999999999999999999"}, 400, ""),
        ({"budget_micros": 500}, 400, ""),
        ({"max_seconds": 0}, 400, ""),
        ({"surprise": 1}, 400, ""),
        ({"listing": "lst_nonsense"}, 404, "NOT_FOUND"),
        ({"project": "prj_00000000000000000000000000"}, 404, "NOT_FOUND"),
    ],
)
def test_a_refused_order_says_why_and_leaves_nothing(
    scene: Scene, alice: Client, changes: dict[str, Any], status: int, code: str
) -> None:
    """R-C1 (api): every refusal is a problem with a stable code."""
    refused = post(alice, "/api/v1/orders/", order_body(scene, **changes))
    assert refused.status_code == status, refused.json()
    assert refused["Content-Type"] == "application/problem+json"
    assert refused.json()["code"] == code or not code
    assert not Order.objects.exists()
    assert scene.wallet_micros() == MONEY


def test_an_order_needs_an_idempotency_key(scene: Scene, alice: Client) -> None:
    """R-C15 (api): money does not move on a request that cannot be repeated safely."""
    refused = alice.post("/api/v1/orders/", json.dumps(order_body(scene)), "application/json")
    assert (refused.status_code, refused.json()["code"]) == (400, "IDEMPOTENCY_KEY_MISSING")


def test_a_taken_unit_is_a_conflict_that_names_alternatives(scene: Scene, alice: Client) -> None:
    """R-C2 (api): no unit is in two live leases."""
    post(alice, "/api/v1/orders/", order_body(scene))
    taken = post(alice, "/api/v1/orders/", order_body(scene), key="k-2")
    assert (taken.status_code, taken.json()["code"]) == (409, "UNITS_NOT_FREE")


def test_the_life_of_a_lease_through_the_api(scene: Scene, alice: Client) -> None:
    """R-C15, R-C5, R-C7 (api): read, top up, dispute, withdraw, end; each step is an endpoint."""
    lease = metered(scene)
    path = f"/api/v1/leases/{lease.public_id}/"

    readings = alice.get(f"{path}readings/").json()["data"]
    assert len(readings) == 1
    assert readings[0]["claimed_seconds"] == readings[0]["ready_seconds"] == 5
    assert len(readings[0]["conformity"]) >= 12
    assert readings[0]["line_state"] == "disputed"
    envelope = alice.get(f"/api/v1/batches/{readings[0]['batch']}/envelope/")
    assert envelope["Content-Type"] == "application/vnd.dsse.envelope.v1+json"
    assert json.loads(envelope.content)["signatures"][0]["keyid"] == scene.key.key_id

    topped = post(alice, f"{path}top-ups/", {"amount_micros": "500"}, key="t-1")
    assert topped.status_code == 201
    assert topped.json()["money"]["funded_micros"] == str(BUDGET + 500)

    dispute = alice.get("/api/v1/disputes/?state=open").json()["data"][0]
    assert dispute["held_micros"] == readings[0]["amount_micros"]
    withdrawn = post(alice, f"/api/v1/disputes/{dispute['id']}/withdrawal/")
    assert (withdrawn.status_code, withdrawn.json()["outcome"]) == (200, "withdrawn")
    again = post(alice, "/api/v1/disputes/", {"reading": readings[0]["id"], "statement": "No."})
    assert (again.status_code, again.json()["code"]) == (409, "ALREADY_DISPUTED")

    ended = post(alice, f"{path}ending/", key="e-1")
    assert (ended.status_code, ended.json()["state"]) == (200, "ending")
    assert ended.json()["end_reason"] == "buyer_ended"
    kinds = [event["kind"] for event in alice.get(f"{path}events/").json()["data"]]
    assert kinds[0] == "lease.began_ending"
    assert kinds[-1] == "lease.was_ordered"
    lines = alice.get(f"{path}lines/").json()["lines"]
    for line in lines:
        assert sum(int(leg["amount_micros"]) for leg in line["legs"]) == 0
    assert {"order", "reserve", "settle", "return"} <= {line["kind"] for line in lines}


def test_the_token_is_shown_once(scene: Scene, alice: Client) -> None:
    """R-E1 (api): a second look is refused; a repeat of the same request is the same answer."""
    lease = metered(scene)
    path = f"/api/v1/leases/{lease.public_id}/access-token/"
    shown = post(alice, path)
    assert shown.json()["access_token"] == access_token(lease.public_id)
    assert post(alice, path).json() == shown.json()
    refused = post(alice, path, key="k-2")
    assert (refused.status_code, refused.json()["code"]) == (409, "TOKEN_ALREADY_SHOWN")
    assert (
        access_token(lease.public_id) not in alice.get(path.replace("-token", "")).content.decode()
    )


def test_another_tenants_objects_do_not_exist(scene: Scene) -> None:
    """R-C2 (api): every address of a lease answers a stranger as if there were nothing."""
    lease = metered(scene)
    dave = key_client(scene.world.dave)
    before = scene.again(lease)
    for method, path in addresses_of(lease):
        body = next((body for part, body in BODY_OF.items() if part in path), {})
        answer = dave.get(path) if method == "GET" else post(dave, path, body, key=path)
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND"), path
    assert scene.again(lease).state == before.state
    for listed in ("orders", "leases", "disputes"):
        assert dave.get(f"/api/v1/{listed}/").json()["data"] == []


def test_a_key_of_another_project_sees_nothing_of_this_one(scene: Scene) -> None:
    """R-C19 (api): a key belongs to one project, also within its organisation."""
    lease = metered(scene)
    other = Project.objects.create(organisation=scene.world.meridian, name="Another")
    client = key_client(scene.world.alice, project=other)
    for method, path in addresses_of(lease):
        body = next((body for part, body in BODY_OF.items() if part in path), {})
        answer = client.get(path) if method == "GET" else post(client, path, body, key=path)
        assert answer.status_code == 404, path


def test_the_provider_sees_the_lease_and_not_the_buyer(scene: Scene) -> None:
    """R-B8 (api): no name, id, project or wallet of the buyer is told to the provider."""
    lease = metered(scene)
    carol = key_client(scene.world.carol)
    told = ""
    for method, path in addresses_of(lease):
        if method == "GET" and "/orders/" not in path:
            answer = carol.get(path)
            assert answer.status_code == 200, path
            told += answer.content.decode()
    told += carol.get("/api/v1/leases/?side=provider").content.decode()
    detail = carol.get(f"/api/v1/leases/{lease.public_id}/").json()
    assert (detail["side"], detail["order"], detail["project"]) == ("provider", None, None)
    world = scene.world
    for secret in (
        "Meridian",
        world.meridian.public_id,
        world.alice.public_id,
        world.alice.email,
        world.project.public_id,
        world.project.name,
        lease.order.public_id,
        access_token(lease.public_id),
    ):
        assert secret not in told
    for verb in ("ending", "access-token"):
        refused = post(carol, f"/api/v1/leases/{lease.public_id}/{verb}/", key=verb)
        assert (refused.status_code, refused.json()["code"]) == (403, "NOT_ALLOWED")
    assert carol.get(f"/api/v1/orders/{lease.order.public_id}/").status_code == 404


def test_only_a_signed_in_operator_rules(scene: Scene, alice: Client) -> None:
    """R-C7 (api): no party's key decides its own dispute."""
    lease = metered(scene)
    path = f"/api/v1/disputes/{lease.disputes.get().public_id}/ruling/"
    body = {"stands_bps": 2500, "ruling": "Two of three readings agree."}
    for client in (alice, key_client(scene.world.carol)):
        refused = post(client, path, body)
        assert (refused.status_code, refused.json()["code"]) == (403, "NOT_ALLOWED")
    ruled = post(scene.world.client(scene.world.olga), path, body)
    assert ruled.status_code == 200, ruled.json()
    assert (ruled.json()["outcome"], ruled.json()["stands_bps"]) == ("partly_upheld", 2500)
