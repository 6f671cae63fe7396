"""Signing up and in, by e-mail address."""

import re

import pytest
from django.core import mail
from django.test import Client

from fabric.accounts.models import Membership, Organisation, User
from tests.world import PASSWORD, World

pytestmark = pytest.mark.django_db
SIGN_UP = "/accounts/signup/"
SIGN_IN = "/accounts/login/"


def sign_up(client: Client, **changes: str):
    given = {"email": "erin@example.org", "password1": PASSWORD, "name": "Erin", "organisation": ""}
    return client.post(SIGN_UP, {**given, **changes})


def test_signing_up_founds_an_organisation_with_a_first_project() -> None:
    """R-C19 (page): a person who signs up owns an organisation with a project to order under."""
    client = Client()
    assert client.get(SIGN_UP).status_code == 200
    response = sign_up(client, organisation="  Erin   Labs ")
    assert response.status_code == 302
    person = User.objects.get(email="erin@example.org")
    membership = Membership.objects.select_related("organisation").get(user=person)
    assert (person.name, membership.role) == ("Erin", "owner")
    assert membership.organisation.name == "Erin Labs"
    assert [project.name for project in membership.organisation.projects.all()] == ["First project"]
    assert client.get("/settings/organisation/").status_code == 200


def test_an_organisation_left_out_is_called_after_the_person() -> None:
    sign_up(Client())
    assert Organisation.objects.get().name == "Erin"


def test_two_organisations_of_one_name_get_different_slugs() -> None:
    sign_up(Client(), organisation="Labs")
    sign_up(Client(), organisation="Labs", email="finn@example.org")
    assert len(set(Organisation.objects.values_list("slug", flat=True))) == 2


@pytest.mark.parametrize("password", ["short", "1234567890", "erin@example.org"])
def test_a_weak_password_makes_nobody(password: str) -> None:
    response = sign_up(Client(), password1=password)
    assert response.status_code == 200
    assert not User.objects.exists()
    assert not Organisation.objects.exists()


def test_an_address_belongs_to_one_person_in_any_case(world: World) -> None:
    sign_up(Client(), email="Alice@Example.org")
    assert User.objects.filter(email__iexact="alice@example.org").count() == 1


def test_the_session_changes_its_id_at_sign_in(world: World) -> None:
    """R-E4 (page): a session id that somebody planted before sign-in is worthless after it."""
    client = Client()
    client.post("/preferences/theme/", {"theme": "dark", "next": "/"})
    planted = client.cookies.get("sessionid")
    assert planted is not None
    before = planted.value
    response = client.post(SIGN_IN, {"login": world.alice.email, "password": PASSWORD})
    assert response.status_code == 302
    assert client.cookies["sessionid"].value != before
    thief = Client()
    thief.cookies["sessionid"] = before
    assert thief.get("/settings/organisation/").status_code == 302


def test_a_wrong_password_and_an_unknown_address_look_the_same(world: World) -> None:
    wrong = Client().post(SIGN_IN, {"login": world.alice.email, "password": "not this one at all"})
    unknown = Client().post(SIGN_IN, {"login": "no@example.org", "password": "not this one at all"})
    assert (wrong.status_code, unknown.status_code) == (200, 200)
    said = [re.findall(r"are not correct", reply.content.decode()) for reply in (wrong, unknown)]
    assert said[0] == said[1] != []


def test_a_password_is_reset_by_mail_and_the_link_works_once(world: World) -> None:
    client = Client()
    client.post("/accounts/password/reset/", {"email": world.alice.email})
    link = re.search(r"http://\S+(/accounts/password/reset/key/\S+/)", str(mail.outbox[-1].body))
    assert link is not None
    form = client.get(link[1], follow=True)
    changed = client.post(
        form.redirect_chain[-1][0],
        {"password1": "another long sentence", "password2": "another long sentence"},
    )
    assert changed.status_code == 302
    world.alice.refresh_from_db()
    assert world.alice.check_password("another long sentence")
    assert Client().get(link[1]).status_code == 200  # says it is used, leads nowhere


def test_signing_out_wants_a_form_and_leaves_nothing_cached(world: World) -> None:
    client = world.client(world.alice)
    page = client.get("/settings/keys/")
    assert "no-store" in page.headers["Cache-Control"]
    assert client.get("/accounts/logout/").status_code == 200
    assert client.get("/settings/keys/").status_code == 200
    client.post("/accounts/logout/")
    assert client.get("/settings/keys/").status_code == 302


def test_the_anonymous_are_sent_to_sign_in_and_back() -> None:
    response = Client().get("/settings/keys/")
    assert response.headers["Location"] == "/accounts/login/?next=/settings/keys/"
    part = Client().get(
        "/settings/keys/", headers={"HX-Request": "true", "HX-Current-URL": "/settings/keys/"}
    )
    assert part.status_code == 401
    assert part.headers["HX-Redirect"] == "/accounts/login/?next=%2Fsettings%2Fkeys%2F"
