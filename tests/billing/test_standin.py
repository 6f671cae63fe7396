"""The payment stand-in, spoken to with the real `stripe` library."""

import sqlite3
from typing import Any

import httpx
import pytest
import stripe

from simulator.payments.server import refuse_elsewhere
from tests.standin import StandInProcess

PARAMETERS = {
    "mode": "payment",
    "success_url": "http://127.0.0.1/back?session_id={CHECKOUT_SESSION_ID}",
    "cancel_url": "http://127.0.0.1/back",
    "client_reference_id": "top_1",
    "line_items": [
        {
            "price_data": {
                "currency": "usd",
                "unit_amount": 2_500,
                "product_data": {"name": "Balance"},
            },
            "quantity": 1,
        }
    ],
    "metadata": {"top_up": "top_1"},
}


def _client(standin: StandInProcess, key: str = "sk_test_1") -> stripe.StripeClient:
    return stripe.StripeClient(
        key, base_addresses={"api": standin.url}, http_client=stripe.RequestsClient(timeout=10)
    )


def _create(standin: StandInProcess, *, key: str = "", **changes: Any) -> stripe.checkout.Session:
    parameters = {**PARAMETERS, **changes}
    options = {"idempotency_key": key} if key else {}
    return _client(standin).v1.checkout.sessions.create(
        parameters,  # type: ignore[arg-type]
        options,  # type: ignore[arg-type]
    )


def test_a_session_is_paid_on_its_page_and_says_so(standin: StandInProcess) -> None:
    session = _create(standin)
    assert (session.status, session.payment_status, session.amount_total) == (
        "open",
        "unpaid",
        2_500,
    )
    page = httpx.get(str(session.url), timeout=10)
    assert page.status_code == 200
    assert "25.00 USD" in page.text

    answer = standin.act(session.id, "pay")

    assert answer.status_code == 303
    assert answer.headers["location"] == f"http://127.0.0.1/back?session_id={session.id}"
    client = _client(standin)
    paid = client.v1.checkout.sessions.retrieve(session.id)
    assert (paid.status, paid.payment_status) == ("complete", "paid")
    intent = client.v1.payment_intents.retrieve(str(paid.payment_intent))
    assert (intent.status, intent.amount_received) == ("succeeded", 2_500)
    kinds = [event.type for event in client.v1.events.list({"limit": 2}).data]
    assert kinds == ["checkout.session.completed", "payment_intent.succeeded"]
    event = client.v1.events.list({"limit": 1}).data[0]
    assert client.v1.events.retrieve(event.id).id == event.id


def test_a_declined_card_leaves_the_session_open_for_another_try(standin: StandInProcess) -> None:
    session = _create(standin)
    answer = standin.act(session.id, "decline")
    assert answer.headers["location"].endswith("?declined=1")
    assert "declined" in httpx.get(f"{standin.url}{answer.headers['location']}", timeout=10).text
    assert _client(standin).v1.checkout.sessions.retrieve(session.id).payment_status == "unpaid"
    standin.act(session.id, "pay")
    assert _client(standin).v1.checkout.sessions.retrieve(session.id).payment_status == "paid"


def test_a_session_is_paid_once_and_never_after_it_expired(standin: StandInProcess) -> None:
    paid, expired = _create(standin), _create(standin)
    standin.act(paid.id, "pay")
    assert "is paid" in standin.act(paid.id, "pay").text
    client = _client(standin)
    client.v1.checkout.sessions.expire(expired.id)
    assert "is expired" in standin.act(expired.id, "pay").text
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.checkout.sessions.expire(paid.id)
    assert client.v1.checkout.sessions.retrieve(expired.id).payment_status == "unpaid"
    about = [event.data.object.id for event in client.v1.events.list({"limit": 3}).data]
    assert about == [expired.id, paid.id, paid.payment_intent]


def test_an_idempotency_key_repeats_its_answer_and_refuses_other_parameters(
    standin: StandInProcess,
) -> None:
    first = _create(standin, key="k1")
    again = _create(standin, key="k1")
    assert again.id == first.id
    assert again.last_response is not None
    assert again.last_response.headers["Idempotent-Replayed"] == "true"
    with pytest.raises(stripe.IdempotencyError):
        _create(standin, key="k1", client_reference_id="top_2")
    assert _create(standin, key="k2").id != first.id


def test_a_key_whose_request_failed_validation_is_still_free(standin: StandInProcess) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        _create(standin, key="k3", mode="subscription")
    assert _create(standin, key="k3").status == "open"


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"amount": 5}, "amount"),
        ({"payment_intent_data": {"capture": "manual"}}, "payment_intent_data[capture]"),
        (
            {"line_items": [{"price_data": {"currency": "usd", "unit_amont": 5}}]},
            "line_items[0][price_data][unit_amont]",
        ),
    ],
)
def test_parameters_the_real_service_does_not_have_are_refused(
    standin: StandInProcess, changes: dict[str, Any], parameter: str
) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        _create(standin, **changes)
    assert (refusal.value.code, refusal.value.param) == ("parameter_unknown", parameter)


@pytest.mark.parametrize(
    "changes",
    [
        {"line_items": []},
        {"mode": "setup"},
        {"customer": "cus_nobody"},
        {"line_items": [{"price_data": {"currency": "usd", "unit_amount": -5}}]},
        {"line_items": [{"price_data": {"currency": "usd", "unit_amount": 5}}]},
    ],
)
def test_a_request_that_makes_no_sense_is_refused(
    standin: StandInProcess, changes: dict[str, Any]
) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        _create(standin, **changes)


def test_a_live_key_and_a_missing_one_are_refused(standin: StandInProcess) -> None:
    with pytest.raises(stripe.AuthenticationError):
        _client(standin, "sk_live_1").v1.checkout.sessions.retrieve("cs_1")
    assert httpx.get(f"{standin.url}/v1/events", timeout=10).status_code == 401


def test_what_is_not_there_is_not_found(standin: StandInProcess) -> None:
    client = _client(standin)
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        client.v1.checkout.sessions.retrieve("cs_test_nothing")
    assert refusal.value.http_status == 404
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.refunds.create({"payment_intent": "pi_1"})
    assert httpx.get(f"{standin.url}/checkout/cs_test_nothing", timeout=10).status_code == 404


def test_its_state_survives_a_restart_and_deliveries_are_tried_again(
    own_standin: StandInProcess,
) -> None:
    session = _create(own_standin)
    own_standin.act(session.id, "pay")
    own_standin.stop()
    own_standin.start()
    assert _client(own_standin).v1.checkout.sessions.retrieve(session.id).payment_status == "paid"
    with sqlite3.connect(own_standin.state) as state:
        waiting = state.execute("SELECT count(*) FROM delivery WHERE done = 0").fetchone()
    state.close()
    assert waiting == (2,)


@pytest.mark.parametrize(
    "url",
    ["https://127.0.0.1/x", "http://example.org/x", "http://10.0.0.1/x", "ftp://localhost/", ""],
)
def test_it_only_speaks_to_this_machine(url: str) -> None:
    with pytest.raises(ValueError, match="this machine"):
        refuse_elsewhere(url)
