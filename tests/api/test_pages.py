"""Lists, a page at a time; entity tags; limits; versions; dry runs."""

from datetime import timedelta

import pytest
import time_machine
from django.test import override_settings

from fabric.accounts.models import ApiKey, Project
from fabric.lib.clock import utc_now
from tests.world import World

pytestmark = pytest.mark.django_db
URL = "/api/v1/api-keys/"
JSON = "application/json"


@pytest.fixture
def keys(world: World) -> list[ApiKey]:
    """Return twelve keys of Alice's project, newest first, two of them of one instant."""
    start = utc_now() - timedelta(days=1)
    made = [
        ApiKey.objects.create(
            project=world.project,
            name=f"key {number}",
            visible_prefix=f"fk_test_{number:08d}",
            digest=bytes([number]) * 32,
            scopes=["account:read"],
            created_by=world.alice,
            created_at=start + timedelta(minutes=number // 2),
        )
        for number in range(12)
    ]
    return sorted(made, key=lambda key: (key.created_at, key.id), reverse=True)


def walk(client, url: str) -> list[str]:
    names = []
    while True:
        page = client.get(url).json()
        names += [row["name"] for row in page["data"]]
        if not page["has_more"]:
            assert page["next_cursor"] is None
            return names
        url = f"{URL}?limit=5&cursor={page['next_cursor']}"


def test_walking_all_pages_finds_every_row_once_and_in_order(world: World, api, keys) -> None:
    """R-C15 (api): lists are walked by cursors; nothing is lost or repeated."""
    names = walk(api(world.alice), f"{URL}?limit=5")
    assert names == ["tests", *[key.name for key in keys]]


def test_rows_that_come_and_go_do_not_shift_the_walk(world: World, api, keys) -> None:
    client = api(world.alice)
    first = client.get(f"{URL}?limit=5").json()
    seen = [row["id"] for row in first["data"]]
    ApiKey.objects.filter(pk=ApiKey.key_from(seen[-1])).delete()
    second = client.get(f"{URL}?limit=5&cursor={first['next_cursor']}").json()
    assert [row["name"] for row in second["data"]] == [key.name for key in keys[4:9]]


def test_a_walk_can_turn_back(world: World, api, keys) -> None:
    client = api(world.alice)
    first = client.get(f"{URL}?limit=5")
    assert 'rel="next"' in first.headers["Link"]
    second = client.get(f"{URL}?limit=5&cursor={first.json()['next_cursor']}")
    assert 'rel="prev"' in second.headers["Link"]
    back = client.get(f"{URL}?limit=5&cursor={second.json()['prev_cursor']}").json()
    assert back["data"] == first.json()["data"]
    assert (back["has_more"], back["prev_cursor"]) == (True, None)


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1.5", "", "99999999999", "\u0661"])
def test_a_limit_that_is_none_is_refused(world: World, api, limit: str) -> None:
    response = api(world.alice).get(URL, {"limit": limit})
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_INPUT")


def test_a_large_limit_is_cut(world: World, api, keys) -> None:
    assert len(api(world.alice).get(f"{URL}?limit=5000").json()["data"]) == 13


def test_an_unknown_parameter_is_refused_by_name(world: World, api) -> None:
    body = api(world.alice).get(f"{URL}?colour=red").json()
    assert body["errors"][0]["pointer"] == "/colour"


def test_a_cursor_belongs_to_its_tenant_list_and_day(world: World, api, keys) -> None:
    client = api(world.alice)
    cursor = client.get(f"{URL}?limit=5").json()["next_cursor"]
    for stranger, url, text in (
        (api(world.dave), URL, cursor),
        (client, "/api/v1/projects/", cursor),
        (client, URL, cursor[:-2] + "xx"),
        (client, URL, "x"),
        (client, URL, "a:b:c"),
    ):
        response = stranger.get(url, {"cursor": text})
        assert (response.status_code, response.json()["code"]) == (400, "INVALID_CURSOR")
    with time_machine.travel(utc_now() + timedelta(days=1, seconds=5)):
        late = client.get(URL, {"cursor": cursor})
        assert (late.status_code, late.json()["code"]) == (400, "CURSOR_EXPIRED")


def test_reading_again_what_has_not_changed_costs_no_body(world: World, api) -> None:
    client = api(world.alice)
    url = f"/api/v1/projects/{world.project.public_id}/"
    etag = client.get(url).headers["ETag"]
    unchanged = client.get(url, headers={"If-None-Match": etag})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["ETag"] == etag
    Project.objects.update(name="Other")
    assert client.get(url, headers={"If-None-Match": etag}).status_code == 200


def test_an_edit_names_the_version_it_edits(world: World, api) -> None:
    """R-C19 (api): two people who move one budget do not overwrite each other."""
    client = api(world.alice)
    url = f"/api/v1/projects/{world.project.public_id}/"
    etag = client.get(url).headers["ETag"]
    body = {"name": "Atlas", "budget_micros": "7"}
    blind = client.put(url, body, content_type=JSON)
    assert (blind.status_code, blind.json()["code"]) == (428, "PRECONDITION_REQUIRED")
    first = client.put(url, body, content_type=JSON, headers={"If-Match": etag})
    assert (first.status_code, first.json()["budget_micros"]) == (200, "7")
    body["budget_micros"] = "8"
    second = client.put(url, body, content_type=JSON, headers={"If-Match": etag})
    assert (second.status_code, second.json()["code"]) == (412, "PRECONDITION_FAILED")
    world.project.refresh_from_db()
    assert world.project.budget_micros == 7


def test_a_dry_run_answers_and_changes_nothing(world: World, api) -> None:
    client = api(world.alice)
    url = "/api/v1/projects/?validate_only=true"
    assert client.post(url, {"name": "Atlas"}, content_type=JSON).status_code == 201
    assert not Project.objects.filter(name="Atlas").exists()
    taken = client.post(url, {"name": world.project.name}, content_type=JSON)
    assert taken.json()["code"] == "PROJECT_NAME_TAKEN"
    for wrong in ("/api/v1/projects/?validate_only=yes", f"{URL}?validate_only=true"):
        assert client.post(wrong, {"name": "Atlas"}, content_type=JSON).status_code == 400


@override_settings(FABRIC_RATE_LIMITS={"default": (3, 60), "anonymous": (2, 60)})
def test_a_limit_is_announced_and_kept_per_key(world: World, api) -> None:
    """R-C15 (api): every reply says what is left; beyond it 429 says when to come back."""
    alice, dave = api(world.alice), api(world.dave)
    with time_machine.travel(utc_now(), tick=False):
        left = [alice.get(URL).headers["RateLimit"].split(";")[1] for _ in range(3)]
        assert left == ["r=2", "r=1", "r=0"]
        refused = alice.get(URL)
        assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_REQUESTS")
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        policy = dave.get(URL)
        assert policy.status_code == 200
        assert policy.headers["RateLimit-Policy"] == '"default";q=3;w=60'


def test_a_version_is_echoed_and_an_unknown_one_refused(world: World, api) -> None:
    client = api(world.alice)
    assert client.get(URL).headers["Api-Version"] == "2026-11-30"
    known = client.get(URL, headers={"Api-Version": "2026-11-30"})
    assert known.status_code == 200
    unknown = client.get(URL, headers={"Api-Version": "2019-01-01"})
    assert (unknown.status_code, unknown.json()["code"]) == (400, "UNKNOWN_API_VERSION")
