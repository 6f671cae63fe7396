"""Every address that the frame and the front pages offer leads to a page."""

import re
from urllib.parse import urldefrag

import pytest

from fabric.web.navigation import Standing, build_rail
from tests.browser.stage import Stage, set_stage
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.ignore_template_errors]

OTHER_DOORS = ("/accounts/", "/operator/", "/static/")


@pytest.fixture
def stage(world: World) -> Stage:
    return set_stage(world)


@pytest.mark.parametrize(
    ("who", "path"),
    [
        ("alice", "/"),
        ("carol", "/provider/"),
        ("alice", "/leases/"),
        ("carol", "/leases/?side=provider"),
        ("alice", "/catalogue/"),
        ("alice", "/disputes/"),
        ("alice", "/billing/"),
        ("dave", "/"),
    ],
)
def test_no_link_of_a_main_page_is_dead(world: World, stage: Stage, who: str, path: str) -> None:
    """R-E4 (page): what a page links to is there for whoever sees the link."""
    client = world.client(getattr(world, who))
    html = client.get(path).content.decode()
    found = {urldefrag(link)[0] for link in re.findall(r'href="(/[^"]*)"', html)}
    for link in sorted(found):
        if link and not link.startswith(OTHER_DOORS):
            answer = client.get(link.replace("&amp;", "&"))
            assert answer.status_code in {200, 302}, f"{path} offers {link}: {answer.status_code}"


def test_every_entry_of_the_rail_has_its_own_address() -> None:
    everything = Standing(signed_in=True, buys=True, provides=True, operates=True)
    for path in ("/", "/provider/"):
        entries = [item.href for group in build_rail(path, everything) for item in group]
        assert len(entries) == len(set(entries))
