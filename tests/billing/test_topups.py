"""Card money into a wallet, through the stand-in: once, whatever order the news arrives in."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from pytest_django import Settings

from billing import stripe_gateway
from billing.domain.states import TopUpState
from billing.models import PaymentCustomer, StripeEvent, TopUp, Transfer
from billing.services import inbox, topups, wallet
from billing.services.ledger import KeyReused
from billing.stripe_gateway import PaymentsUnavailable, WebhookEvent
from deploy.local.processes import Child
from fabric.journal.models import Event
from fabric.lib.clock import utc_now
from fabric.lib.errors import InvalidInput, NotAllowed, NotVisible
from tests.billing.money import assert_books_balance
from tests.standin import StandInProcess
from tests.world import World

TEN_DOLLARS = 10_000_000


def _start(world: World, now: datetime, **changes: object) -> TopUp:
    arguments: dict[str, object] = {"amount_micros": TEN_DOLLARS, **changes}
    return topups.start_top_up(
        actor=world.actor(world.alice),
        organisation=world.meridian,
        now=now,
        **arguments,  # type: ignore[arg-type]
    )


def _session(top_up: TopUp) -> str:
    assert top_up.checkout_session is not None
    return top_up.checkout_session


def test_a_top_up_opens_a_payment_page_and_credits_nothing_yet(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    """R-C1 (api): only what has cleared counts; an opened payment page is no money."""
    top_up = _start(world, now)
    assert top_up.checkout_url == f"{standin.url}/checkout/{top_up.checkout_session}"
    assert topups.fulfil(session_id=_session(top_up), now=now).state == TopUpState.CREATED
    standin.act(_session(top_up), "decline")
    assert topups.fulfil(session_id=_session(top_up), now=now).state == TopUpState.CREATED
    assert wallet.available_micros(world.meridian) == 0


def test_a_payment_is_credited_once_from_wherever_it_is_told(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    """R-C12 (api): return page and webhook both fulfil; the balance rises once."""
    top_up = _start(world, now)
    standin.act(_session(top_up), "pay")
    for _ in range(3):
        assert topups.fulfil(session_id=_session(top_up), now=now).state == TopUpState.PAID
    assert wallet.available_micros(world.meridian) == TEN_DOLLARS
    assert Transfer.objects.filter(kind="top_up").count() == 1
    assert Event.objects.filter(kind="top_up.paid").count() == 1
    assert_books_balance()


def test_fulfilled_by_many_at_once_it_is_credited_once(
    committed_db: None, world: World, standin: StandInProcess, now: datetime
) -> None:
    """R-C12 (api): eight workers hear of one payment at the same instant."""
    top_up = _start(world, now)
    standin.act(_session(top_up), "pay")
    states: list[str] = []

    def work() -> None:
        states.append(topups.fulfil(session_id=_session(top_up), now=now).state)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states == [TopUpState.PAID] * 8
    assert wallet.available_micros(world.meridian) == TEN_DOLLARS
    assert_books_balance()


def test_the_stand_ins_webhook_credits_the_balance(
    connected_standin: StandInProcess, world: World
) -> None:
    """R-C12 (api): paid on the hosted page, told by signed webhook, worked off, credited."""
    top_up = _start(world, utc_now())
    connected_standin.act(_session(top_up), "pay")
    _wait_for(lambda: StripeEvent.objects.count() == 2)
    for event_id in inbox.events_due(now=utc_now(), limit=10):
        assert inbox.process_event(event_id=event_id, now=utc_now())
    top_up.refresh_from_db()
    assert top_up.state == TopUpState.PAID
    assert top_up.payment_intent is not None
    assert top_up.payment_intent.startswith("pi_")
    assert wallet.available_micros(world.meridian) == TEN_DOLLARS
    assert inbox.events_due(now=utc_now() + timedelta(days=1), limit=10) == []
    assert_books_balance()


def test_paid_on_the_page_credited_by_the_worker(
    connected_standin: StandInProcess, celery_worker_process: Child, world: World
) -> None:
    """R-C12 (page): with every process real, the balance rises within seconds of the payment."""
    top_up = _start(world, utc_now())
    connected_standin.act(_session(top_up), "pay")
    _wait_for(lambda: wallet.available_micros(world.meridian) == TEN_DOLLARS)
    top_up.refresh_from_db()
    assert top_up.state == TopUpState.PAID
    _wait_for(lambda: not StripeEvent.objects.filter(processed_at__isnull=True).exists())
    assert StripeEvent.objects.filter(failure="").count() == 2
    assert_books_balance()


def test_one_payment_told_by_two_events_is_credited_once(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    """R-C12 (api): two endpoints double every delivery under ids of their own; money moves once."""
    top_up = _start(world, now)
    standin.act(_session(top_up), "pay")
    for event_id in ("evt_of_one_endpoint", "evt_of_the_other"):
        _receive(event_id, "checkout.session.completed", _session(top_up), now)
        assert inbox.process_event(event_id=event_id, now=now)
    assert wallet.available_micros(world.meridian) == TEN_DOLLARS


def test_news_in_any_order_leads_to_the_same_end(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    """R-C12 (api): an old `expired` after a payment, told twice, takes nothing away."""
    top_up = _start(world, now)
    standin.act(_session(top_up), "pay")
    for number, kind in enumerate(("completed", "expired", "completed", "expired")):
        _receive(f"evt_{number}", f"checkout.session.{kind}", _session(top_up), now)
        inbox.process_event(event_id=f"evt_{number}", now=now)
    top_up.refresh_from_db()
    assert top_up.state == TopUpState.PAID
    assert wallet.available_micros(world.meridian) == TEN_DOLLARS


def test_an_expired_payment_page_ends_the_top_up(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    top_up = _start(world, now)
    _expire(top_up)
    assert topups.fulfil(session_id=_session(top_up), now=now).state == TopUpState.EXPIRED
    assert wallet.available_micros(world.meridian) == 0


def test_a_paid_top_up_never_goes_back(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    """R-C13 (api): the database refuses to unpay, to change the amount, or the tenant."""
    top_up = _start(world, now)
    standin.act(_session(top_up), "pay")
    topups.fulfil(session_id=_session(top_up), now=now)
    rows = TopUp.objects.filter(pk=top_up.pk)
    for change in (
        {"state": TopUpState.EXPIRED},
        {"state": TopUpState.CREATED},
        {"amount_micros": 1},
        {"organisation": world.strangers},
        {"paid_at": None},
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.update(**change)


@pytest.mark.parametrize(
    ("amount_minor", "currency"), [(999, "usd"), (1_001, "usd"), (1_000, "eur")]
)
def test_a_payment_of_another_amount_or_currency_is_not_credited(
    world: World, standin: StandInProcess, now: datetime, amount_minor: int, currency: str
) -> None:
    """R-C12 (api): a session that took something else than was asked is left to an operator."""
    top_up = _start(world, now)
    other = _open_session(top_up.public_id, amount_minor, currency)
    standin.act(other, "pay")
    _receive("evt_1", "checkout.session.completed", other, now)
    with pytest.raises(topups.PaymentMismatch):
        inbox.process_event(event_id="evt_1", now=now)
    top_up.refresh_from_db()
    assert top_up.state == TopUpState.CREATED
    assert wallet.available_micros(world.meridian) == 0
    assert StripeEvent.objects.get().processed_at is None
    assert Event.objects.filter(kind="alert.payment_mismatch").count() == 1


def test_a_test_payment_is_not_credited_where_cards_are_live(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    """R-C12 (api): money of the test mode never reaches a live balance."""
    top_up = _start(world, now)
    standin.act(_session(top_up), "pay")
    session = stripe_gateway.retrieve_checkout(_session(top_up))
    with pytest.raises(topups.PaymentMismatch):
        topups.apply_session(session=replace(session, livemode=True), now=now)
    assert wallet.available_micros(world.meridian) == 0


def test_a_payment_that_belongs_to_no_top_up_is_not_credited(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    session = _open_session("somebody else's shop", 1_000, "usd")
    standin.act(session, "pay")
    with pytest.raises(NotVisible):
        topups.fulfil(session_id=session, now=now)
    assert wallet.available_micros(world.meridian) == 0


def test_a_failure_leaves_the_event_to_be_tried_again(
    world: World, own_standin: StandInProcess, now: datetime
) -> None:
    """R-C12 (api): an event counts as done after its work, so a failed one loses no money."""
    top_up = _start(world, now)
    own_standin.act(_session(top_up), "pay")
    _receive("evt_1", "checkout.session.completed", _session(top_up), now)
    own_standin.stop()
    with pytest.raises(PaymentsUnavailable):
        inbox.process_event(event_id="evt_1", now=now)
    event = StripeEvent.objects.get()
    assert (event.processed_at, event.attempts) == (None, 1)
    assert "cannot be reached" in event.failure
    assert inbox.events_due(now=now, limit=10) == []
    assert not inbox.process_event(event_id="evt_1", now=now)

    own_standin.start()
    later = now + timedelta(minutes=5)
    assert inbox.events_due(now=later, limit=10) == ["evt_1"]
    assert inbox.process_event(event_id="evt_1", now=later)
    assert wallet.available_micros(world.meridian) == TEN_DOLLARS
    assert not inbox.process_event(event_id="evt_1", now=later)


def test_a_claim_that_died_lapses(db: None, now: datetime) -> None:
    """R-C12 (api): a worker killed in the middle of an event delays it, no more."""
    _receive("evt_1", "customer.created", "cus_1", now)
    StripeEvent.objects.update(next_attempt_at=now + timedelta(seconds=60), attempts=1)
    assert not inbox.process_event(event_id="evt_1", now=now)
    assert inbox.process_event(event_id="evt_1", now=now + timedelta(seconds=61))


def test_an_event_that_keeps_failing_raises_an_alert(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    _receive("evt_1", "checkout.session.completed", "cs_test_of_nobody", now)
    for attempt in range(inbox.ALERT_AFTER_ATTEMPTS):
        with pytest.raises(stripe_gateway.PaymentsRefused):
            inbox.process_event(event_id="evt_1", now=now + timedelta(hours=2 * attempt))
    assert Event.objects.filter(kind="alert.payment_event_failing").count() == 1


def test_the_same_request_key_resumes_the_same_top_up(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    """R-C12 (api): a request repeated after a lost answer opens no second payment."""
    first = _start(world, now, key="k")
    assert _start(world, now, key="k") == first
    with pytest.raises(KeyReused):
        _start(world, now, key="k", amount_micros=2 * TEN_DOLLARS)
    dave = topups.start_top_up(
        actor=world.actor(world.dave),
        organisation=world.strangers,
        amount_micros=TEN_DOLLARS,
        now=now,
        key="k",
    )
    assert dave != first
    assert _start(world, now) != _start(world, now)
    assert PaymentCustomer.objects.count() == 2


def test_a_top_up_cut_off_before_its_page_was_known_is_resumed(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    """R-C12 (api): killed between asking and remembering, the same session is found again."""
    first = _start(world, now, key="k")
    TopUp.objects.filter(pk=first.pk).update(checkout_session=None, checkout_url="")
    standin.act(_session(first), "pay")
    assert topups.fulfil(session_id=_session(first), now=now).state == TopUpState.PAID
    again = _start(world, now, key="k")
    assert again.checkout_session == first.checkout_session
    assert wallet.available_micros(world.meridian) == TEN_DOLLARS


@pytest.mark.parametrize(
    "amount", [-1, 0, 999_999, 1_000_001, 2**63, True, 10.0, "10000000", float("nan"), 1e309]
)
def test_a_strange_amount_opens_nothing(
    world: World, standin: StandInProcess, now: datetime, amount: object
) -> None:
    """R-C12 (api): negative, zero, fractions of a cent and numbers that are none are refused."""
    with pytest.raises(InvalidInput) as refusal:
        _start(world, now, amount_micros=amount)
    assert refusal.value.errors[0].field == "amount_micros"
    assert not TopUp.objects.exists()


def test_only_who_may_pay_tops_up_and_only_their_own(
    world: World, standin: StandInProcess, now: datetime
) -> None:
    for person in (world.bob, world.dave):
        with pytest.raises(NotAllowed):
            topups.start_top_up(
                actor=world.actor(person),
                organisation=world.meridian,
                amount_micros=TEN_DOLLARS,
                now=now,
            )
    assert not TopUp.objects.exists()


def test_without_any_processor_the_refusal_says_so(
    world: World, now: datetime, settings: Settings
) -> None:
    settings.STRIPE_SECRET_KEY = settings.FABRIC_PAYMENT_STANDIN_URL = ""
    with pytest.raises(PaymentsUnavailable):
        _start(world, now)


def _receive(event_id: str, kind: str, object_id: str, now: datetime) -> None:
    event = WebhookEvent(
        id=event_id,
        kind=kind,
        object_id=object_id,
        payload={"id": event_id, "type": kind, "data": {"object": {"id": object_id}}},
    )
    assert inbox.receive_event(event=event, now=now)


def _open_session(reference: str, amount_minor: int, currency: str) -> str:
    """Open a payment page past the gateway, as a fault or a stranger would."""
    session = stripe_gateway._client().v1.checkout.sessions.create(
        {
            "mode": "payment",
            "client_reference_id": reference,
            "success_url": "http://127.0.0.1/",
            "line_items": [
                {
                    "price_data": {
                        "currency": currency,
                        "unit_amount": amount_minor,
                        "product_data": {"name": "Other"},
                    },
                    "quantity": 1,
                }
            ],
        }
    )
    return session.id


def _expire(top_up: TopUp) -> None:
    stripe_gateway._client().v1.checkout.sessions.expire(_session(top_up))


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "nothing arrived in time"
        time.sleep(0.05)
