"""Looking at a workload from outside, against real sockets."""

import contextlib
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import LazySettings

from fabric.lib.secrets import access_token
from leases.domain.states import LeaseState
from leases.models import Lease, WitnessReading
from leases.services import probing
from leases.services.looking import Target, look
from tests.leases.scene import Scene, second

Answer = Callable[[str, str], tuple[int, bytes]]


@contextmanager
def workload(answer: Answer) -> Iterator[int]:
    """Serve one workload on loopback; `answer` gets the nonce and the bearer token."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonce = parse_qs(urlsplit(self.path).query).get("nonce", [""])[0]
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            status, body = answer(nonce, token)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Keep the tests' output free of requests."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *args: object) -> None:
            """Say nothing of a caller that did not wait."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def proving(lease: str) -> Answer:
    """Return the answer of an honest workload of this lease."""

    def answer(nonce: str, token: str) -> tuple[int, bytes]:
        proof = hmac.new(token.encode(), nonce.encode(), hashlib.sha256).hexdigest()
        return 200, json.dumps({"nonce": nonce, "lease": lease, "proof": proof}).encode()

    return answer


def report(scene: Scene, lease: Lease, port: int, now: datetime, state: str = "running") -> None:
    access = {"interface": "http", "host": "127.0.0.1", "port": port}
    told = {"lease": lease.public_id, "state": state, "access": access, "detail": ""}
    scene.beat(now, told)
    Lease.objects.update(probe_due_at=now)


def test_a_workload_that_proves_itself_becomes_ready(scene: Scene) -> None:
    """R-C4, R-C6 (agent): reached from outside with a proof only this lease's token gives."""
    lease = scene.order().lease
    at = second(scene.now, 2)
    with workload(proving(lease.public_id)) as port:
        report(scene, lease, port, at)
        assert probing.probe_due(now=at) == 1
        assert probing.probe_due(now=at) == 0, "the next look is a second later"
    lease = scene.again(lease)
    assert lease.state == LeaseState.ACTIVE
    assert lease.ready_at is not None
    assert at <= lease.ready_at < second(at, 4)
    assert lease.access == {"interface": "http", "host": "127.0.0.1", "port": port}
    witness = WitnessReading.objects.get()
    assert witness.observed["reachable"] is True
    assert witness.observed["latency_ms"] > 0


def test_the_agents_word_alone_makes_nothing_ready(scene: Scene) -> None:
    """R-C4 (agent): a claimed address behind which nobody proves anything starts no charge."""
    lease = scene.order().lease
    at = second(scene.now, 2)
    with workload(lambda _nonce, _token: (200, b'{"ready": true}')) as port:
        report(scene, lease, port, at)
        assert probing.probe_due(now=at) == 1
    report(scene, lease, port, second(at, 2))
    assert probing.probe_due(now=second(at, 2)) == 1
    assert scene.again(lease).state == LeaseState.PROVISIONING
    assert not WitnessReading.objects.exists()


def test_a_workload_still_starting_is_not_looked_at(scene: Scene) -> None:
    """R-C4 (agent): nobody is asked before the agent says where."""
    lease = scene.order().lease
    with workload(proving(lease.public_id)) as port:
        report(scene, lease, port, scene.now, state="starting")
        assert probing.probe_due(now=scene.now) == 0
    assert scene.again(lease).state == LeaseState.PROVISIONING


def test_a_running_workload_that_is_gone_is_witnessed_as_gone(scene: Scene) -> None:
    """R-C6 (agent): what the exchange could not reach stands beside the provider's reading."""
    lease = scene.running()
    Lease.objects.update(probe_due_at=scene.now, access={})
    assert probing.probe_due(now=second(scene.now, 1)) == 1
    [seen] = WitnessReading.objects.filter(lease=lease)
    assert seen.observed == {"reachable": False, "latency_ms": None, "detail": "no_address"}
    with workload(proving(lease.public_id)) as port:
        pass
    report(scene, lease, port, second(scene.now, 2))
    assert probing.probe_due(now=second(scene.now, 2)) == 1
    last = WitnessReading.objects.order_by("id").last()
    assert last is not None
    assert last.observed["detail"] == "unreachable"
    assert scene.again(lease).state == LeaseState.ACTIVE, "one look decides nothing but the bill"


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (lambda _n, _t: (200, b"not json"), "wrong_proof"),
        (lambda _n, _t: (200, b"[]"), "wrong_proof"),
        (lambda _n, _t: (302, b""), "wrong_answer"),
        (lambda _n, _t: (500, b""), "wrong_answer"),
        (lambda _n, _t: (200, b"x" * 10_000), "wrong_answer"),
        (proving("lse_another"), "wrong_proof"),
        (lambda n, _t: proving("lse_mine")("old" + n, "t"), "wrong_proof"),
        (lambda n, _t: proving("lse_mine")(n, "another token"), "wrong_proof"),
    ],
)
def test_only_the_exact_proof_counts(answer: Answer, detail: str) -> None:
    """R-C4 (agent): redirects, errors, floods and proofs of something else are not readiness."""
    with workload(answer) as port:
        sight = look(Target("lse_mine", "127.0.0.1", port, access_token("lse_mine")))
    assert (sight.reachable, sight.detail) == (False, detail)


def test_a_second_try_is_enough() -> None:
    """R-C6 (agent): one cold answer once failed one new node in seven; a look tries twice."""
    asked: list[str] = []

    def answer(nonce: str, token: str) -> tuple[int, bytes]:
        asked.append(nonce)
        return (503, b"") if len(asked) == 1 else proving("lse_mine")(nonce, token)

    with workload(answer) as port:
        assert look(Target("lse_mine", "127.0.0.1", port, access_token("lse_mine"))).reachable
    assert len(set(asked)) == 2


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "0.0.0.0", "224.0.0.1", "::", "fe80::1", "::ffff:169.254.169.254"]
)
def test_some_addresses_are_never_asked(host: str) -> None:
    """R-E1 (agent): a provider names the address; this host's own services are out of bounds."""
    began = time.monotonic()
    sight = look(Target("lse_mine", host, 80, "t"))
    assert not sight.reachable
    assert sight.detail == "address_refused"
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "192.168.1.1", "::1", "localhost"])
def test_private_nets_are_asked_only_where_allowed(settings: LazySettings, host: str) -> None:
    """R-E1 (agent): production looks at public addresses only, unless it says otherwise."""
    settings.FABRIC_ALLOW_PRIVATE_ACCESS = False
    assert look(Target("lse_mine", host, 80, "t")).detail == "address_refused"


@pytest.mark.slow
@pytest.mark.parametrize("pace", [10.0, 0.5])
def test_a_workload_that_drips_or_never_answers_is_left_in_time(pace: float) -> None:
    """R-C6 (agent): two tries of two seconds, and the look is over whatever comes in between."""
    server = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def drip() -> None:
        while not over.is_set():
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                while not over.wait(pace):
                    connection.sendall(b"H")

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    began = time.monotonic()
    sight = look(Target("lse_mine", "127.0.0.1", server.getsockname()[1], "t"))
    assert time.monotonic() - began < 5
    assert (sight.reachable, sight.detail) == (False, "unreachable")
    over.set()
    server.close()
