"""One look at one workload from outside: the exchange's own reading beside the provider's word.

The address comes from a provider, so a look goes only where it may (never to this host's own
metadata services), follows no redirect, reads a few bytes, and is over in two seconds whatever
the other side does: an answer that drips in does not hold the next look up.
"""

import hashlib
import hmac
import http.client
import io
import ipaddress
import json
import secrets
import socket
import time
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings

TRY_SECONDS = 2.0
TRIES = 2
MAX_ANSWER_BYTES = 8192


@dataclass(frozen=True)
class Target:
    """A workload to look at, and the secret it has to know."""

    lease_id: str
    host: str
    port: int
    token: str


@dataclass(frozen=True)
class Sight:
    """What one look saw; `detail` is a code of why the workload was not reached."""

    reachable: bool
    latency_ms: float | None
    detail: str
    elapsed: timedelta


class _Refused(Exception):
    """The workload was not reached, or not by this look; `code` says how."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def look(target: Target) -> Sight:
    """Ask the workload to prove that it is this lease's, at most twice."""
    began = time.monotonic()
    detail, latency_ms = "", None
    for _ in range(TRIES):
        try:
            detail, latency_ms = "", _ask(target)
            break
        except _Refused as refused:
            detail, latency_ms = refused.code, None
    return Sight(
        reachable=not detail,
        latency_ms=latency_ms,
        detail=detail,
        elapsed=timedelta(seconds=time.monotonic() - began),
    )


def _ask(target: Target) -> float:
    """Return the milliseconds to a proof that holds, or raise _Refused."""
    nonce = secrets.token_hex(16)
    began = time.monotonic()
    try:
        address = _resolve(target.host, target.port)
        answer = _exchange(address, _request(target, nonce), began + TRY_SECONDS)
    except OSError as error:
        raise _Refused("unreachable") from error
    latency_ms = round((time.monotonic() - began) * 1000, 1)
    if not _proves(_body_of(answer), nonce, target):
        raise _Refused("wrong_proof")
    return latency_ms


def _request(target: Target, nonce: str) -> bytes:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return (
        f"GET /ready?nonce={nonce} HTTP/1.0\r\n"
        f"Host: {host}:{target.port}\r\n"
        f"Authorization: Bearer {target.token}\r\n"
        "Connection: close\r\n\r\n"
    ).encode("ascii", "replace")


def _exchange(address: tuple[str, int], request: bytes, deadline: float) -> bytes:
    """Send a request and return what came back until the other side closed, all before `deadline`."""
    with socket.create_connection(address, timeout=_left(deadline)) as connection:
        connection.sendall(request)
        answer = b""
        while len(answer) <= MAX_ANSWER_BYTES:
            connection.settimeout(_left(deadline))
            part = connection.recv(4096)
            if not part:
                return answer
            answer += part
    raise _Refused("wrong_answer")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Recorded:
    """What a response is read from once all of it is there."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def makefile(self, *_: object) -> io.BytesIO:
        """Return the bytes as http.client wants them."""
        return io.BytesIO(self._answer)


def _body_of(answer: bytes) -> bytes:
    response = http.client.HTTPResponse(_Recorded(answer))  # type: ignore[arg-type]
    try:
        response.begin()
        body = response.read()
    except (http.client.HTTPException, ValueError) as error:
        raise _Refused("wrong_answer") from error
    if response.status != http.client.OK:
        raise _Refused("wrong_answer")
    return body


def _proves(body: bytes, nonce: str, target: Target) -> bool:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(answer, dict):
        return False
    proof = hmac.new(target.token.encode(), nonce.encode(), hashlib.sha256).hexdigest()
    return (
        answer.get("nonce") == nonce
        and answer.get("lease") == target.lease_id
        and hmac.compare_digest(str(answer.get("proof", "")).encode(), proof.encode())
    )


def _resolve(host: str, port: int) -> tuple[str, int]:
    """Return an address that may be asked; metadata and private nets are out of bounds.

    The name is resolved once and the connection goes to that address, so that a second answer of
    the provider's name server cannot lead somewhere else.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise _Refused("address_refused") from error
    for *_, place in found:
        address = ipaddress.ip_address(str(place[0]).partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)
        if not _may_be_asked(mapped or address):
            raise _Refused("address_refused")
        return str(address), port
    raise _Refused("unreachable")


def _may_be_asked(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return False
    return bool(settings.FABRIC_ALLOW_PRIVATE_ACCESS or address.is_global)
