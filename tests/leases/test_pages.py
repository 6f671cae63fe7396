"""Orders, leases and disputes on pages."""

import csv
import io
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from billing.services import settlement
from fabric.accounts.models import Project
from fabric.lib.clock import utc_now
from fabric.lib.secrets import access_token
from leases.models import Dispute, Lease, Order, WitnessReading
from tests.leases.scene import BUDGET, MONEY, PRICE, Scene, build_scene, second
from tests.listings.bodies import BODY
from tests.world import World


@pytest.fixture
def scene(world: World) -> Scene:
    """The scene at the clock's own time, since pages read the clock."""
    return build_scene(world, utc_now().replace(microsecond=0))


@pytest.fixture
def alice(scene: Scene) -> Client:
    return scene.world.client(scene.world.alice)


def order_path(scene: Scene) -> str:
    return f"/orders/new/?listing={scene.listing.public_id}"


def form_of(scene: Scene, **changes: Any) -> dict[str, Any]:
    return {
        "listing": scene.listing.public_id,
        "project": str(scene.world.project.pk),
        "unit_count": "1",
        "hours": "1",
        "budget_micros": "0.02",
        "price": str(PRICE),
        "accepts_interruption": "on",
        "accepts_unisolated": "on",
        "key": "page-1",
        **changes,
    }


def metered(scene: Scene, windows: int = 3) -> Lease:
    """Return a running lease with that many metered windows, the last one just over."""
    end = int(scene.now.timestamp()) // 5 * 5
    start = datetime.fromtimestamp(end - 5 * windows, tz=UTC)
    scene.beat(start)
    lease = scene.running(now=start)
    meter = scene.meter(lease)
    for number in range(windows):
        at = second(start, 5 * number)
        if number:
            scene.sweep(at)
        WitnessReading.objects.create(
            lease=lease,
            kind="control_plane",
            window_index=int(at.timestamp()) // 5,
            observed={"reachable": True, "latency_ms": 1.8},
            at=second(at, 1),
        )
        seen = {**BODY["promise"], "disk_read_mb_s": 410 - 120 * number}
        scene.deliver(lease, meter.next(at, observed=seen), second(at, 5))
    scene.beat(scene.now)
    return scene.again(lease)


def text_of(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_the_order_page_shows_everything_that_will_be_agreed(scene: Scene, alice: Client) -> None:
    """R-C1, R-C3 (page): price, hold, balance after, consents and rules stand before the button."""
    page = alice.get(f"{order_path(scene)}&hours=2&unit_count=9")
    assert page.status_code == 200
    text = text_of(page)
    assert page.context["sum"].hold_micros == 2 * PRICE
    assert page.context["sum"].left_micros == MONEY - 2 * PRICE
    assert "Order, hold $0.10" in text
    assert "may be interrupted" in text
    assert "without a container" in text
    assert bytes(scene.world.commercial.digest).hex() in text
    assert not Order.objects.exists()


def test_an_order_from_the_page_leads_to_its_lease(scene: Scene, alice: Client) -> None:
    """R-C1 (page): the form places one order, however often it is sent."""
    answers = [alice.post("/orders/new/", form_of(scene)) for _ in range(2)]
    order = Order.objects.get()
    assert order.budget_micros == BUDGET
    for answer in answers:
        assert answer.status_code == 302
        assert answer["Location"] == f"/leases/{order.lease.public_id}/"
    page = alice.get(answers[0]["Location"])
    assert page.status_code == 200
    assert "not charging" in text_of(page)


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"budget_micros": "5"}, 402, "balance does not cover"),
        ({"budget_micros": "NaN"}, 400, "plain number"),
        ({"budget_micros": "-1"}, 400, "plain number"),
        ({"unit_count": "0"}, 400, "Accelerators"),
        ({"hours": "1e99"}, 400, "Term in hours"),
        ({"price": str(PRICE - 1)}, 409, "above the"),
        ({"accepts_unisolated": ""}, 409, "without a container"),
        ({"project": "nonsense"}, 400, "Project"),
    ],
)
def test_a_refused_order_says_what_to_put_right(
    scene: Scene, alice: Client, changes: dict[str, str], status: int, words: str
) -> None:
    """R-C1 (page): beside the field and on top, and nothing has happened."""
    page = alice.post("/orders/new/", form_of(scene, **changes))
    assert page.status_code == status
    assert "Nothing was changed." in text_of(page)
    assert words in text_of(page)
    assert not Order.objects.exists()
    assert scene.wallet_micros() == MONEY


def test_a_provider_is_told_that_it_cannot_buy_its_own(scene: Scene) -> None:
    """R-C2 (page): the reason stands before the button, which is off."""
    page = scene.world.client(scene.world.carol).get(order_path(scene))
    assert "cannot buy it" in text_of(page)
    assert "disabled" in text_of(page)


