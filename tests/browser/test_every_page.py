"""Every page in both themes and both widths: no barrier, no complaint, nothing sticking out."""

import os
import re
from itertools import groupby

import pytest
from playwright.sync_api import Browser

from tests.browser.harness import SIZES, THEMES, open_window
from tests.browser.stage import set_stage
from tests.browser.tour import Stop, plan_tour
from tests.world import World

# Pages of allauth and of the back office read variables that are not always there.
pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.ignore_template_errors]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES)
def test_every_page_is_free_of_barriers(
    browser: Browser, live_server_url: str, world: World, theme: str, size: str
) -> None:
    """R-E4 (page): axe-core, the console and the content policy find nothing on any page."""
    barriers: list[str] = []
    only = re.compile(os.environ.get("FABRIC_TOUR", ""))
    stops = [stop for stop in plan_tour(world, set_stage(world)) if only.search(stop.name)]
    for person, group in groupby(sorted(stops, key=_person), key=_person):
        with open_window(browser, live_server_url, theme=theme, size=size) as visitor:
            if person:
                visitor.sign_in(getattr(world, person))
            for stop in group:
                visitor.go(stop.path, status=stop.status)
                visitor.take_shot(stop.name)
                barriers += [f"{stop.name}: {text}" for text in visitor.find_barriers()]
                if overflow := visitor.find_overflow():
                    barriers.append(f"{stop.name}: sticks out sideways: {overflow}")
    assert not barriers, "\n".join(barriers)


def _person(stop: Stop) -> str:
    return stop.person
