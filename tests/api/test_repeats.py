"""The same request, sent more than once."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from fabric.accounts.models import ApiKey, Project
from fabric.journal.models import IdempotencyKey
from fabric.journal.tasks import forget_expired_keys_task
from fabric.lib.clock import utc_now
from tests.world import World

URL = "/api/v1/projects/"


def post(
    client: Client, body: object, key: str | None, url: str = URL
) -> tuple[int, dict[str, Any], Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    response = client.post(url, json.dumps(body), content_type="application/json", headers=headers)
    return response.status_code, response.json(), response


def test_a_repeated_request_is_answered_from_the_first(world: World, api) -> None:
    """R-C19 (api): the same key and body make one project and one answer, marked as replayed."""
    client = api(world.alice)
    first = post(client, {"name": "Atlas"}, "k-1")
    again = post(client, {"name": "Atlas"}, '"k-1"')
    assert (first[0], again[0]) == (201, 201)
    assert again[1] == first[1]
    assert again[2].headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first[2].headers
    assert Project.objects.filter(name="Atlas").count() == 1


def test_another_body_under_the_same_key_is_refused(world: World, api) -> None:
    client = api(world.alice)
    post(client, {"name": "Atlas"}, "k-1")
    status, body, _ = post(client, {"name": "Other"}, "k-1")
    assert (status, body["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert not Project.objects.filter(name="Other").exists()


def test_the_order_of_names_in_the_body_does_not_matter(world: World, api) -> None:
    client = api(world.alice)
    first = post(client, {"name": "Atlas", "budget_micros": "5"}, "k-1")
    again = post(client, {"budget_micros": "5", "name": "Atlas"}, "k-1")
    assert again[1] == first[1]


def test_tenants_and_routes_do_not_share_keys(world: World, api) -> None:
    assert post(api(world.alice), {"name": "Atlas"}, "k-1")[0] == 201
    other = post(api(world.dave), {"name": "Atlas"}, "k-1")
    assert other[0] == 201
    assert "Idempotency-Replayed" not in other[2].headers
    body = {"project": world.project.public_id, "name": "n", "scopes": ["account:read"]}
    assert post(api(world.alice), body, "k-1", "/api/v1/api-keys/")[0] == 201


def test_a_request_in_flight_is_not_done_twice(world: World, api) -> None:
    client = api(world.alice)
    post(client, {"name": "Atlas"}, "k-1")
    IdempotencyKey.objects.update(status=None, body=None)
    status, body, response = post(client, {"name": "Atlas"}, "k-1")
    assert (status, body["code"], body["retryable"]) == (409, "IDEMPOTENCY_IN_PROGRESS", True)
    assert response.headers["Retry-After"] == "1"


def test_a_claim_whose_holder_died_is_taken_over(world: World, api) -> None:
    client = api(world.alice)
    post(client, {"name": "Atlas"}, "k-1")
    Project.objects.filter(name="Atlas").delete()
    dead = utc_now() - timedelta(seconds=61)
    IdempotencyKey.objects.update(status=None, body=None, claimed_at=dead)
    assert post(client, {"name": "Atlas"}, "k-1")[0] == 201
    assert Project.objects.filter(name="Atlas").count() == 1


def test_a_lasting_refusal_is_remembered_and_bad_input_is_not(world: World, api) -> None:
    client = api(world.alice)
    post(client, {"name": "Atlas"}, None)
    assert post(client, {"name": "Atlas"}, "k-1")[0] == 409
    Project.objects.filter(name="Atlas").update(name="Renamed")
    status, body, response = post(client, {"name": "Atlas"}, "k-1")
    assert (status, body["code"]) == (409, "PROJECT_NAME_TAKEN")
    assert response.headers["Idempotency-Replayed"] == "true"
    assert response.headers["Content-Type"] == "application/problem+json"

    assert post(client, {"name": ""}, "k-2")[0] == 400
    assert post(client, {"name": "Boreas"}, "k-2")[0] == 201


@pytest.mark.parametrize("key", ["", " ", '""', "x" * 256, "a\tb", "ключ"])
def test_a_key_that_is_none_is_refused(world: World, api, key: str) -> None:
    status, body, _ = post(api(world.alice), {"name": "Atlas"}, key)
    assert (status, body["code"]) == (400, "IDEMPOTENCY_KEY_INVALID")
    assert not Project.objects.filter(name="Atlas").exists()


def test_a_secret_is_replayed_but_not_stored_in_the_clear(world: World, api) -> None:
    client = api(world.alice)
    body = {"project": world.project.public_id, "name": "n", "scopes": ["account:read"]}
    first = post(client, body, "k-1", "/api/v1/api-keys/")
    again = post(client, body, "k-1", "/api/v1/api-keys/")
    assert again[1]["key"] == first[1]["key"]
    stored = IdempotencyKey.objects.get(route__contains="api-keys")
    assert first[1]["key"].encode() not in bytes(stored.body or b"")
    assert ApiKey.objects.filter(name="n").count() == 1


def test_fifty_at_once_have_one_effect(committed_db: None, world: World, api) -> None:
    """R-C15 (api): the same request fifty times at once is done once; the rest wait or replay."""
    clients = [api(world.alice) for _ in range(8)]

    def send(index: int) -> int:
        try:
            return post(clients[index % 8], {"name": "Atlas"}, "k-1")[0]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(send, range(50)))
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert Project.objects.filter(name="Atlas").count() == 1


def test_keys_are_forgotten_when_their_time_is_over(world: World, api) -> None:
    client = api(world.alice)
    post(client, {"name": "Atlas"}, "old")
    post(client, {"name": "Boreas"}, "new")
    IdempotencyKey.objects.filter(key="old").update(expires_at=utc_now() - timedelta(seconds=1))
    assert forget_expired_keys_task() == 1
    assert [key.key for key in IdempotencyKey.objects.all()] == ["new"]
    fresh = post(client, {"name": "Castor"}, "old")
    assert (fresh[0], "Idempotency-Replayed" in fresh[2].headers) == (201, False)


def test_an_expired_key_begins_anew_before_it_is_swept(world: World, api) -> None:
    client = api(world.alice)
    post(client, {"name": "Atlas"}, "k-1")
    IdempotencyKey.objects.update(expires_at=utc_now() - timedelta(seconds=1))
    status, body, _ = post(client, {"name": "Boreas"}, "k-1")
    assert (status, body["name"]) == (201, "Boreas")
