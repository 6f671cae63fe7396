"""A peer for the agent's client: a real HTTP server that misbehaves as told."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from fabric_protocol import keys, requests

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Reads a request whole, then does what the next answer says."""

    server: "Peer"
    body = b""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, dict(self.headers), self.body))
        answers = self.server.answers
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    def reply(
        self,
        status: int,
        document: Any,
        *,
        key: keys.SigningKey | None = None,
        nonce: str | None = None,
    ) -> None:
        """Answer with JSON, signed when a key is given; `nonce` forges that of another request."""
        data = json.dumps(document).encode()
        headers = {"Content-Type": "application/json"}
        if key is not None:
            given = self.headers.get("Signature-Input", "").partition('nonce="')[2]
            own = given.partition('"')[0] or requests.unsigned_nonce(self.body)
            headers = requests.sign_reply(
                status,
                headers,
                data,
                key=key,
                created=datetime.now(tz=UTC),
                nonce=own if nonce is None else nonce,
            )
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


class Peer(ThreadingHTTPServer):
    """The server; `answers` are used one after another, the last one for good."""

    daemon_threads = True

    def __init__(self, *answers: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = list(answers)
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The peer's address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: callers that hang up are part of the tests."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.shutdown()
        self._thread.join(timeout=5)
        self.server_close()
