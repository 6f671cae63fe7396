"""The stand-in as an HTTP server on loopback, with the pump that delivers its webhooks."""

import hashlib
import hmac
import http.client
import ipaddress
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from simulator.payments.pages import show_checkout, show_closed, show_missing
from simulator.payments.service import Payments, Refusal
from simulator.payments.store import Store

_LARGEST_BODY = 1024 * 1024
_LONGEST_WAIT_SECONDS = 3600.0
_GIVE_UP_AFTER = 40
_DELIVERY_TIMEOUT_SECONDS = 10


class StandIn:
    """A running stand-in: `start`, then `stop`; `address` is where it listens."""

    def __init__(self, *, port: int, webhook_url: str, secret: str, state: str) -> None:
        refuse_elsewhere(webhook_url)
        self._webhook_url, self._secret = webhook_url, secret
        self._stopping = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.store = Store(state)
        self.payments = Payments(self.store, address=self.address)
        self._server.payments = self.payments  # type: ignore[attr-defined]
        self._threads = [
            threading.Thread(target=self._server.serve_forever, daemon=True),
            threading.Thread(target=self._pump, daemon=True),
        ]

    def start(self) -> None:
        """Begin to serve and to deliver."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop serving and delivering; what was not delivered waits in the state."""
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join(timeout=5)

    def _pump(self) -> None:
        while not self._stopping.wait(0.1):
            for event_id, attempts in self.store.due_deliveries():
                event = self.store.get("event", event_id)
                done = event is not None and self._deliver(json.dumps(event))
                self.store.note_delivery(
                    event_id,
                    done=done or attempts + 1 >= _GIVE_UP_AFTER,
                    wait_seconds=min(2.0**attempts, _LONGEST_WAIT_SECONDS),
                )

    def _deliver(self, body: str) -> bool:
        target = urlsplit(self._webhook_url)
        connection = http.client.HTTPConnection(
            target.hostname or "", target.port or 80, timeout=_DELIVERY_TIMEOUT_SECONDS
        )
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Stripe-Signature": sign(body, secret=self._secret, at=int(time.time())),
        }
        try:
            connection.request("POST", target.path, body=body.encode(), headers=headers)
            return 200 <= connection.getresponse().status < 300
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def sign(body: str, *, secret: str, at: int) -> str:
    """Return the signature header of a webhook."""
    digest = hmac.new(secret.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def refuse_elsewhere(url: str) -> None:
    """Raise ValueError unless the address is plain HTTP on this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_here = host == "localhost" or (
        host.replace(".", "").isdigit() and ipaddress.ip_address(host).is_loopback
    )
    if parts.scheme != "http" or not is_here:
        raise ValueError("the stand-in only speaks http to this machine itself")


class _Handler(BaseHTTPRequestHandler):
    """API under /v1/, hosted pages under /checkout/."""

    protocol_version = "HTTP/1.1"
    server_version = "payment-stand-in"

    @property
    def payments(self) -> Payments:
        found: Payments = self.server.payments  # type: ignore[attr-defined]
        return found

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def log_message(self, *_: Any) -> None:
        """Stay silent; the demo has one screen."""

    def _serve(self, method: str) -> None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > _LARGEST_BODY:
            self._send(413, "application/json", '{"error": {"type": "invalid_request_error"}}')
            self.close_connection = True
            return
        body = self.rfile.read(int(length)).decode("utf-8", errors="replace")
        target = urlsplit(self.path)
        if target.path.startswith("/checkout/"):
            self._serve_page(method, target.path.removeprefix("/checkout/"), target.query, body)
        elif target.path == "/healthz/live/":
            self._send(200, "application/json", '{"status": "ok"}')
        else:
            reply = self.payments.answer(
                method, target.path, target.query, body, dict(self.headers.items())
            )
            extra = {"Idempotent-Replayed": "true"} if reply.replayed else {}
            self._send(reply.status, "application/json", reply.body, extra)

    def _serve_page(self, method: str, session_id: str, query: str, body: str) -> None:
        try:
            session = self.payments.session(session_id)
        except Refusal:
            self._send(404, "text/html; charset=utf-8", show_missing())
            return
        if session["status"] != "open":
            self._send(200, "text/html; charset=utf-8", show_closed(session))
        elif method == "GET":
            page = show_checkout(session, declined="declined" in query)
            self._send(200, "text/html; charset=utf-8", page)
        elif parse_qs(body).get("act") == ["pay"]:
            paid = self.payments.pay(session_id)
            target = str(paid["success_url"]).replace("{CHECKOUT_SESSION_ID}", session_id)
            self._send(303, "text/plain", "", {"Location": target})
        else:
            self.payments.decline(session_id)
            self._send(303, "text/plain", "", {"Location": f"/checkout/{session_id}?declined=1"})

    def _send(
        self, status: int, kind: str, text: str, headers: dict[str, str] | None = None
    ) -> None:
        content = text.encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
