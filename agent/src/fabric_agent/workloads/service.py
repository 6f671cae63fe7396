"""The small HTTP service of a lease. Standard library only: it also runs in an empty image.

It proves to whoever holds the lease's token that it is this lease's, says to anybody that it is
alive, and ends by itself when the time that is paid for is over, whether or not an agent is there.
"""

import hashlib
import hmac
import json
import os
import resource
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

CHECK_SECONDS = 0.25
EXIT_SUPERVISOR_GONE = 3
_MAX_NONCE = 128
_SOCKET_SECONDS = 5


class LeaseServer(ThreadingHTTPServer):
    """Answers for one lease; `instance` is new with every start, and so shows a restart."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, host: str, port: int, *, lease: str, token: str) -> None:
        super().__init__((host, port), _Handler)
        self.lease = lease
        self.token = token
        self.instance = secrets.token_hex(8)
        self.started_ns = time.monotonic_ns()

    def server_bind(self) -> None:
        """Bind without asking any name server who we are, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a caller that hangs up is no event."""

    def __repr__(self) -> str:
        return f"LeaseServer({self.lease})"


class _Handler(BaseHTTPRequestHandler):
    server: LeaseServer
    timeout = _SOCKET_SECONDS
    server_version = "fabric-lease"
    sys_version = ""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/alive":
            self._reply(200, {"lease": self.server.lease, "instance": self.server.instance})
            return
        if not self._is_tenant():
            self._reply(401, {"error": "the lease's token is needed"})
        elif url.path == "/ready":
            self._ready(parse_qs(url.query))
        elif url.path == "/":
            seconds = (time.monotonic_ns() - self.server.started_ns) // 1_000_000_000
            self._reply(200, {"lease": self.server.lease, "seconds_up": seconds})
        else:
            self._reply(404, {"error": "there is nothing here"})

    def _ready(self, query: dict[str, list[str]]) -> None:
        nonce = (query.get("nonce") or [""])[0]
        if not 0 < len(nonce) <= _MAX_NONCE:
            self._reply(400, {"error": "a nonce of 1 to 128 letters is needed"})
            return
        proof = hmac.new(self.server.token.encode(), nonce.encode(), hashlib.sha256).hexdigest()
        self._reply(
            200,
            {
                "nonce": nonce,
                "lease": self.server.lease,
                "proof": proof,
                "instance": self.server.instance,
            },
        )

    def _is_tenant(self) -> bool:
        given = self.headers.get("Authorization") or ""
        expected = f"Bearer {self.server.token}"
        return hmac.compare_digest(given.encode("latin-1", "replace"), expected.encode())

    def _reply(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Log nothing: requests are the tenant's business."""


def watch(is_over: Callable[[], int | None], *, seconds: float = CHECK_SECONDS) -> int:
    """Wait until `is_over` gives an exit code, and return it."""
    while True:
        code = is_over()
        if code is not None:
            return code
        time.sleep(seconds)


def main() -> None:
    """Serve one lease as told on standard input, or in the file named, which is then removed."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    settings = _read_settings()
    folder = Path(settings["folder"])
    server = LeaseServer(
        settings["host"], int(settings["port"]), lease=settings["lease"], token=settings["token"]
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = _mapped_bytes()
    limit = settings.get("memory_bytes")
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (base + int(limit), base + int(limit)))
    if settings.get("writes_status", True):
        _write_status(folder, server, base)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    os._exit(watch(lambda: _is_over(folder, settings.get("supervisor"))))


def _read_settings() -> dict[str, Any]:
    if len(sys.argv) > 1:
        path = Path(sys.argv[1])
        return dict(json.loads(path.read_text(encoding="utf-8")))
    return dict(json.loads(sys.stdin.readline()))


def _write_status(folder: Path, server: LeaseServer, base: int) -> None:
    part = folder / ".status.part"
    part.write_text(
        json.dumps(
            {
                "pid": os.getpid(),
                "port": server.server_address[1],
                "instance": server.instance,
                "base_bytes": base,
            }
        ),
        encoding="utf-8",
    )
    part.replace(folder / "status.json")


def _is_over(folder: Path, supervisor: list[int] | None) -> int | None:
    try:
        until = float((folder / "until").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0  # The agent removed the lease, or never told how long it is paid for.
    if time.time() >= until:
        return 0
    if supervisor is not None and _start_ticks(supervisor[0]) != supervisor[1]:
        return EXIT_SUPERVISOR_GONE
    return None


def _start_ticks(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def _mapped_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main()
