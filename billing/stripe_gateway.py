"""The one place that speaks to Stripe, or in demos and tests to the payment stand-in.

Nothing else imports `stripe`. Version, timeouts and retries are ours to choose: through
`StripeClient` the library retries nothing by default, and its random idempotency keys would not
survive a restart, so every write here takes a key that follows from our own row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, TypeVar

import stripe
from django.conf import settings

from fabric.lib.errors import DomainError, InvalidInput
from fabric_protocol import canonical

API_VERSION = "2026-10-28.endive"
TIMEOUT_SECONDS = (5.0, 20.0)  # to connect, to read
MAX_RETRIES = 2
WEBHOOK_TOLERANCE = timedelta(minutes=5)
_STANDIN_KEY = "sk_test_standin"
_LIVE_KEYS = ("sk_live_", "rk_live_")
T = TypeVar("T")


class PaymentsUnavailable(DomainError):
    """The card processor could not be reached or is not set up; trying again can help."""

    code: ClassVar[str] = "PAYMENTS_UNAVAILABLE"
    status: ClassVar[int] = 503
    retryable: ClassVar[bool] = True


class PaymentsRefused(DomainError):
    """The card processor understood the request and refused it."""

    code: ClassVar[str] = "PAYMENTS_REFUSED"
    status: ClassVar[int] = 502


class BadWebhook(InvalidInput):
    """A webhook that Stripe did not send, or not just now, or not for this mode."""

    code: ClassVar[str] = "BAD_WEBHOOK"


@dataclass(frozen=True)
class CheckoutSession:
    """What we need to know of a Checkout Session."""

    id: str
    url: str
    status: str
    payment_status: str
    payment_intent: str | None
    amount_minor: int
    currency: str
    reference: str
    livemode: bool


@dataclass(frozen=True)
class WebhookEvent:
    """A verified webhook: its id, kind, the id of its object or "", and its exact content."""

    id: str
    kind: str
    object_id: str
    payload: dict[str, Any]


def is_live() -> bool:
    """Return whether real cards are charged."""
    return str(settings.STRIPE_SECRET_KEY).startswith(_LIVE_KEYS)


def is_standin() -> bool:
    """Return whether payments go to the stand-in of demos and tests."""
    return bool(settings.FABRIC_PAYMENT_STANDIN_URL) and not settings.STRIPE_SECRET_KEY


def create_customer(*, organisation: str, name: str) -> str:
    """Return the id of the customer for an organisation; one, however often this is asked."""
    customer = _ask(
        lambda client: client.v1.customers.create(
            {"name": name, "metadata": {"organisation": organisation}},
            {"idempotency_key": f"customer:{organisation}"},
        )
    )
    return str(customer.id)


def create_checkout(
    *,
    reference: str,
    organisation: str,
    customer: str,
    amount_minor: int,
    currency: str,
    return_url: str,
    cancel_url: str,
) -> CheckoutSession:
    """Open a payment page for one top-up; `reference` is its public id and makes the key."""
    metadata = {"top_up": reference, "organisation": organisation}
    session = _ask(
        lambda client: client.v1.checkout.sessions.create(
            {
                "mode": "payment",
                "customer": customer,
                "client_reference_id": reference,
                "line_items": [
                    {
                        "price_data": {
                            "currency": currency,
                            "unit_amount": amount_minor,
                            "product_data": {"name": "Balance top-up"},
                        },
                        "quantity": 1,
                    }
                ],
                "metadata": metadata,
                "payment_intent_data": {"metadata": metadata},
                "success_url": return_url,
                "cancel_url": cancel_url,
            },
            {"idempotency_key": f"top-up:{reference}"},
        )
    )
    return _read_session(session)


def retrieve_checkout(session_id: str) -> CheckoutSession:
    """Read a session as it stands now."""
    return _read_session(_ask(lambda client: client.v1.checkout.sessions.retrieve(session_id)))


def read_webhook(*, body: bytes, signature: str, now: datetime) -> WebhookEvent:
    """Verify a webhook over its exact bytes and read it.

    The library judges the signature. The time we judge: it lets a signature from the future pass,
    which would keep a leaked old payload usable for as long as its author liked.
    """
    try:
        stripe.WebhookSignature.verify_header(body, signature, settings.STRIPE_WEBHOOK_SECRET)
        signed_at = _signed_at(signature)
    except (stripe.SignatureVerificationError, UnicodeDecodeError, ValueError) as error:
        raise BadWebhook("The signature does not match.") from error
    if abs(now - signed_at) > WEBHOOK_TOLERANCE:
        raise BadWebhook("The signature is not from these minutes.")
    try:
        payload = canonical.loads_object(body)
        about = payload["data"]["object"].get("id")
        event = WebhookEvent(
            id=str(payload["id"]),
            kind=str(payload["type"]),
            object_id=about if isinstance(about, str) else "",
            payload=payload,
        )
        livemode = payload["livemode"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadWebhook("The body is not an event.") from error
    if livemode is not is_live():
        raise BadWebhook("The event is of the other mode, live or test.")
    if not 0 < len(event.id) <= 120 or len(event.kind) > 80:
        raise BadWebhook("The body is not an event.")
    return event


def _signed_at(signature: str) -> datetime:
    """Return the time that the library verified: that of the first `t` in the header."""
    moments = [part[2:] for part in signature.split(",") if part.startswith("t=")]
    try:
        return datetime.fromtimestamp(int(moments[0]), tz=UTC)
    except (IndexError, OverflowError, OSError) as error:
        raise ValueError("no time in the signature") from error


def _ask(call: "Callable[[stripe.StripeClient], T]") -> T:
    try:
        return call(_client())
    except (stripe.APIConnectionError, stripe.RateLimitError) as error:
        raise PaymentsUnavailable("The card processor cannot be reached just now.") from error
    except stripe.StripeError as error:
        if error.http_status is None or error.http_status >= 500:
            raise PaymentsUnavailable("The card processor has a fault just now.") from error
        raise PaymentsRefused("The card processor refused the request.") from error


def _client() -> "stripe.StripeClient":
    if is_standin():
        key, addresses = _STANDIN_KEY, {"api": str(settings.FABRIC_PAYMENT_STANDIN_URL)}
    elif settings.STRIPE_SECRET_KEY:
        key, addresses = str(settings.STRIPE_SECRET_KEY), {}
    else:
        raise PaymentsUnavailable("Card payments are not set up here.")
    return stripe.StripeClient(
        key,
        stripe_version=API_VERSION,
        max_network_retries=MAX_RETRIES,
        http_client=stripe.RequestsClient(timeout=TIMEOUT_SECONDS),
        base_addresses=addresses,  # type: ignore[arg-type]
    )


def _read_session(session: "stripe.checkout.Session") -> CheckoutSession:
    intent = session.payment_intent
    return CheckoutSession(
        id=session.id,
        url=session.url or "",
        status=session.status or "",
        payment_status=session.payment_status,
        payment_intent=intent if isinstance(intent, str) or intent is None else intent.id,
        amount_minor=session.amount_total or 0,
        currency=session.currency or "",
        reference=session.client_reference_id or "",
        livemode=session.livemode,
    )
