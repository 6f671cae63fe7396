"""How Stripe is spoken to: version pinned, timeouts bounded, retries under one key."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pytest_django import Settings

from billing import stripe_gateway
from billing.stripe_gateway import PaymentsRefused, PaymentsUnavailable


@dataclass
class Processor:
    """A processor that answers as told and remembers what it was asked."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def processor(settings: Settings) -> Iterator[Processor]:
    """A processor on loopback to which the gateway is pointed."""
    told = Processor()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            told.asked.append(dict(self.headers.items()))
            status = told.answers.pop(0)
            known: dict[str, object] = {"id": "cus_1", "object": "customer"}
            body = known if status == 200 else {"error": {}}
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    settings.FABRIC_PAYMENT_STANDIN_URL, settings.STRIPE_SECRET_KEY = told.url, ""
    yield told
    server.shutdown()
    server.server_close()
    thread.join()


def _create() -> str:
    return stripe_gateway.create_customer(organisation="org_1", name="Meridian")


def test_a_passing_fault_is_tried_again_under_the_same_key(processor: Processor) -> None:
    """R-C12 (api): retries are ours to ask for, and all carry the key of our own row."""
    processor.answers = [503, 503, 200]
    assert _create() == "cus_1"
    assert [asked["Idempotency-Key"] for asked in processor.asked] == ["customer:org_1"] * 3
    assert {asked["Stripe-Version"] for asked in processor.asked} == {stripe_gateway.API_VERSION}


def test_a_lasting_fault_ends_after_a_bounded_number_of_tries(processor: Processor) -> None:
    processor.answers = [503] * 10
    with pytest.raises(PaymentsUnavailable) as refusal:
        _create()
    assert refusal.value.retryable
    assert len(processor.asked) == stripe_gateway.MAX_RETRIES + 1


def test_a_refusal_is_not_tried_again(processor: Processor) -> None:
    processor.answers = [400]
    with pytest.raises(PaymentsRefused):
        _create()
    assert len(processor.asked) == 1


def test_the_stand_in_is_never_used_beside_a_real_key(settings: Settings) -> None:
    """R-C12 (api): with a key the money goes to Stripe, whatever else is set."""
    settings.FABRIC_PAYMENT_STANDIN_URL = "http://127.0.0.1:9"
    settings.STRIPE_SECRET_KEY = "sk_live_of_nobody"
    assert not stripe_gateway.is_standin()
    assert stripe_gateway.is_live()
    settings.STRIPE_SECRET_KEY = "sk_test_of_nobody"
    assert not stripe_gateway.is_live()