def test_a_lease_page_says_state_money_promise_and_evidence(scene: Scene, alice: Client) -> None:
    """R-C5, R-C8, R-C11 (page): charging, runway, every field, one line recomputed to zero."""
    lease = metered(scene)
    page = alice.get(f"/leases/{lease.public_id}/?field=disk_read_mb_s")
    text = text_of(page)
    assert "charging $0.05 per hour" in text
    assert len(page.context["promises"]) == len(BODY["promise"])
    assert page.context["verdicts"] == {"kept": len(BODY["promise"]) - 1, "broken": 1, "unread": 0}
    assert page.context["line"].total_micros == 0
    money = page.context["money"]
    parts = (
        money.settled_micros
        + money.open_micros
        + money.disputed_micros
        + money.reserved_micros
        + money.unused_micros
        + money.returned_micros
    )
    assert parts == money.funded_micros == BUDGET
    assert page.context["runway"].seconds > 600
    assert [row.value for row in page.context["rows"]] == [170, 290, 410]
    assert [row.verdict for row in page.context["rows"]] == ["short", "short", "match"]
    assert access_token(lease.public_id) not in text
    assert "style=" not in text
    assert re.search(r'aria-label="[^"]*<', text) is None


def test_live_parts_are_polled_and_polling_stops_with_the_lease(
    scene: Scene, alice: Client
) -> None:
    """R-E4 (page): htmx gets the parts that change; an ended lease answers 286."""
    lease = metered(scene, windows=1)
    path = f"/leases/{lease.public_id}/"
    part = alice.get(path, headers={"HX-Request": "true"})
    assert part.status_code == 200
    text = text_of(part)
    assert text.count('hx-swap-oob="true"') == 3
    assert "<html" not in text
    assert "every 2s" in text_of(alice.get(path))
    scene.end(lease, scene.now)
    for later in (40, 80):
        scene.sweep(second(scene.now, later))
        settlement.settle_due(now=second(scene.now, later))
    scene.sweep(second(scene.now, 90))
    assert scene.again(lease).state == "ended"
    assert alice.get(path, headers={"HX-Request": "true"}).status_code == 286
    assert "hx-get" not in text_of(alice.get(path))


