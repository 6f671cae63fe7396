"""Who may call: keys, scopes, sessions."""

from datetime import timedelta

import pytest
from django.test import Client

from fabric.accounts.models import ApiKey, Project
from fabric.accounts.services.api_keys import recognise_key
from fabric.lib.clock import utc_now
from tests.world import World

pytestmark = pytest.mark.django_db
URL = "/api/v1/projects/"
JSON = "application/json"


def test_without_a_key_there_is_nothing(world: World) -> None:
    """R-C19 (api): no key, a wrong scheme, or a key that never was: 401 and no more."""
    for headers in (
        {},
        {"Authorization": "Bearer fk_test_aaaaaaaa_" + "b" * 43},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer ключ"},
    ):
        response = Client().get(URL, headers=headers)
        assert (response.status_code, response.json()["code"]) == (401, "NOT_AUTHENTICATED")
        assert response.headers["WWW-Authenticate"] == 'Bearer realm="fabric"'


def test_an_expired_or_inactive_key_is_refused(world: World, api) -> None:
    client = api(world.alice)
    assert client.get(URL).status_code == 200
    ApiKey.objects.update(expires_at=utc_now() - timedelta(seconds=1))
    assert client.get(URL).status_code == 401
    ApiKey.objects.update(expires_at=None)
    world.alice.is_active = False
    world.alice.save()
    assert client.get(URL).status_code == 401


def test_the_scope_that_is_missing_is_named(world: World, api) -> None:
    """R-C19 (api): a key does only what it was made for."""
    client = api(world.alice, ["orders:read"])
    response = client.get(URL)
    assert (response.status_code, response.json()["code"]) == (403, "SCOPE_MISSING")
    assert response.json()["metadata"] == {"scope": "account:read"}
    reader = api(world.alice, ["account:read"])
    assert reader.get(URL).status_code == 200
    assert reader.post(URL, {"name": "Atlas"}, content_type=JSON).status_code == 403
    assert not Project.objects.filter(name="Atlas").exists()


def test_a_role_limits_the_key_of_its_maker(world: World, api) -> None:
    response = api(world.bob).post(URL, {"name": "Atlas"}, content_type=JSON)
    assert (response.status_code, response.json()["code"]) == (403, "NOT_ALLOWED")


@pytest.mark.parametrize("name", ["api_key", "key", "token", "access_token", "q"])
def test_a_key_in_the_address_is_refused_even_if_valid(world: World, api, name: str) -> None:
    response = api(world.alice).get(URL, {name: "fk_test_aaaaaaaa_" + "b" * 43})
    assert (response.status_code, response.json()["code"]) == (400, "CREDENTIALS_IN_URL")
    assert "Revoke" in response.json()["suggestion"]


def test_a_key_makes_no_key_that_can_do_more(world: World, api) -> None:
    client = api(world.alice, ["account:write"])
    body = {"project": world.project.public_id, "name": "n", "scopes": ["billing:write"]}
    response = client.post("/api/v1/api-keys/", body, content_type=JSON)
    assert response.status_code == 403
    assert ApiKey.objects.count() == 1


def test_a_key_sees_its_own_project_only(world: World, api) -> None:
    other = Project.objects.create(organisation=world.meridian, name="Zeta")
    client = api(world.alice)
    assert [row["id"] for row in client.get(URL).json()["data"]] == [world.project.public_id]
    assert client.get(f"{URL}{other.public_id}/").status_code == 404
    body = {"project": other.public_id, "name": "n", "scopes": ["account:read"]}
    assert client.post("/api/v1/api-keys/", body, content_type=JSON).status_code == 404


def test_use_is_noted_at_most_once_a_minute(world: World, api) -> None:
    client = api(world.alice)
    client.get(URL)
    first = ApiKey.objects.get().last_used_at
    client.get(URL)
    assert first is not None
    assert ApiKey.objects.get().last_used_at == first


def test_what_is_stored_is_no_key(world: World, api) -> None:
    client = api(world.alice)
    key = ApiKey.objects.get()
    now = utc_now()
    text = client.defaults["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
    assert recognise_key(text=text, now=now) == key
    for wrong in (key.visible_prefix, text[:-1], text + "x", bytes(key.digest).hex()):
        assert recognise_key(text=wrong, now=now) is None


def test_a_page_session_may_call_with_its_csrf_token(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.alice)
    assert client.get(URL).status_code == 200
    refused = client.post(URL, {"name": "Atlas"}, content_type=JSON)
    assert (refused.status_code, refused.json()["code"]) == (403, "NOT_ALLOWED")
    assert not Project.objects.filter(name="Atlas").exists()
    client.get("/settings/projects/")
    token = {"X-CSRFToken": client.cookies["csrftoken"].value}
    assert client.post(URL, {"name": "Atlas"}, content_type=JSON, headers=token).status_code == 201
