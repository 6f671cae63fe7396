"""The door for agents: every request is signed by a node's key, every reply by ours."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

import structlog
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from redis.exceptions import RedisError

from fabric.accounts.api.problems import CONTENT_TYPE, problem_of_refusal
from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError, FieldError, InvalidInput, NotVisible
from fabric.lib.signing import server_key
from fabric_protocol import canonical, payloads, requests
from providers.domain.nodes import NodeState
from providers.models import Node, NodeKey

log = structlog.get_logger(__name__)

MAX_BYTES = 256 * 1024
_NONCE = re.compile(r';nonce="([!-~]{1,64}?)"')
NONCE_SECONDS = 2 * requests.MAX_AGE_S + 2 * requests.MAX_SKEW_S


class RequestRefused(DomainError):
    """The request is not signed as it must be; the message says how."""

    code = "SIGNATURE_REFUSED"
    status = 401


class ClockSkewed(DomainError):
    """The request's instant is not ours; the reply's `server_time` says what ours is."""

    code = "CLOCK_SKEW"
    status = 401
    retryable = True


class RequestReplayed(DomainError):
    """The key has used this nonce already."""

    code = "REQUEST_REPLAYED"
    status = 409


class NodeRetired(DomainError):
    """The node was taken out of service; its agent stops."""

    code = "NODE_RETIRED"
    status = 403


class BodyTooLarge(DomainError):
    """The body is larger than this endpoint reads."""

    code = "BODY_TOO_LARGE"
    status = 413


class BodyCutShort(DomainError):
    """Fewer bytes arrived than were announced."""

    code = "BODY_CUT_SHORT"
    status = 400
    retryable = True


@method_decorator(csrf_exempt, name="dispatch")
class AgentView(View):
    """Verifies the signature, calls the handler, signs what it returns.

    Handlers return `(status, body)` with a JSON object, or raw bytes for an envelope. Subclasses
    find the signer in `self.node` and `self.public_key`, the exact bytes in `self.raw`, the
    instant in `self.now`. With `anonymous` nobody needs a key yet and `self.node` is not there.
    """

    anonymous: ClassVar[bool] = False
    max_bytes: ClassVar[int] = MAX_BYTES
    http_method_names = ["get", "post", "options"]

    node: Node
    public_key: bytes
    raw: bytes
    now: datetime
    _nonce: str

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer the request; every refusal is a signed problem too."""
        self.now = utc_now()
        self.raw = b""
        self._nonce = _claimed_nonce(request)
        handler = getattr(self, str(request.method).lower(), None)
        if handler is None or request.method not in {"GET", "POST"}:
            return self.http_method_not_allowed(request, *args, **kwargs)
        try:
            self.raw = self._read_body(request)
            if not self.anonymous:
                self._identify(request)
            status, body = handler(request, *args, **kwargs)
        except DomainError as error:
            log.info("agent_request_refused", code=error.code, path=request.path)
            return self._reply(error.status, self._problem(error), CONTENT_TYPE)
        if isinstance(body, bytes):
            return self._reply(status, body, payloads.ENVELOPE_CONTENT_TYPE)
        return self._reply(status, json.dumps(body).encode(), "application/json")

    def read_object(self, *, required: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
        """Return the body as a JSON object with these members; unknown ones are refused."""
        try:
            body = canonical.loads_object(self.raw, self.max_bytes)
        except canonical.BadDocument as error:
            raise InvalidInput(
                "The body is not a JSON object we read.",
                errors=(FieldError("body", str(error), "strict JSON", error.code),),
            ) from error
        errors = [
            FieldError(name[:80], "unknown field", ", ".join(required))
            for name in body
            if name not in required
        ]
        for name, kind in required.items():
            value = body.get(name)
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
                errors.append(FieldError(name, "missing or of another type", _name_of(kind)))
        if errors:
            raise InvalidInput("The body is not acceptable.", errors=tuple(errors))
        return body

    def _read_body(self, request: HttpRequest) -> bytes:
        announced = int(request.META.get("CONTENT_LENGTH") or 0)
        if announced > self.max_bytes:
            raise BodyTooLarge(f"At most {self.max_bytes} bytes are read here.")
        body = request.read(self.max_bytes + 1)
        if len(body) < announced:
            raise BodyCutShort(f"{len(body)} of {announced} bytes arrived.")
        return body

    def _identify(self, request: HttpRequest) -> None:
        found: list[NodeKey] = []

        def find_key(key_id: str) -> bytes | None:
            key = (
                NodeKey.objects.filter(key_id=key_id, active_from__lte=self.now)
                .select_related("node__provider__organisation")
                .first()
            )
            if key is None:
                return None
            found.append(key)
            return bytes(key.public_key)

        try:
            verified = requests.verify(
                str(request.method),
                request.build_absolute_uri(),
                dict(request.headers),
                self.raw,
                find_key=find_key,
                now=self.now,
            )
        except requests.BadRequestSignature as error:
            raise self._refusal(error) from error
        (key,) = found
        self.node, self.public_key, self._nonce = key.node, verified.public_key, verified.nonce
        if key.node.state == NodeState.RETIRED:
            raise NodeRetired("This node was retired; enrol the machine anew.")
        if key.revoked_at is not None and key.revoked_at <= self.now:
            raise RequestRefused("The key was revoked.", metadata={"reason": "KEY_REVOKED"})
        self._refuse_replay(verified)

    def _refuse_replay(self, verified: requests.VerifiedRequest) -> None:
        """Take the nonce, or refuse; without the cache only idempotency protects, and does."""
        try:
            fresh = cache.add(
                f"agent-nonce:{verified.key_id}:{verified.nonce}", 1, timeout=NONCE_SECONDS
            )
        except RedisError:
            log.warning("nonce_cache_unreachable")
            return
        if not fresh:
            raise RequestReplayed("This request was received already; sign a new one.")

    def _refusal(self, error: requests.BadRequestSignature) -> DomainError:
        metadata = {"reason": error.code}
        if error.code in {"SIGNATURE_STALE", "SIGNATURE_FROM_FUTURE"}:
            return ClockSkewed(
                "The request's time is not the exchange's.",
                suggestion="Set the node's clock; server_time is ours.",
                metadata=metadata,
            )
        return RequestRefused(f"The signature is refused: {error}.", metadata=metadata)

    def _problem(self, error: DomainError) -> bytes:
        body = problem_of_refusal(error, path=self.request.path)
        body["server_time"] = payloads.write_instant(self.now)
        return json.dumps(body).encode()

    def _reply(self, status: int, body: bytes, content_type: str) -> HttpResponse:
        nonce = self._nonce or requests.unsigned_nonce(self.raw)
        headers = requests.sign_reply(
            status,
            {"Content-Type": content_type},
            body,
            key=server_key(),
            created=utc_now(),
            nonce=nonce,
        )
        return HttpResponse(body, status=status, headers=headers)


def _claimed_nonce(request: HttpRequest) -> str:
    """Return the nonce the sender claims, so that even a refusal answers this very request."""
    claimed = _NONCE.search(request.headers.get("Signature-Input", ""))
    return claimed.group(1) if claimed else ""


def not_visible(noun: str) -> NotVisible:
    """Return the refusal for another node's object, which for this node does not exist."""
    return NotVisible(f"There is no such {noun}.")


def _name_of(kind: type | tuple[type, ...]) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    names = {str: "text", int: "whole number", dict: "object", list: "list", type(None): "null"}
    return " or ".join(names.get(item, item.__name__) for item in kinds)