def test_the_csv_is_exactly_what_the_chart_draws(scene: Scene, alice: Client) -> None:
    """R-C6 (page): chart, table twin and file say the same, gaps included."""
    lease = metered(scene)
    drawn: dict[str, Any] = {}
    for field in ("ready_seconds", "disk_read_mb_s"):
        drawn = alice.get(f"/leases/{lease.public_id}/chart/?field={field}").json()
        file = alice.get(f"/leases/{lease.public_id}/chart.csv?field={field}")
        assert file["Content-Type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(file.content.decode())))
        column = next(name for name in rows[0] if name.startswith("provider"))
        assert [float(row[column]) for row in rows] == drawn["series"][0]["values"]
        assert len(rows) == len(drawn["x"]) == 3
        assert "3 windows" in drawn["summary"]
    assert drawn["promise"] == {"value": 400, "tolerance_bps": 2000, "direction": "higher"}
    assert len(drawn["below"]) == 2


def test_a_buyer_tops_up_disputes_withdraws_and_stops(scene: Scene, alice: Client) -> None:
    """R-C7, R-C11 (page): each act is a form that posts without JavaScript."""
    lease = metered(scene)
    path = f"/leases/{lease.public_id}/"
    alice.post(f"{path}top-ups/", {"amount_micros": "0.01", "key": "t"})
    alice.post(f"{path}top-ups/", {"amount_micros": "0.01", "key": "t"})
    assert scene.again(lease).funded_micros == BUDGET + 10_000
    refused = alice.post(f"{path}top-ups/", {"amount_micros": "99", "key": "u"}, follow=True)
    assert "Nothing was moved." in text_of(refused)

    page = alice.get(path)
    reading = page.context["dispute_form"].fields["reading"].choices[0][0]
    opened = alice.post(
        f"{path}disputes/", {"reading": reading, "statement": "The disk was slow."}, follow=True
    )
    assert "The disk was slow." in text_of(opened)
    dispute = Dispute.objects.get()
    assert dispute.reading.public_id == reading
    again = alice.post(f"{path}disputes/", {"reading": reading, "statement": "x"}, follow=True)
    assert "Nothing is held." in text_of(again)
    withdrawn = alice.post(f"/disputes/{dispute.public_id}/withdrawal/", follow=True)
    assert "withdrawn" in text_of(withdrawn)

    before = scene.wallet_micros()
    preview = alice.get(path).context["money"].refund_micros
    stopped = alice.post(f"{path}ending/", follow=True)
    assert "returned to your balance" in text_of(stopped)
    assert scene.again(lease).state == "ending"
    assert scene.wallet_micros() - before >= preview


def test_the_token_is_on_one_page_once(scene: Scene, alice: Client) -> None:
    """R-E1 (page): the page with the token is kept by no cache and is not shown twice."""
    lease = metered(scene, windows=1)
    path = f"/leases/{lease.public_id}/access-token/"
    assert alice.get(path).status_code == 405
    shown = alice.post(path)
    assert access_token(lease.public_id) in text_of(shown)
    assert "no-store" in shown["Cache-Control"]
    assert alice.post(path).status_code == 409
    assert "is not shown again" in text_of(alice.get(f"/leases/{lease.public_id}/"))


def page_addresses(lease: Lease) -> list[tuple[str, str]]:
    path = f"/leases/{lease.public_id}/"
    return [
        ("GET", path),
        ("GET", f"{path}chart/"),
        ("GET", f"{path}chart.csv"),
        ("POST", f"{path}ending/"),
        ("POST", f"{path}top-ups/"),
        ("POST", f"{path}access-token/"),
        ("POST", f"{path}disputes/"),
        ("POST", f"/disputes/{lease.disputes.get().public_id}/withdrawal/"),
    ]


def test_another_tenants_pages_do_not_exist(scene: Scene, alice: Client) -> None:
    """R-C2 (page): every page and form of a lease answers a stranger 404, the anonymous a door."""
    lease = metered(scene, windows=1)
    reading = lease.readings.get().public_id
    alice.post(f"/leases/{lease.public_id}/disputes/", {"reading": reading, "statement": "Slow."})
    dave = scene.world.client(scene.world.dave)
    for method, path in page_addresses(lease):
        answer = dave.get(path) if method == "GET" else dave.post(path)
        assert answer.status_code == 404, path
        nobody = Client().get(path) if method == "GET" else Client().post(path)
        assert nobody.status_code == 302, path
        assert nobody["Location"].startswith("/accounts/login/"), path
    assert lease.public_id not in text_of(dave.get("/leases/"))
    assert dave.get("/disputes/").context["rows"] == []
    assert scene.again(lease).state == "active"


def test_forms_want_their_token(scene: Scene) -> None:
    """R-E4 (page): a form posted without a CSRF token changes nothing."""
    lease = metered(scene, windows=1)
    client = Client(enforce_csrf_checks=True)
    client.force_login(scene.world.alice, backend="django.contrib.auth.backends.ModelBackend")
    path = f"/leases/{lease.public_id}/"
    for address, data in (
        ("/orders/new/", form_of(scene)),
        (f"{path}ending/", {}),
        (f"{path}top-ups/", {"amount_micros": "0.01", "key": "t"}),
        (f"{path}access-token/", {}),
        (f"{path}disputes/", {"reading": "x", "statement": "y"}),
    ):
        assert client.post(address, data).status_code == 403, address
    assert scene.again(lease).state == "active"
    assert scene.again(lease).access_shown_at is None


def test_the_provider_sees_its_lease_and_no_buyer(scene: Scene) -> None:
    """R-B8 (page): the same page without the buyer's name, project, verbs or token."""
    lease = metered(scene)
    carol = scene.world.client(scene.world.carol)
    pages = [
        text_of(carol.get(f"/leases/{lease.public_id}/")),
        text_of(carol.get("/leases/?side=provider")),
        text_of(carol.get("/disputes/")),
    ]
    told = "".join(pages)
    assert lease.public_id in told
    world = scene.world
    for secret in (
        "Meridian",
        world.meridian.public_id,
        world.project.name,
        world.alice.public_id,
        world.alice.email,
        access_token(lease.public_id),
        "Show access token",
        "Stop this lease",
    ):
        assert secret not in told, secret
    for verb in ("ending", "access-token"):
        assert carol.post(f"/leases/{lease.public_id}/{verb}/").status_code == 403
    assert scene.again(lease).state == "active"


def test_the_list_of_leases_costs_the_same_however_long_it_is(scene: Scene, alice: Client) -> None:
    """R-E4 (page): a recorded number of queries; when it moves, the diff says why."""
    metered(scene, windows=1)
    alice.get("/leases/")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        page = alice.get("/leases/")
    assert [row["hourly_micros"] for row in page.context["rows"]] == [PRICE]
    assert len(queries) == 7, [query["sql"][:120] for query in queries]


def test_a_wide_organisation_chooses_the_project_by_address(scene: Scene, alice: Client) -> None:
    """R-C19 (page): the order belongs to the project that was chosen."""
    other = Project.objects.create(organisation=scene.world.meridian, name="Another")
    page = alice.get(f"{order_path(scene)}&project={other.public_id}")
    assert page.context["form"].initial["project"] == other
    stranger = scene.world.strangers_project
    page = alice.get(f"{order_path(scene)}&project={stranger.public_id}")
    assert page.context["form"].initial["project"].organisation == scene.world.meridian
