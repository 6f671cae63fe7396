"""The money pages: what they show, what they add up to, and whom they are hidden from."""

import re
from datetime import datetime

import pytest
from django.test import Client

from billing.domain.states import TopUpState
from billing.models import Account, TopUp, Transfer, UsageRecord
from billing.services import disputes, escrow, settlement, wallet
from fabric.lib import ids
from tests.billing.money import after_disputes, first_window, funded, record
from tests.standin import StandInProcess
from tests.world import World

WALLET = "/billing/"
NEW = "/billing/top-ups/new/"
EARNINGS = "/provider/earnings/"


@pytest.fixture
def used(world: World, now: datetime) -> list[UsageRecord]:
    """Three windows of a lease: one settled, one pending, one disputed."""
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    records = []
    for ahead in range(3):
        escrow.reserve_window(
            agreement=agreement,
            terms=terms,
            window_index=window + ahead,
            max_ready_seconds=5,
            now=now,
        )
        records.append(record(agreement, terms, window + ahead, 4))
    settlement.settle_due(now=after_disputes(records[0]))
    assert disputes.hold_record(record=records[2], now=after_disputes(records[0]))
    for kept in records:
        kept.refresh_from_db()
    return records


def _text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content
    return re.sub(r"\s+", " ", answer.content.decode())


def test_the_wallet_says_where_every_unit_is(world: World, used: list[UsageRecord]) -> None:
    """R-C13 (page): available, held, pending and disputed add up to the statement's totals."""
    page = _text(world.client(world.alice), WALLET)
    for label, amount in (
        ("held in escrow", "0.086000"),
        ("pending, promised to windows", "0.005000"),
        ("in dispute", "0.005000"),
        ("Yours, $", "0.096000"),
    ):
        assert re.search(rf"{re.escape(label)}</dt><dd[^>]*>{amount}</dd>", page), label
    assert "4 lines" not in page
    assert "3 lines" in page
    assert "\N{MINUS SIGN}0.004000" in page


def test_a_charge_leads_to_its_legs_its_window_and_its_terms(
    world: World, used: list[UsageRecord]
) -> None:
    """R-C8 (page): from the statement down to the sum anybody can do again."""
    client = world.client(world.alice)
    post = Transfer.objects.get(record=used[0])
    assert f"/billing/lines/{post.pk}/" in _text(client, WALLET)
    answer = client.get(f"/billing/lines/{post.pk}/")
    assert answer.status_code == 302
    page = _text(client, answer["Location"])
    assert "3.600000 \N{MULTIPLICATION SIGN} 1" in page
    assert "0.003400" in page
    assert bytes(used[0].terms.digest).hex() in page
    assert used[0].evidence in page
    assert f"escrow:{used[0].agreement.public_id}" in page
    order = Transfer.objects.get(kind="order")
    assert "Funded into escrow" in _text(client, f"/billing/lines/{order.pk}/")


def test_a_line_that_is_not_booked_says_why(world: World, used: list[UsageRecord]) -> None:
    client = world.client(world.alice)
    assert "can be disputed until" in _text(client, f"/billing/usage/{used[1].public_id}/")
    assert "held until the dispute" in _text(client, f"/billing/usage/{used[2].public_id}/")


def test_the_provider_sees_its_share_by_state_and_never_the_buyer(
    world: World, used: list[UsageRecord]
) -> None:
    """R-C9 (page): the provider's pay stands beside the very lines the buyer is charged by."""
    client = world.client(world.carol)
    page = _text(client, EARNINGS)
    for label in ("earned", "open to dispute", "in dispute"):
        assert re.search(rf"{label}</dt><dd>0.003400</dd>", page), label
    assert re.search(r"Sum of all lines, \$</dt><dd class=\"total\">0.010200</dd>", page)
    usage = _text(client, f"/billing/usage/{used[0].public_id}/")
    for shown in (page, usage):
        assert world.meridian.name not in shown
        assert world.meridian.public_id not in shown
        assert world.alice.email not in shown


def test_empty_pages_say_what_to_do_next(world: World) -> None:
    assert "No line yet" in _text(world.client(world.dave), WALLET)
    assert "No line yet" in _text(world.client(world.dave), EARNINGS)


def test_a_long_statement_comes_in_pages_and_totals_stay(world: World, now: datetime) -> None:
    """A page costs the same number of queries however much history there is."""
    for number in range(30):
        wallet.credit_cash(
            organisation=world.meridian, amount_micros=1_000, key=f"t{number}", now=now
        )
    client = world.client(world.alice)
    first, second = _text(client, WALLET), _text(client, f"{WALLET}?page=2")
    assert "30 lines" in first
    assert first.count("Top-up by card") == 25
    assert second.count("Top-up by card") == 5
    assert "0.030000" in second


def test_the_wallet_page_has_a_fixed_number_of_queries(
    world: World, used: list[UsageRecord], django_assert_max_num_queries: object
) -> None:
    client = world.client(world.alice)
    client.get(WALLET)
    with django_assert_max_num_queries(20):  # type: ignore[operator]
        client.get(WALLET)


