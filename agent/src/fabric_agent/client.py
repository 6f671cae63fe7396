"""Signed calls to the control plane: bounded in time, tries and size, and verified both ways."""

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from fabric_agent import VERSION
from fabric_agent.problems import AgentProblem, Refused, Unreachable
from fabric_protocol import keys, payloads, requests

MAX_REPLY_BYTES = 4 << 20
TRIES = 4
_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 5.0
_TIMEOUT = httpx.Timeout(connect=5.0, read=20.0, write=20.0, pool=5.0)
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}


class ReplyNotTrusted(AgentProblem):
    """The reply is not signed by the control plane this node enrolled with."""


@dataclass(frozen=True)
class Reply:
    """A reply whose signature held."""

    status: int
    body: bytes
    headers: dict[str, str]
    nonce: str

    def document(self) -> dict[str, Any]:
        """Return the body as a JSON object."""
        value = json.loads(self.body)
        if not isinstance(value, dict):
            raise ReplyNotTrusted("BAD_REPLY", "the control plane's reply is not an object")
        return value


class ControlPlane:
    """One control plane, seen from one node."""

    def __init__(
        self,
        url: str,
        *,
        key: keys.SigningKey | None = None,
        server_key: bytes | None = None,
        tries: int = TRIES,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.url = url.rstrip("/")
        self._key, self._server_key = key, server_key
        self._tries, self._sleep = tries, sleep
        host = urlsplit(self.url).hostname or ""
        self._client = httpx.Client(
            timeout=_TIMEOUT,
            follow_redirects=False,
            trust_env=host not in _LOOPBACK,
            headers={"User-Agent": f"fabric-agent/{VERSION}"},
        )

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def get(self, path: str) -> Reply:
        """Fetch something, signed."""
        return self._call("GET", path, b"", "application/json")

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        """Send a JSON object, signed."""
        return self._call("POST", path, json.dumps(body).encode(), "application/json")

    def post_envelope(self, path: str, envelope: bytes) -> Reply:
        """Send a sealed record, signed once more as a request."""
        return self._call("POST", path, envelope, payloads.ENVELOPE_CONTENT_TYPE)

    def _call(self, method: str, path: str, body: bytes, content_type: str) -> Reply:
        url, problem = f"{self.url}/agent/v1/{path}", "no answer"
        for attempt in range(self._tries):
            wait = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt)
            try:
                reply = self._call_once(method, url, body, content_type)
            except httpx.HTTPError as error:
                problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            else:
                if reply.status not in _TRY_AGAIN:
                    return _accept(reply)
                problem = f"it answered {reply.status}"
            if attempt + 1 < self._tries:
                self._sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 - spreads retries only
        raise Unreachable(
            "UNREACHABLE",
            f"the control plane at {self.url} did not answer in {self._tries} tries ({problem})",
            remedy="Check the network and the address; the agent keeps trying while it runs.",
        )

    def _call_once(self, method: str, url: str, body: bytes, content_type: str) -> Reply:
        headers, nonce = {"Content-Type": content_type}, ""
        if self._key is not None:
            nonce = requests.new_nonce()
            headers = requests.sign(
                method,
                url,
                headers,
                body,
                key=self._key,
                created=datetime.now(tz=UTC),
                nonce=nonce,
            )
        with self._client.stream(method, url, content=body, headers=headers) as response:
            data = bytearray()
            for part in response.iter_bytes():
                data += part
                if len(data) > MAX_REPLY_BYTES:
                    raise ReplyNotTrusted("REPLY_TOO_LARGE", "the reply is larger than is read")
            status, found = response.status_code, dict(response.headers)
        reply = Reply(status, bytes(data), found, nonce or requests.unsigned_nonce(body))
        if status not in _TRY_AGAIN and self._server_key is not None:
            self.verify(reply, self._server_key)
        return reply

    @staticmethod
    def verify(reply: Reply, known: bytes) -> None:
        """Check that a reply is signed with the key `known` and answers its own request.

        Before enrolment nothing is known; its last reply is then checked with the key it brings.
        A reply of something in between (a proxy's error page) is not signed at all.
        """
        try:
            requests.verify_reply(
                reply.status,
                reply.headers,
                reply.body,
                find_key=lambda key_id: known if key_id == keys.key_id(known) else None,
                now=datetime.now(tz=UTC),
                nonce=reply.nonce,
            )
        except requests.BadRequestSignature as error:
            raise ReplyNotTrusted(
                "REPLY_NOT_TRUSTED",
                f"the reply ({reply.status}) is not signed by the control plane: {error}",
                remedy="Check the address and this machine's clock; something may sit in between.",
            ) from error


def check_url(url: str, *, allow_http: bool = False) -> str:
    """Return the address without its last slash, or refuse what would send a token in the clear."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.username:
        raise AgentProblem(
            "BAD_URL",
            f"{url!r} is not an address such as https://exchange.example",
            remedy="Copy the address from the provider page.",
        )
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not allow_http:
        raise AgentProblem(
            "NOT_ENCRYPTED",
            f"{url} would send the token in the clear",
            remedy="Use https, or --allow-http on a network you trust.",
        )
    return url.rstrip("/")


def _accept(reply: Reply) -> Reply:
    if 200 <= reply.status < 300:
        return reply
    try:
        problem = json.loads(reply.body)
    except ValueError:
        problem = {}
    raise Refused(reply.status, problem if isinstance(problem, dict) else {})
