"""The second factor: authenticator app and recovery codes."""

import re
import time

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import hotp_value
from django.core import mail
from django.core.cache import cache
from django.test import Client, override_settings

from tests.world import PASSWORD, World

pytestmark = pytest.mark.django_db
SIGN_IN = "/accounts/login/"
SECOND = "/accounts/2fa/authenticate/"
ACTIVATE = "/accounts/2fa/totp/activate/"


@pytest.fixture(autouse=True)
def _fresh_counts() -> None:
    cache.clear()


def code_at(secret: str, at: float) -> str:
    return f"{hotp_value(secret, int(at) // 30):06d}"


@pytest.fixture
def secret(world: World) -> str:
    """Give Alice an authenticator app through the pages, and return its secret."""
    client = Client()
    client.post(SIGN_IN, {"login": world.alice.email, "password": PASSWORD})
    page = client.get(ACTIVATE)
    if page.status_code == 302:
        page = client.post(page.headers["Location"], {"password": PASSWORD}, follow=True)
    found = re.search(r'value="([A-Z2-7]{32})"', page.content.decode())
    assert found is not None
    hour_ago = time.time() - 3600
    with time_machine.travel(hour_ago):
        done = client.post(ACTIVATE, {"code": code_at(found[1], hour_ago)})
    assert done.status_code == 302
    return found[1]


def first_step(world: World, password: str = PASSWORD) -> Client:
    client = Client()
    response = client.post(SIGN_IN, {"login": world.alice.email, "password": password})
    assert response.headers["Location"].startswith(SECOND)
    return client


def is_in(client: Client) -> bool:
    return client.get("/settings/security/").status_code == 200


def test_a_password_alone_does_not_let_in(world: World, secret: str) -> None:
    """R-E4 (page): with an authenticator app on, nothing opens before its code."""
    client = first_step(world)
    assert not is_in(client)
    assert client.post(SECOND, {"code": "000000"}).status_code == 200
    assert not is_in(client)
    assert client.post(SECOND, {"code": code_at(secret, time.time())}).status_code == 302
    assert is_in(client)


def test_a_code_works_once(world: World, secret: str) -> None:
    code = code_at(secret, time.time())
    assert first_step(world).post(SECOND, {"code": code}).status_code == 302
    thief = first_step(world)
    assert thief.post(SECOND, {"code": code}).status_code == 200
    assert not is_in(thief)


def test_a_recovery_code_works_once(world: World, secret: str) -> None:
    codes = Authenticator.objects.get(user=world.alice, type="recovery_codes").wrap()
    code = codes.get_unused_codes()[0]
    client = first_step(world)
    assert client.post(SECOND, {"code": code}).status_code == 302
    assert is_in(client)
    thief = first_step(world)
    assert thief.post(SECOND, {"code": code}).status_code == 200
    assert not is_in(thief)


@override_settings(ACCOUNT_RATE_LIMITS={})
def test_guessing_is_stopped(world: World, secret: str) -> None:
    client = first_step(world)
    for guess in range(20):
        client.post(SECOND, {"code": f"{guess:06d}"})
    right = client.post(SECOND, {"code": code_at(secret, time.time())})
    assert right.status_code != 302 or not is_in(client)


@override_settings(ACCOUNT_RATE_LIMITS={"login_failed": "3/m/ip"})
def test_guessing_passwords_is_stopped(world: World) -> None:
    client = Client()
    for _ in range(4):
        client.post(SIGN_IN, {"login": world.bob.email, "password": "a wrong one, again"})
    response = client.post(SIGN_IN, {"login": world.bob.email, "password": PASSWORD})
    assert response.status_code == 200
    assert not is_in(client)


def test_a_reset_password_still_asks_for_the_second_factor(world: World, secret: str) -> None:
    client = Client()
    client.post("/accounts/password/reset/", {"email": world.alice.email})
    link = re.search(r"http://\S+(/accounts/password/reset/key/\S+/)", str(mail.outbox[-1].body))
    assert link is not None
    form = client.get(link[1], follow=True)
    new = "another long sentence"
    client.post(form.redirect_chain[-1][0], {"password1": new, "password2": new})
    assert not is_in(client)
    assert not is_in(first_step(world, new))


def test_turning_it_off_asks_for_proof_again(world: World, secret: str) -> None:
    client = first_step(world)
    client.post(SECOND, {"code": code_at(secret, time.time())})
    with time_machine.travel(time.time() + 600):
        response = client.post("/accounts/2fa/totp/deactivate/")
        assert "/reauthenticate/" in response.headers["Location"]
    assert Authenticator.objects.filter(user=world.alice, type="totp").exists()


@pytest.mark.ignore_template_errors
def test_an_operator_passes_the_same_door(world: World) -> None:
    """R-E4 (page): the back office has no sign-in of its own that would skip the second factor."""
    response = Client().get("/operator/", follow=True)
    assert response.redirect_chain[-1][0].startswith(SIGN_IN)
    assert world.client(world.alice).get("/operator/").status_code in (302, 403, 404)
    assert world.client(world.olga).get("/operator/").status_code == 200


def test_the_session_changes_its_id_at_step_up(world: World) -> None:
    """R-E4 (page): a cookie copied before a fresh proof does not share in what it opens."""
    client = world.client(world.alice)
    before = client.cookies["sessionid"].value
    asked = client.get(ACTIVATE)
    assert "/reauthenticate/" in asked.headers["Location"]
    wrong = client.post(asked.headers["Location"], {"password": "not this one at all"})
    assert wrong.status_code == 200
    assert client.cookies["sessionid"].value == before
    client.post(asked.headers["Location"], {"password": PASSWORD})
    assert client.cookies["sessionid"].value != before
    assert client.get(ACTIVATE).status_code == 200
    thief = Client()
    thief.cookies["sessionid"] = before
    assert not is_in(thief)