@pytest.mark.parametrize("person", ["dave", ""])
def test_another_tenants_money_is_not_there(
    world: World, used: list[UsageRecord], person: str, now: datetime
) -> None:
    """R-C13 (page): another tenant's lines, windows and top-ups do not exist for a stranger."""
    top_up = TopUp.objects.create(
        organisation=world.meridian, amount_micros=1, created_by="x", created_at=now
    )
    order = Transfer.objects.get(kind="order")
    client = world.client(getattr(world, person) if person else None)
    for path in (
        f"/billing/usage/{used[0].public_id}/",
        f"/billing/lines/{order.pk}/",
        f"/billing/top-ups/{top_up.public_id}/",
        f"/billing/top-ups/{ids.to_public('top', ids.uuid7())}/",
        f"/billing/lines/{2**62}/",
    ):
        answer = client.get(path)
        assert answer.status_code == (404 if person else 302), path


def test_a_provider_does_not_see_how_the_buyer_funds(world: World, used: list[UsageRecord]) -> None:
    order = Transfer.objects.get(kind="order")
    assert world.client(world.carol).get(f"/billing/lines/{order.pk}/").status_code == 404


def test_a_top_up_from_form_to_balance(world: World, standin: StandInProcess) -> None:
    """R-C12 (page): the form leads to the payment page, and coming back shows the new balance."""
    client = world.client(world.alice)
    form = client.get(NEW)
    key = form.context["form"]["key"].value()
    answer = client.post(NEW, {"amount_micros": "25.00", "key": key})
    assert answer.status_code == 303
    again = client.post(NEW, {"amount_micros": "25.00", "key": key})
    assert again["Location"] == answer["Location"]
    top_up = TopUp.objects.get()
    assert answer["Location"] == top_up.checkout_url
    page = f"/billing/top-ups/{top_up.public_id}/"
    assert "Nothing was charged yet" in _text(client, page)

    back = standin.act(str(top_up.checkout_session), "pay").headers["location"]

    assert back.endswith(f"{page}?session_id={top_up.checkout_session}")
    assert "added to your balance" in _text(client, f"{page}?session_id={top_up.checkout_session}")
    assert wallet.available_micros(world.meridian) == 25_000_000
    assert "Top-up by card" in _text(client, WALLET)


def test_a_made_up_return_address_credits_nothing(world: World, standin: StandInProcess) -> None:
    """R-C12 (page): the address one comes back to proves no payment."""
    client = world.client(world.alice)
    client.post(NEW, {"amount_micros": "25.00", "key": "k"})
    top_up = TopUp.objects.get()
    page = f"/billing/top-ups/{top_up.public_id}/"
    for session in ("cs_test_made_up", str(top_up.checkout_session)):
        assert "Nothing was charged yet" in _text(client, f"{page}?session_id={session}")
    assert wallet.available_micros(world.meridian) == 0


def test_the_return_page_stays_calm_when_the_processor_is_away(
    world: World, own_standin: StandInProcess
) -> None:
    client = world.client(world.alice)
    client.post(NEW, {"amount_micros": "25.00", "key": "k"})
    top_up = TopUp.objects.get()
    own_standin.stop()
    page = f"/billing/top-ups/{top_up.public_id}/?session_id={top_up.checkout_session}"
    assert "you need not pay again" in _text(client, page)
    assert (
        "cannot be reached" in client.post(NEW, {"amount_micros": "9", "key": "j"}).content.decode()
    )


@pytest.mark.parametrize(
    "amount",
    [
        "-1",
        "0",
        "0.99",
        "NaN",
        "1e309",
        "1e3",
        "1.0000001",
        str(2**63),
        "",
        "25.001",
        "\u0661\u0660",
    ],
)
def test_a_strange_amount_is_refused_on_the_form(
    world: World, standin: StandInProcess, amount: str
) -> None:
    """R-C12 (page): what is not a plain amount of whole cents is refused beside its field."""
    answer = world.client(world.alice).post(NEW, {"amount_micros": amount, "key": "k"})
    assert answer.status_code == 400
    assert answer.context["form"].errors["amount_micros"]
    assert not TopUp.objects.filter(checkout_session__isnull=False).exists()


def test_a_form_without_a_token_is_refused(world: World, standin: StandInProcess) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    assert client.post(NEW, {"amount_micros": "25", "key": "k"}).status_code == 403
    assert not TopUp.objects.exists()


def test_who_may_not_pay_sees_the_balance_and_no_button(world: World) -> None:
    bob = world.client(world.bob)
    assert NEW not in _text(bob, WALLET)
    assert bob.get(NEW).status_code == 403
    assert bob.post(NEW, {"amount_micros": "25", "key": "k"}).status_code == 403


def test_an_expired_top_up_says_nothing_was_charged(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    client = world.client(world.alice)
    client.post(NEW, {"amount_micros": "25.00", "key": "k"})
    top_up = TopUp.objects.get()
    TopUp.objects.filter(pk=top_up.pk).update(state=TopUpState.EXPIRED)
    assert "nothing was charged" in _text(client, f"/billing/top-ups/{top_up.public_id}/")
    assert Account.objects.filter(kind="wallet", credits_posted__gt=0).count() == 0
