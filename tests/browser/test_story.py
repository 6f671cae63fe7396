"""The whole story in a real browser, beside a real agent, a real worker and the payment stand-in.

Two people who have never been here: one offers this very machine, the other rents it. Nothing is
done for them behind the pages, and each sum they see at the end is worked out from the readings.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import pytest
from playwright.sync_api import Browser, Page, expect

from fabric.journal.models import ProtocolParameters
from fabric.journal.services import parameters
from tests.agent.machines import Machine
from tests.browser.harness import Visitor, open_window
from tests.world import COMMERCIAL, IN_FORCE_SINCE, PASSWORD, World

pytestmark = [pytest.mark.e2e, pytest.mark.ignore_template_errors]

PRICE = Decimal("3.6")  # a tenth of a cent for each second, so that sums are read at a glance
PATIENCE_MS = 240_000
PROVIDER_BPS = Decimal("0.85")


@dataclass
class Cast:
    """Three windows of the browser, one for each person."""

    provider: Visitor
    buyer: Visitor
    operator: Visitor


@pytest.fixture
def cast(browser: Browser, live_server_url: str, world: World) -> Iterator[Cast]:
    parameters.adopt_parameters(
        kind=ProtocolParameters.Kind.COMMERCIAL,
        body={**COMMERCIAL, "dispute_window_seconds": 25},
        proposed_by=world.olga.public_id,
        approved_by="exchange",
        effective_at=IN_FORCE_SINCE,
    )
    with (
        open_window(browser, live_server_url) as provider,
        open_window(browser, live_server_url, theme="dark") as buyer,
        open_window(browser, live_server_url) as operator,
    ):
        yield Cast(provider, buyer, operator)


@pytest.mark.usefixtures("connected_standin", "celery_worker_process")
def test_from_sign_up_to_settlement(cast: Cast, machine: Machine, world: World) -> None:
    """R-B1 (page): a stranger's machine is enrolled, proved, admitted and listed by hand.

    R-C1 (page): money paid by card funds an escrow, and the order becomes a lease.
    R-C5 (page): windows are compared with the promise and charged while one watches.
    R-C8 (page): a disputed window is held, ruled in basis points, and settles in part.
    R-C11 (page): what is unused returns, and both sides see the same sums.
    """
    sign_up(cast.provider, name="Nora", organisation="Fjord Compute")
    enrol(cast.provider, machine)
    listing = publish(cast.provider)
    sign_up(cast.buyer, name="Ben", organisation="Lab of Ben")
    top_up(cast.buyer, dollars="25.00")
    order(cast.buyer, listing, dollars="5.00")
    watch_windows(cast.buyer, at_least=3)
    dispute_newest(cast.buyer)
    rule(cast.operator, world, basis_points=5_000)
    end(cast.buyer)
    settled = wait_for_settlement(cast.buyer)
    assert settled > 0
    assert balance(cast.buyer) == Decimal("25.00") - settled
    assert earned(cast.provider) == settled * PROVIDER_BPS


def sign_up(visitor: Visitor, *, name: str, organisation: str) -> None:
    page = visitor.page
    visitor.go("/accounts/signup/")
    page.fill("[name=email]", f"{name.lower()}@example.org")
    page.fill("[name=password1]", PASSWORD)
    page.fill("[name=name]", name)
    page.fill("[name=organisation]", organisation)
    page.get_by_role("main").get_by_role("button", name="Sign up").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_attached()


def enrol(visitor: Visitor, machine: Machine) -> None:
    """Become a provider, make a token, run the two commands, and see the node admitted."""
    page = visitor.page
    visitor.go("/provider/")
    page.fill("[name=country]", "NO")
    page.fill("[name=region]", "eu-north")
    page.get_by_role("button", name="Become a provider").click()
    visitor.go("/provider/enrol/")
    page.check("[name=accepts_unisolated]")
    page.get_by_role("button", name="Make a token").click()
    command = page.locator("code", has_text="fabric-agent enroll").inner_text()
    token = re.search(r"--token (\S+)", command)
    assert token is not None
    machine.enrol(token[1], name="fjord-1")
    # A container gets a network of its own, and the browser drops what it loads when one appears.
    with (machine.state / "config.yaml").open("a") as config:
        config.write("containers: never\n")
    machine.start()
    visitor.go("/provider/nodes/")
    page.get_by_role("link", name="fjord-1").first.click()
    expect(page.locator("h2#path")).to_contain_text("Admitted", timeout=PATIENCE_MS)


def publish(visitor: Visitor) -> str:
    """Publish what the node has shown, less its disk, which others share; return the listing."""
    page = visitor.page
    visitor.go("/provider/listings/new/")
    page.get_by_label("Price per accelerator-hour").fill(str(PRICE))
    for speed in ("disk_read_mb_s", "disk_write_mb_s"):
        page.locator(f"[name$={speed}]").fill("")
    page.get_by_role("button", name="Publish listing").click()
    expect(page.locator("#findings [role=status]")).to_contain_text("Published", timeout=30_000)
    return last_part(page)


def top_up(visitor: Visitor, *, dollars: str) -> None:
    page = visitor.page
    visitor.go("/billing/top-ups/new/")
    page.fill("[name=amount_micros]", dollars)
    page.get_by_role("button", name="Continue to payment").click()
    page.get_by_role("button", name="Pay with a card that works").click()
    expect(page.get_by_role("main")).to_contain_text("paid", ignore_case=True, timeout=30_000)
    assert balance(visitor) == Decimal(dollars)


def order(visitor: Visitor, listing: str, *, dollars: str) -> None:
    page = visitor.page
    visitor.go("/catalogue/?class=host-cpu&region=eu-north")
    page.locator(f"a[href^='/listings/{listing}']").first.click()
    expect(page.get_by_role("main")).to_contain_text("measured", ignore_case=True)
    page.click("text=Review order")
    page.fill("[name=budget_micros]", dollars)
    for consent in page.locator("[name^=accepts_]").all():
        consent.check()
    page.get_by_role("button", name="Order, hold").click()
    expect(page.get_by_text("Show access token, once")).to_be_visible(timeout=60_000)


def watch_windows(visitor: Visitor, *, at_least: int) -> None:
    """Watch the page fill by itself: nobody reloads it."""
    rows = visitor.page.locator("#readings-part tbody tr:has(td[data-h=Verdict])")
    expect(rows.nth(at_least - 1)).to_be_visible(timeout=60_000)
    visitor.take_shot("story-metered")


def dispute_newest(visitor: Visitor) -> None:
    page = visitor.page
    page.reload()
    page.locator("summary", has_text="Dispute a window").click()
    page.locator("#dispute textarea").fill("My own timer saw the service stall.")
    lease = page.url
    page.get_by_role("button", name="Open dispute").click()
    expect(page.get_by_role("status")).to_contain_text("waits for a ruling")
    page.goto(lease)
    expect(page.locator("#money-part")).to_contain_text("held by a dispute")


def rule(visitor: Visitor, world: World, *, basis_points: int) -> None:
    """Sign in at the back office, as its people do, and rule on the one open dispute."""
    page = visitor.page
    visitor.go("/accounts/login/?next=/operator/leases/dispute/")
    page.fill("[name=login]", world.olga.email)
    page.fill("[name=password]", PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Sign In", exact=True).click()
    page.get_by_role("link", name=re.compile("^dsp_")).first.click()
    page.get_by_role("link", name="Rule on this dispute").first.click()
    ruling = page.url
    write_ruling(page, basis_points)
    page.fill("[name=password]", PASSWORD)  # a ruling moves money: prove who you are again
    page.get_by_role("button", name="Confirm").click()
    page.goto(ruling)
    write_ruling(page, basis_points)
    expect(page.get_by_text("50 % stands")).to_be_visible()


def write_ruling(page: Page, basis_points: int) -> None:
    page.fill("form[method=get] [name=stands_bps]", str(basis_points))
    page.get_by_role("button", name="Show what it does").click()
    page.fill("[name=ruling]", "The witness saw half of the stall.")
    page.get_by_role("button", name=re.compile(r"^Rule: 50")).click()


def end(visitor: Visitor) -> None:
    page = visitor.page
    page.reload()
    page.locator("summary", has_text="Stop this lease").click()
    page.get_by_role("button", name="Stop, refund at least").click()
    expect(page.locator("#state")).to_contain_text("Ended because: buyer ended", timeout=60_000)


def wait_for_settlement(visitor: Visitor) -> Decimal:
    """Wait until nothing is open, and return what the readings' lines come to."""
    page, deadline = visitor.page, time.monotonic() + 90
    while True:
        page.reload()
        sums = read_sums(page)
        if sums["settled to provider and fee"] + sums["returned"] == Decimal("5.00"):
            visitor.take_shot("story-settled")
            return sums["settled to provider and fee"]
        assert time.monotonic() < deadline, f"not settled: {sums}"
        page.wait_for_timeout(1_000)


def read_sums(page: Page) -> dict[str, Decimal]:
    """Return the lease page's money, by label; a sum that is not shown is zero."""
    rows = page.locator("#runway dl.sums")
    labels = [text.strip() for text in rows.locator("dt").all_inner_texts()]
    values = [Decimal(text.replace(",", "")) for text in rows.locator("dd").all_inner_texts()]
    return {"returned": Decimal(0), **dict(zip(labels, values, strict=True))}


def balance(visitor: Visitor) -> Decimal:
    visitor.go("/billing/top-ups/new/")
    return Decimal(visitor.page.locator("dd.total").inner_text().replace(",", ""))


def earned(visitor: Visitor) -> Decimal:
    visitor.go("/provider/earnings/")
    return Decimal(visitor.page.locator("aside dd").first.inner_text().replace(",", ""))


def last_part(page: Page) -> str:
    return page.url.split("?")[0].rstrip("/").rpartition("/")[2]
