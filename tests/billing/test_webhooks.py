"""The webhook door: exact bytes, just now, in this mode, once."""

import json
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from billing.models import StripeEvent
from fabric.lib.clock import utc_now
from simulator.payments.server import sign

SECRET = "whsec_of_this_test"
URL = "/webhooks/stripe/"


@pytest.fixture(autouse=True)
def _secret(settings: Settings) -> None:
    settings.STRIPE_WEBHOOK_SECRET = SECRET
    settings.STRIPE_SECRET_KEY = ""


def _body(event_id: str = "evt_1", **changes: object) -> str:
    return json.dumps(
        {
            "id": event_id,
            "object": "event",
            "type": "customer.created",
            "livemode": False,
            "data": {"object": {"id": "cus_1"}},
            **changes,
        }
    )


def _send(
    body: str, *, secret: str = SECRET, after_seconds: int = 0, signed: str | None = None
) -> int:
    at = int((utc_now() + timedelta(seconds=after_seconds)).timestamp())
    answer = Client(enforce_csrf_checks=True).post(
        URL,
        data=body,
        content_type="application/json",
        headers={"Stripe-Signature": sign(signed or body, secret=secret, at=at)},
    )
    return answer.status_code


def test_a_verified_event_is_stored_and_answered(db: None) -> None:
    """R-C12 (api): a webhook that Stripe just signed is kept, without a CSRF token."""
    assert _send(_body()) == 200
    event = StripeEvent.objects.get()
    assert (event.id, event.kind, event.processed_at) == ("evt_1", "customer.created", None)


def test_the_same_event_again_is_answered_and_kept_once(db: None) -> None:
    """R-C12 (api): a duplicate delivery is a success that changes nothing."""
    assert [_send(_body()) for _ in range(3)] == [200, 200, 200]
    assert StripeEvent.objects.count() == 1


@pytest.mark.parametrize("after_seconds", [-301, -86_400, 301, 86_400])
def test_an_old_or_future_signature_is_refused(db: None, after_seconds: int) -> None:
    """R-C12 (api): a replayed payload is refused, and one dated ahead to be replayed later."""
    assert _send(_body(), after_seconds=after_seconds) == 400
    assert not StripeEvent.objects.exists()


@pytest.mark.parametrize("after_seconds", [-290, 290])
def test_a_clock_that_differs_by_less_is_accepted(db: None, after_seconds: int) -> None:
    assert _send(_body(), after_seconds=after_seconds) == 200


def test_a_forged_event_is_refused(db: None) -> None:
    assert _send(_body(), secret="whsec_of_somebody_else") == 400
    assert _send(_body("evt_2"), signed=_body("evt_1")) == 400
    assert not StripeEvent.objects.exists()


def test_a_reserialised_body_is_refused(db: None) -> None:
    """R-C12 (api): the signature is over the exact bytes, not over what they mean."""
    body = _body()
    assert _send(json.dumps(json.loads(body), indent=1), signed=body) == 400
    assert not StripeEvent.objects.exists()


@pytest.mark.parametrize(
    "header",
    ["", "t=,v1=", "t=abc,v1=00", "v1=00", "t=99999999999999999999,v1=00", "nonsense", "="],
)
def test_a_strange_signature_header_is_refused(db: None, header: str) -> None:
    answer = Client().post(
        URL,
        data=_body(),
        content_type="application/json",
        headers={"Stripe-Signature": header},
    )
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "null",
        "{",
        '{"id": "evt_1"}',
        '{"id": "evt_1", "type": "x", "data": null, "livemode": false}',
        '{"id": "evt_1", "type": "x", "data": {"object": []}, "livemode": false}',
        '{"id": "", "type": "x", "data": {"object": {}}, "livemode": false}',
        _body("e" * 121),
        _body(note="a\0b"),
        _body("evt\0"),
        _body(note="\ud800"),
        _body(note=1).replace("note", r"\udfff"),
        _body(amount=float("nan")),
        _body(amount=12345).replace("12345", "1e400"),
        _body(note=1).replace('"note": 1', '"note": ' + "[" * 90_000 + "]" * 90_000),
        _body(type="checkout.session.completed", data={"object": {}}),
        _body(type="checkout.session.expired", data={"object": {"id": ["cs_1"]}}),
    ],
)
def test_a_signed_body_that_is_no_event_is_refused(db: None, body: str) -> None:
    assert _send(body) == 400
    assert not StripeEvent.objects.exists()


def test_bytes_that_are_no_text_are_refused(db: None) -> None:
    answer = Client().post(
        URL,
        data=b"\xff\xfe",
        content_type="application/json",
        headers={"Stripe-Signature": "t=1,v1=00"},
    )
    assert answer.status_code == 400


def test_an_event_of_the_other_mode_is_refused(db: None, settings: Settings) -> None:
    """R-C12 (api): a test-mode event cannot credit a live balance, nor the other way round."""
    assert _send(_body(livemode=True)) == 400
    settings.STRIPE_SECRET_KEY = "sk_live_of_nobody"
    assert _send(_body(livemode=False)) == 400
    assert not StripeEvent.objects.exists()
    assert _send(_body(livemode=True)) == 200


def test_without_a_secret_nothing_is_believed(db: None, settings: Settings) -> None:
    settings.STRIPE_WEBHOOK_SECRET = ""
    assert _send(_body(), secret="") == 400


def test_only_posts_of_a_sensible_size_are_read(db: None) -> None:
    assert Client().get(URL).status_code == 405
    assert _send(_body(padding="x" * 300_000)) == 413


def test_parallel_duplicates_are_all_answered_and_kept_once(committed_db: None) -> None:
    """R-C12 (api): two deliveries at the same instant are both a success, and one event."""
    body, answers = _body(), []

    def deliver() -> None:
        answers.append(_send(body))
        connection.close()

    threads = [threading.Thread(target=deliver) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 8
    assert StripeEvent.objects.count() == 1
