"""The back office: who enters, what is there, and that nothing is edited by hand."""

import pytest
from django.apps import apps
from django.conf import settings
from django.db.models import Model
from django.test import override_settings
from django.urls import reverse

from fabric.backoffice.registry import APPS
from fabric.backoffice.site import operator_site
from tests.world import World

# The theme's own templates read variables that are not always there.
pytestmark = [pytest.mark.django_db, pytest.mark.ignore_template_errors]

OURS = [model for label in APPS for model in apps.get_app_config(label).get_models()]


def place(model: type[Model], kind: str = "changelist") -> str:
    return f"admin:{model._meta.app_label}_{model._meta.model_name}_{kind}"


def test_every_object_of_every_app_is_there(world: World) -> None:
    """R-E4 (page): an operator can look at every object."""
    assert [model for model in OURS if not operator_site.is_registered(model)] == []


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label)
def test_every_list_opens_and_searches(world: World, model: type[Model]) -> None:
    """R-E4 (page): every list opens for an operator, and takes any text in its search box."""
    client = world.client(world.olga)
    for query in ("", "?q=usr_nonsense", "?q=x"):
        assert client.get(reverse(place(model)) + query).status_code == 200


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label)
def test_nothing_is_added_by_hand(world: World, model: type[Model]) -> None:
    """R-E5 (page): rows are made by services; the back office offers no form for it."""
    assert world.client(world.olga).get(reverse(place(model, "add"))).status_code == 403


def test_a_row_is_shown_whole_and_cannot_be_posted_to(world: World) -> None:
    client = world.client(world.olga)
    page = reverse("admin:accounts_organisation_change", args=[world.meridian.pk])
    html = client.get(page).content.decode()
    assert world.meridian.public_id in html
    assert client.post(page, {"name": "Taken over"}).status_code == 403
    world.meridian.refresh_from_db()
    assert world.meridian.name == "Meridian Lab"


def test_a_password_is_not_shown_even_as_a_hash(world: World) -> None:
    page = reverse("admin:accounts_user_change", args=[world.alice.pk])
    html = world.client(world.olga).get(page).content.decode()
    assert "alice@example.org" in html
    assert world.alice.password not in html


@pytest.mark.parametrize("who", ["alice", "carol"])
def test_for_a_tenant_there_is_no_back_office(world: World, who: str) -> None:
    """R-E5 (page): not even its existence is told."""
    client = world.client(getattr(world, who))
    for path in (
        "/operator/",
        "/operator/billing/account/",
        "/operator/billing/account/trial-balance/",
    ):
        answer = client.get(path, follow=True)
        assert answer.status_code == 404


def test_the_unknown_are_sent_to_the_products_own_sign_in(world: World) -> None:
    answer = world.client().get("/operator/")
    assert answer.status_code == 302
    final = world.client().get("/operator/", follow=True)
    assert final.redirect_chain[-1][0].startswith(reverse(settings.LOGIN_URL))


@override_settings(FABRIC_OPERATOR_MFA=True)
def test_an_operator_without_a_second_factor_is_sent_to_set_one_up(world: World) -> None:
    """R-E5 (page): with the option on, a password alone opens no back office."""
    answer = world.client(world.olga).get("/operator/", follow=True)
    assert answer.redirect_chain[-1][0] == reverse("mfa_index")


def test_the_back_office_has_a_content_policy_of_its_own(world: World) -> None:
    own = world.client(world.olga).get("/operator/")["Content-Security-Policy"]
    products = world.client().get("/")["Content-Security-Policy"]
    assert "unsafe-eval" in own
    assert "unsafe" not in products


def test_the_desk_says_what_waits_and_that_the_empty_ledger_balances(world: World) -> None:
    html = world.client(world.olga).get("/operator/").content.decode()
    assert "Disputes to rule on" in html
    assert "balances" in html
