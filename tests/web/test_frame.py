"""What every page's frame shows, and what it costs."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import SessionBase
from django.template.loader import render_to_string
from django.test import RequestFactory
from pytest_django import DjangoAssertNumQueries

from fabric.accounts.models import User
from fabric.web.navigation import Standing, build_rail
from tests.world import World


def draw(person: User | None, path: str = "/catalogue/") -> str:
    request = RequestFactory().get(path)
    request.user = person or AnonymousUser()
    request.session = SessionBase()
    return render_to_string("base.html", request=request)


@pytest.mark.django_db
def test_the_frame_of_a_buyer_shows_wallet_organisation_and_theme(
    world: World, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """R-E4 (page): money available, and how long it lasts, stand on every page."""
    with django_assert_num_queries(2):
        html = draw(world.alice)
    assert "<b>$0.00</b> available" in html
    assert "no lease charges now" in html
    assert "Meridian Lab" in html
    assert 'data-theme="system"' in html
    assert 'href="/catalogue/" aria-current="page"' in html


def test_the_frame_of_nobody_asks_the_database_nothing_and_offers_sign_in() -> None:
    html = draw(None)
    assert "Sign in" in html
    assert "available<br>" not in html


def test_no_page_carries_inline_script_or_style() -> None:
    html = draw(None)
    assert "<style" not in html
    assert " style=" not in html
    assert "onclick" not in html
    assert "<script>" not in html


def test_the_rail_marks_the_longest_address_that_fits() -> None:
    rail = build_rail("/provider/nodes/nod_x/", Standing(signed_in=True, provides=True))
    current = [item.label for group in rail for item in group if item.current]
    assert current == ["Nodes"]


def test_only_operators_are_shown_the_back_office() -> None:
    def labels(standing: Standing) -> set[str]:
        return {item.label for group in build_rail("/", standing) for item in group}

    assert "Operate" in labels(Standing(signed_in=True, operates=True))
    assert "Operate" not in labels(Standing(signed_in=True, buys=True, provides=True))
