"""The API of the stand-in: the objects a top-up needs, behaving as the real service's do."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from simulator.payments.parameters import UnknownParameter, check_known, parse_form
from simulator.payments.store import Json, Store, new_id

API_VERSION = "2026-10-28.endive"
SESSION_LASTS_SECONDS = 24 * 3600
MOST_MINOR_UNITS = 99_999_999
_LONGEST_KEY = 255


@dataclass(frozen=True)
class Reply:
    """An answer: status, body as sent, and whether it repeats an earlier one."""

    status: int
    body: str
    replayed: bool = False


class Refusal(Exception):
    """An error as the API tells it."""

    def __init__(
        self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        kind = "idempotency_error" if code == "idempotency_key_in_use" else "invalid_request_error"
        body = {"type": kind, "message": message, "code": code, "param": param}
        self.body = {"error": {name: value for name, value in body.items() if value is not None}}


class Payments:
    """Customers, Checkout Sessions, PaymentIntents and events over one store."""

    def __init__(self, store: Store, *, address: str) -> None:
        self.store = store
        self.address = address

    def answer(
        self, method: str, path: str, query: str, body: str, headers: Mapping[str, str]
    ) -> Reply:
        """Answer one API request; writes with a key are answered once and then repeated."""
        try:
            _check_key(headers)
            if method != "POST":
                return Reply(200, json.dumps(self._read(method, path, query)))
            with self.store.transaction():
                return self._write_once(path, body, headers)
        except Refusal as refusal:
            return Reply(refusal.status, json.dumps(refusal.body))

    def pay(self, session_id: str) -> Json:
        """Let the card of a hosted page be charged: the session completes and events go out."""
        with self.store.transaction():
            session = self._open_session(session_id)
            intent = self.store.get("payment_intent", str(session["payment_intent"]))
            if intent is None:
                raise Refusal("No such payment_intent.", status=404)
            intent |= {"status": "succeeded", "amount_received": intent["amount"]}
            session |= {"status": "complete", "payment_status": "paid", "url": None}
            self.store.put(intent)
            self.store.put(session)
            self._tell("payment_intent.succeeded", intent)
            self._tell("checkout.session.completed", session)
        return session

    def decline(self, session_id: str) -> Json:
        """Let the card be declined: the session stays open for another try."""
        with self.store.transaction():
            session = self._open_session(session_id)
            intent = self.store.get("payment_intent", str(session["payment_intent"]))
            if intent is not None:
                intent |= {
                    "status": "requires_payment_method",
                    "last_payment_error": {"type": "card_error", "code": "card_declined"},
                }
                self._tell("payment_intent.payment_failed", self.store.put(intent))
        return session

    def session(self, session_id: str) -> Json:
        """Return a session, expired by now if its time is over."""
        session = self.store.get("checkout.session", session_id)
        if session is None:
            raise Refusal(f"No such checkout.session: {session_id}", status=404)
        if session["status"] == "open" and session["expires_at"] <= time.time():
            with self.store.transaction():
                session = self._expire(session)
        return session

    def _write_once(self, path: str, body: str, headers: Mapping[str, str]) -> Reply:
        key = headers.get("Idempotency-Key", "")
        if len(key) > _LONGEST_KEY:
            raise Refusal("Idempotency keys are at most 255 characters.")
        request = f"{path}\n{body}"
        known = self.store.stored_answer(key) if key else None
        if known is not None:
            if known[0] != request:
                raise Refusal(
                    "Keys for idempotent requests can only be used with the same parameters they"
                    " were first used with.",
                    code="idempotency_key_in_use",
                )
            return Reply(known[1], known[2], replayed=True)
        answer = json.dumps(self._write(path, parse_form(body)))
        if key:  # what failed validation never began, so its key is still free
            self.store.store_answer(key, request, 200, answer)
        return Reply(200, answer)

    def _read(self, method: str, path: str, query: str) -> Json:
        match [method, *path.strip("/").split("/")]:
            case ["GET", "v1", "checkout", "sessions", session_id]:
                return self.session(session_id)
            case ["GET", "v1", "events"]:
                return self._list_events(query)
            case ["GET", "v1", ("payment_intents" | "customers" | "events") as plural, object_id]:
                kind = plural.removesuffix("s")
                found = self.store.get(kind, object_id)
                if found is None:
                    raise Refusal(f"No such {kind}: '{object_id}'", status=404)
                return found
        raise Refusal(f"Unrecognized request URL ({method}: {path}).", status=404)

    def _write(self, path: str, given: dict[str, Any]) -> Json:
        match path.strip("/").split("/"):
            case ["v1", "customers"]:
                return self._create_customer(given)
            case ["v1", "checkout", "sessions"]:
                return self._create_session(given)
            case ["v1", "checkout", "sessions", session_id, "expire"]:
                return self._expire(self._open_session(session_id))
        raise Refusal(f"Unrecognized request URL (POST: {path}).", status=404)

    def _create_customer(self, given: dict[str, Any]) -> Json:
        _refuse_unknown("customer", given)
        return self.store.put(
            {
                "id": new_id("cus"),
                "object": "customer",
                "created": int(time.time()),
                "livemode": False,
                "name": given.get("name"),
                "email": given.get("email"),
                "metadata": given.get("metadata", {}),
            }
        )

    def _create_session(self, given: dict[str, Any]) -> Json:
        _refuse_unknown("checkout.session", given)
        if given.get("mode") != "payment":
            raise Refusal("Only mode=payment is played here.", param="mode")
        if not given.get("success_url"):
            raise Refusal("Missing required param: success_url.", param="success_url")
        amount, currency = _total_of(given.get("line_items"))
        customer = given.get("customer")
        if customer and self.store.get("customer", customer) is None:
            raise Refusal(f"No such customer: '{customer}'", param="customer", status=400)
        now = int(time.time())
        intent = self.store.put(
            {
                "id": new_id("pi"),
                "object": "payment_intent",
                "created": now,
                "livemode": False,
                "amount": amount,
                "amount_received": 0,
                "currency": currency,
                "customer": customer,
                "status": "requires_payment_method",
                "metadata": given.get("payment_intent_data", {}).get("metadata", {}),
            }
        )
        session_id = new_id("cs_test")
        return self.store.put(
            {
                "id": session_id,
                "object": "checkout.session",
                "created": now,
                "expires_at": now + SESSION_LASTS_SECONDS,
                "livemode": False,
                "mode": "payment",
                "status": "open",
                "payment_status": "unpaid",
                "payment_intent": intent["id"],
                "amount_total": amount,
                "amount_subtotal": amount,
                "currency": currency,
                "customer": customer,
                "client_reference_id": given.get("client_reference_id"),
                "metadata": given.get("metadata", {}),
                "success_url": given["success_url"],
                "cancel_url": given.get("cancel_url"),
                "url": f"{self.address}/checkout/{session_id}",
            }
        )

    def _open_session(self, session_id: str) -> Json:
        session = self.store.get("checkout.session", session_id)
        if session is None:
            raise Refusal(f"No such checkout.session: {session_id}", status=404)
        if session["status"] != "open" or session["expires_at"] <= time.time():
            raise Refusal("Only an open session can be changed.")
        return session

    def _expire(self, session: Json) -> Json:
        session |= {"status": "expired", "url": None}
        self._tell("checkout.session.expired", self.store.put(session))
        return session

    def _list_events(self, query: str) -> Json:
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        unknown = set(asked) - {"limit", "starting_after"}
        if unknown:
            name = min(unknown)
            raise Refusal(f"Received unknown parameter: {name}", param=name)
        limit = asked.get("limit", "10")
        if not limit.isdigit() or not 1 <= int(limit) <= 100:
            raise Refusal("limit is between 1 and 100.", param="limit")
        data, has_more = self.store.newest(
            "event", limit=int(limit), after=asked.get("starting_after")
        )
        return {"object": "list", "url": "/v1/events", "data": data, "has_more": has_more}

    def _tell(self, kind: str, subject: Json) -> None:
        event = self.store.put(
            {
                "id": new_id("evt"),
                "object": "event",
                "api_version": API_VERSION,
                "created": int(time.time()),
                "livemode": False,
                "pending_webhooks": 1,
                "request": {"id": None, "idempotency_key": None},
                "type": kind,
                "data": {"object": dict(subject)},
            }
        )
        self.store.queue_delivery(event["id"])


def _check_key(headers: Mapping[str, str]) -> None:
    scheme, _, key = headers.get("Authorization", "").partition(" ")
    if scheme != "Bearer" or not key.startswith("sk_test_"):
        raise Refusal("Give a test key; the stand-in charges no real card.", status=401)


def _refuse_unknown(kind: str, given: dict[str, Any]) -> None:
    try:
        check_known(kind, given)
    except UnknownParameter as unknown:
        raise Refusal(str(unknown), code="parameter_unknown", param=unknown.name) from unknown


def _total_of(line_items: Any) -> tuple[int, str]:
    if not isinstance(line_items, list) or not line_items:
        raise Refusal("Missing required param: line_items.", param="line_items")
    total, currencies = 0, set()
    for item in line_items:
        price = item.get("price_data", {})
        amount, quantity = str(price.get("unit_amount")), str(item.get("quantity", "1"))
        if not amount.isdigit() or not quantity.isdigit():
            raise Refusal("Invalid integer.", code="parameter_invalid_integer", param="line_items")
        total += int(amount) * int(quantity)
        currencies.add(price.get("currency"))
    currency = currencies.pop()
    if currencies or not isinstance(currency, str) or len(currency) != 3:
        raise Refusal("One currency for all line items.", param="line_items")
    if not 50 <= total <= MOST_MINOR_UNITS:
        raise Refusal("The amount is too small or too large.", code="amount_too_small")
    return total, currency
