"""The pages that belong to no single app."""

from datetime import datetime

import pytest
from django.core.cache import cache
from django.test import Client

from fabric.accounts.models import User
from providers.models import Node
from tests.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forget_figures() -> None:
    cache.clear()


def test_the_front_page_shows_figures_with_their_definitions(world: World) -> None:
    """R-A1 (page): the front page says what this is with figures from the database."""
    page = world.client().get("/")
    assert page.status_code == 200
    html = page.content.decode()
    assert "Nodes admitted" in html
    assert "Nodes whose challenge was judged and passed" in html
    assert "none yet" in html  # no reading was taken, which is not 0 of 0


def test_simulated_nodes_are_left_out_of_network_figures(world: World, now: datetime) -> None:
    """R-A4 (page): what is simulated never swells a figure of the network."""
    for name, simulated in (("real", False), ("pretend", True)):
        Node.objects.create(
            provider=world.provider,
            name=name,
            state="admitted",
            simulated=simulated,
            hardware_class_id="host-cpu",
            tier="community",
            enrolled_at=now,
        )
    html = world.client().get("/").content.decode()
    assert "1 simulated node left out" in html
    row = html[html.index("Nodes admitted") :][:160]
    assert ">1</td>" in row


def test_the_theme_is_kept_with_the_account(world: World) -> None:
    client = world.client(world.alice)
    answer = client.post("/preferences/theme/", {"theme": "dark", "next": "/search/?q=x"})
    assert answer.status_code == 302
    assert answer["Location"] == "/search/?q=x"
    assert User.objects.get(pk=world.alice.pk).theme == "dark"
    html = client.get("/").content.decode()
    assert 'data-theme="dark" data-bs-theme="dark"' in html


def test_a_visitors_theme_lasts_for_the_session(world: World) -> None:
    client = world.client()
    client.post("/preferences/theme/", {"theme": "light"})
    assert 'data-theme="light"' in client.get("/").content.decode()


@pytest.mark.parametrize("target", ["https://elsewhere.example/", "//elsewhere.example/"])
def test_the_theme_form_leads_to_no_other_site(world: World, target: str) -> None:
    answer = world.client().post("/preferences/theme/", {"theme": "dark", "next": target})
    assert answer["Location"] == "/"


def test_an_unknown_theme_is_refused_and_nothing_changes(world: World) -> None:
    answer = world.client(world.alice).post("/preferences/theme/", {"theme": "neon"})
    assert answer.status_code == 400
    assert User.objects.get(pk=world.alice.pk).theme == "system"


def test_the_theme_form_needs_its_token(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    answer = client.post("/preferences/theme/", {"theme": "dark"})
    assert answer.status_code == 403
    assert "CSRF_TOKEN" in answer.content.decode()
