"""The pages of listings in a real browser: looks, barriers, filters with and without JavaScript."""

from datetime import datetime
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from listings.models import Listing
from listings.services import checks, publishing
from tests.browser.harness import LOOKS, open_window
from tests.listings.bodies import BODY, body_with
from tests.listings.machines import admitted_node, published_listing
from tests.world import World

pytestmark = pytest.mark.e2e

H100 = body_with(
    title="Whole host, NVSwitch, Reykjavik",
    promise__device_class="nvidia-h100-80gb-sxm",
    promise__unit_count=2,
    promise__memory_mib=80_900,
    promise__cpu_cores=96,
    promise__system_memory_mib=2_000_000,
    promise__disk_kind="nvme",
    promise__disk_gib=12_000,
    promise__disk_read_mb_s=10_000,
    promise__disk_write_mb_s=8_000,
    promise__interconnect="nvswitch",
    promise__peer_bandwidth_gb_s=680,
    promise__driver_version="570.86.15",
    promise__network_up_mbit_s=10_000,
    promise__compute_gops=1_480_000,
    promise__memory_bandwidth_gb_s=3_000,
    promise__isolation="container",
    price__amount_micros="2380000",
)


def fill_catalogue(world: World, now: datetime) -> dict[str, Listing]:
    """Put two published listings on sale, and leave a refused one with its provider."""
    big = published_listing(
        world, now=now, name="reykjavik-2", body=H100, simulated=True, compute_gops=1_522_000,
        disk_read_mb_s=9_100,
    )  # fmt: skip
    small = published_listing(world, now=now, name="reykjavik-1", compute_gops=19.4)
    node = admitted_node(world, now=now, name="reykjavik-3", cpu_cores=1, compute_gops=None)
    refused = publishing.publish(
        actor=world.actor(world.carol), provider=world.provider, node=node, body=BODY, now=now
    )
    checks.check_revision(revision=refused.revisions.get(), now=now)
    return {"big": big, "small": small, "refused": refused}


@pytest.mark.parametrize("look", LOOKS, ids="-".join)
def test_pages_of_listings_are_free_of_barriers(
    browser: Browser, live_server_url: str, world: World, now: datetime, look: tuple[str, str]
) -> None:
    theme, size = look
    made = fill_catalogue(world, now)
    stops: list[tuple[str, str, str]] = [
        ("catalogue", "/catalogue/", ""),
        ("catalogue-filtered", "/catalogue/?region=eu-north&price_max=0.06&suits=batch", ""),
        ("catalogue-nothing", "/catalogue/?suits=training&price_max=0.10", ""),
        ("catalogue-fault", "/catalogue/?price_max=cheap", ""),
        ("listing", f"/listings/{made['big'].public_id}/", ""),
        ("listing-cpu", f"/listings/{made['small'].public_id}/", "alice"),
        ("own-listings", "/provider/listings/", "carol"),
        ("own-listings-none", "/provider/listings/", "dave"),
        ("listing-refused", f"/provider/listings/{made['refused'].public_id}/", "carol"),
        ("listing-new", "/provider/listings/new/", "carol"),
    ]
    barriers: list[str] = []
    for name, path, person in stops:
        with open_window(browser, live_server_url, theme=theme, size=size) as visitor:
            if person:
                visitor.sign_in(getattr(world, person))
            visitor.go(path)
            visitor.take_shot(name)
            barriers += [f"{name}: {text}" for text in visitor.find_barriers()]
            if overflow := visitor.find_overflow():
                barriers.append(f"{name}: sticks out sideways: {overflow}")
    assert not barriers, "\n".join(barriers)


def test_a_facet_filters_in_place_and_stands_in_the_address(
    browser: Browser, live_server_url: str, world: World, now: datetime
) -> None:
    """R-A6 (page): filters refresh the results, keep the focus, and can be shared and undone."""
    fill_catalogue(world, now)
    with open_window(browser, live_server_url) as visitor:
        page = visitor.page
        visitor.go("/catalogue/")
        expect(page.locator("#results tbody tr")).to_have_count(2)
        hidden = "table => table.offsetWidth - table.parentElement.clientWidth"
        assert page.locator("table.offers").evaluate(hidden) <= 0, "columns are cut off"
        page.locator("#f-suits-training").check()
        expect(page.locator("#results tbody tr")).to_have_count(1)
        expect(page).to_have_url(f"{live_server_url}/catalogue/?suits=training")
        assert page.evaluate("document.activeElement.id") == "f-suits-training"
        expect(page.locator("#f-suits-training")).to_be_checked()
        page.locator("#results .chip").click()
        expect(page.locator("#results tbody tr")).to_have_count(2)
        expect(page).to_have_url(f"{live_server_url}/catalogue/")
        page.get_by_role("link", name="$ per acc-hour").click()
        expect(page).to_have_url(f"{live_server_url}/catalogue/?sort=price")
        expect(page.locator("th[aria-sort=ascending]")).to_contain_text("acc-hour")
        page.go_back()
        expect(page).to_have_url(f"{live_server_url}/catalogue/")
        expect(page.locator("#results tbody tr")).to_have_count(2)


def test_the_filters_work_without_javascript(
    browser: Browser, live_server_url: str, world: World, now: datetime
) -> None:
    fill_catalogue(world, now)
    with open_window(browser, live_server_url, script=False) as visitor:
        page = visitor.page
        visitor.go("/catalogue/")
        page.locator("#f-suits-training").check()
        page.get_by_role("button", name="Apply filters").click()
        assert page.locator("#results tbody tr").count() == 1
        page.locator("#results .chip").click()
        assert page.locator("#results tbody tr").count() == 2


def test_a_provider_publishes_from_the_page(
    browser: Browser, live_server_url: str, world: World, now: datetime
) -> None:
    """R-A11 (page): the form starts from the node's facts; a bad price is named beside its input."""
    admitted_node(world, now=now, isolation="none")
    with open_window(browser, live_server_url) as visitor:
        page: Any = visitor.page
        visitor.sign_in(world.carol)
        visitor.go("/provider/listings/new/")
        page.get_by_label("Price per accelerator-hour").fill("-1")
        with visitor.expecting(400):
            page.get_by_role("button", name="Publish listing").click()
            expect(page.get_by_role("alert")).to_contain_text("Price per accelerator-hour")
        assert visitor.find_barriers() == []
        visitor.take_shot("listing-new-refused")
        page.get_by_label("Price per accelerator-hour").fill("0.05")
        page.get_by_role("button", name="Publish listing").click()
        expect(page.locator("#findings [role=status]")).to_contain_text("Checking")
        listing = Listing.objects.get()
        assert listing.price_micros_per_hour == 50_000
        checks.check_revision(revision=listing.revisions.get(), now=now)
        expect(page.locator("#findings [role=status]")).to_contain_text("Published")
