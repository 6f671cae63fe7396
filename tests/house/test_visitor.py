"""The visitor that plays the story uses pages as a person without JavaScript would."""

import pytest

from simulator.visitor import PageRefused, Visitor
from tests.world import PASSWORD, World


def test_a_person_signs_in_through_the_page(live_server_url: str, world: World) -> None:
    """R-E4 (page): signing in works without JavaScript, CSRF token and all."""
    visitor = Visitor(live_server_url)
    visitor.sign_in("alice@example.org", PASSWORD)
    assert "sessionid" in visitor.client.cookies
    visitor.close()


def test_a_wrong_password_is_refused_with_the_pages_own_words(
    live_server_url: str, world: World
) -> None:
    visitor = Visitor(live_server_url)
    with pytest.raises(PageRefused):
        visitor.sign_in("alice@example.org", "a wrong sentence altogether")
    assert "sessionid" not in visitor.client.cookies
    visitor.close()


def test_a_missing_form_is_named(live_server_url: str, world: World) -> None:
    visitor = Visitor(live_server_url)
    visitor.open("/accounts/login/")
    with pytest.raises(PageRefused, match="no form with"):
        visitor.submit(moon="full")
    visitor.close()
