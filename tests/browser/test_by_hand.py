"""The main flow by keyboard alone, and without JavaScript: signing in, ordering, disputing, ending."""

import pytest
from playwright.sync_api import Browser, Page, expect

from fabric.lib.clock import utc_now
from leases.domain.states import LeaseState
from leases.models import Dispute, Lease
from tests.browser.harness import Visitor, open_window
from tests.browser.stage import set_stage
from tests.leases.scene import build_scene
from tests.world import PASSWORD, World

# Pages of allauth read variables that are not always there.
pytestmark = [pytest.mark.e2e, pytest.mark.ignore_template_errors]

MOST_TABS = 120
_FOCUS = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  const box = e.getClientRects()[0] || e.getBoundingClientRect();
  const style = getComputedStyle(e);
  const x = box.left + Math.min(box.width / 2, 30);
  const shows = (y) => {
    const seen = document.elementFromPoint(x, Math.max(1, Math.min(innerHeight - 2, y)));
    return !!seen && (seen === e || e.contains(seen) || seen.contains(e));
  };
  return {
    text: (e.innerText || e.value || e.getAttribute("aria-label") || "").trim(),
    name: e.name || "", id: e.id || "", href: e.getAttribute("href") || "",
    ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    covered: ![box.top + 4, (box.top + box.bottom) / 2, box.bottom - 4].some(shows),
    inside: box.bottom > 0 && box.top < innerHeight,
  };
}"""


def tab_to(page: Page, *, text: str = "", name: str = "", href: str = "") -> None:
    """Press Tab until the wanted thing has the focus; each stop on the way can be seen."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        focus = page.evaluate(_FOCUS)
        if focus is None:
            continue
        assert focus["ring"], f"no focus ring on {focus}"
        assert focus["inside"], f"out of sight: {focus}"
        assert not focus["covered"], f"hidden behind something: {focus}"
        wanted = (
            (not text or focus["text"].startswith(text))
            and (not name or focus["name"] == name)
            and (not href or focus["href"].startswith(href))
        )
        if wanted:
            return
    raise AssertionError(f"Tab never came to {text or name or href} on {page.url}")


def sign_in_by_keys(visitor: Visitor, world: World) -> None:
    page = visitor.page
    visitor.go("/accounts/login/")
    tab_to(page, name="login")
    page.keyboard.type(world.alice.email)
    tab_to(page, name="password")
    page.keyboard.type(PASSWORD)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def test_the_first_stop_of_every_page_leads_past_the_frame(
    browser: Browser, live_server_url: str, world: World
) -> None:
    """R-E4 (page): the first Tab offers the content, and "/" offers the search box."""
    with open_window(browser, live_server_url) as visitor:
        visitor.go("/catalogue/")
        tab_to(visitor.page, text="Skip to content")
        visitor.page.keyboard.press("Enter")
        assert visitor.page.evaluate("document.activeElement.id") == "main"
        visitor.page.keyboard.press("/")
        assert visitor.page.evaluate("document.activeElement.id") == "find"
        visitor.page.keyboard.type("host")
        with visitor.page.expect_navigation():
            visitor.page.keyboard.press("Enter")
        assert "/search/?q=host" in visitor.page.url


def test_a_lease_is_ordered_and_ended_by_keyboard_alone(
    browser: Browser, live_server_url: str, world: World
) -> None:
    """R-B1 (page): sign in, choose, order and end without touching a mouse."""
    scene = build_scene(world, utc_now())
    with open_window(browser, live_server_url) as visitor:
        page = visitor.page
        sign_in_by_keys(visitor, world)
        tab_to(page, href="/catalogue/")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        tab_to(page, href=f"/listings/{scene.listing.public_id}")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        tab_to(page, text="Review order")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        for consent in ("accepts_interruption", "accepts_unisolated"):
            tab_to(page, name=consent)
            page.keyboard.press("Space")
        tab_to(page, text="Order, hold $0.05")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        lease = Lease.objects.get()
        assert lease.public_id in page.url
        tab_to(page, href="#end")
        page.keyboard.press("Enter")
        expect(page.locator("#end")).to_have_attribute("open", "")  # by a script, a moment later
        tab_to(page, text="Stop, refund at least")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        lease.refresh_from_db()
        assert lease.state in {LeaseState.ENDING, LeaseState.ENDED, LeaseState.FAILED}


def test_the_essential_acts_work_without_javascript(
    browser: Browser, live_server_url: str, world: World
) -> None:
    """R-B1 (page): filter, order, switch the theme and sign out post as plain forms."""
    scene = build_scene(world, utc_now())
    with open_window(browser, live_server_url, script=False) as visitor:
        page = visitor.page
        visitor.go("/accounts/login/")
        page.fill("[name=login]", world.alice.email)
        page.fill("[name=password]", PASSWORD)
        page.click("main button:has-text('Sign In'):not([form])")
        visitor.go("/catalogue/?class=host-cpu")
        page.click(f"a[href^='/listings/{scene.listing.public_id}']")
        page.click("text=Review order")
        page.check("[name=accepts_interruption]")
        page.check("[name=accepts_unisolated]")
        page.click("button:has-text('Order, hold')")
        assert Lease.objects.get().public_id in page.url
        page.click("button[name=theme]")
        assert page.get_attribute("html", "data-theme") == "light"
        page.click("text=Sign out")
        assert page.is_visible("a:has-text('Sign in')")


def test_a_reading_is_disputed_without_javascript(
    browser: Browser, live_server_url: str, world: World
) -> None:
    """R-C7 (page): the dispute form posts plainly, and the window's line is held."""
    stage = set_stage(world)
    with open_window(browser, live_server_url, script=False) as visitor:
        page = visitor.page
        visitor.sign_in(world.alice)
        visitor.go(f"/leases/{stage.lease.public_id}/")
        page.click("summary:has-text('Dispute a window')")
        page.fill("#dispute textarea", "It answered too late.")
        page.click("button:has-text('Open dispute')")
        assert Dispute.objects.count() == 2


def test_an_order_without_its_consents_says_which_and_keeps_what_was_written(
    browser: Browser, live_server_url: str, world: World
) -> None:
    """R-B1 (page): errors stand on top and beside the field, and nothing typed is lost."""
    scene = build_scene(world, utc_now())
    with open_window(browser, live_server_url) as visitor:
        page = visitor.page
        visitor.sign_in(world.alice)
        visitor.go(f"/orders/new/?listing={scene.listing.public_id}")
        page.fill("[name=budget_micros]", "0.03")
        with visitor.expecting(409):
            page.click("button:has-text('Order, hold')")
            page.wait_for_selector("[role=alert]")
        assert page.input_value("[name=budget_micros]") == "0.03"
        assert page.locator("[name^=accepts_][aria-invalid=true]").count() >= 1
        assert not visitor.find_barriers()
        assert not Lease.objects.exists()
