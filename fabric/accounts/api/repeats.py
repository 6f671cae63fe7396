"""Idempotency keys at the border: one effect, one answer, however often a request is sent."""

import base64
import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta

from cryptography.fernet import Fernet
from django.conf import settings
from django.db import transaction
from django.http import HttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from fabric.journal.services.idempotency import (
    Answer,
    Claim,
    claim_key,
    complete_key,
    release_key,
)
from fabric.lib.errors import DomainError

_KEPT_HEADERS = ("Location", "ETag")
_STORED_REFUSALS = frozenset({402, 404, 409, 410, 412, 422})


class IdempotencyKeyMissing(DomainError):
    """A request that must have one effect came without an idempotency key."""

    code = "IDEMPOTENCY_KEY_MISSING"
    status = 400


class IdempotencyKeyInvalid(DomainError):
    """The idempotency key is empty, too long, or holds characters that do not print."""

    code = "IDEMPOTENCY_KEY_INVALID"
    status = 400


def read_key(request: Request, *, required: bool) -> str | None:
    """Return the `Idempotency-Key`, quoted or bare; None where it is absent and optional."""
    given = request.headers.get("Idempotency-Key")
    if given is None:
        if required:
            raise IdempotencyKeyMissing(
                "This request needs an Idempotency-Key.",
                suggestion="Send a fresh UUID, and the same one again when you repeat it.",
            )
        return None
    key = given.strip()
    if len(key) > 1 and key.startswith('"') and key.endswith('"'):
        key = key[1:-1]
    if not (1 <= len(key) <= 255 and key.isascii() and key.isprintable()):
        raise IdempotencyKeyInvalid("An Idempotency-Key is 1 to 255 printable characters.")
    return key


def fingerprint(request: Request, *, version: str) -> bytes:
    """Return what makes two requests the same: method, full path, body as JSON, API version."""
    meant = [request.method, request.get_full_path(), request.data, version]
    return hashlib.sha256(json.dumps(meant, sort_keys=True).encode()).digest()


def answer_once(
    work: Callable[[], Response],
    *,
    refuse: Callable[[DomainError], Response],
    tenant: str,
    route: str,
    key: str,
    request_hash: bytes,
    now: datetime,
    keep: timedelta,
    is_secret: bool,
    is_transactional: bool,
) -> Response | HttpResponse:
    """Return the first answer to this key, doing the work only if there is none yet.

    Effect and answer commit together. Refusals a repetition cannot change are kept as answers;
    passing ones, and failures of ours, give the key back.
    """
    claimed = claim_key(
        tenant=tenant, route=route, key=key, request_hash=request_hash, now=now, keep=keep
    )
    if isinstance(claimed, Answer):
        return _replay(claimed, is_secret=is_secret)
    try:
        if not is_transactional:
            response = work()
            _complete(claimed, response, is_secret=is_secret)
        else:
            with transaction.atomic():
                response = work()
                _complete(claimed, response, is_secret=is_secret)
    except DomainError as exc:
        if exc.retryable or exc.status not in _STORED_REFUSALS:
            release_key(claim=claimed)
            raise
        response = refuse(exc)
        _complete(claimed, response, is_secret=is_secret)
    except BaseException:
        release_key(claim=claimed)
        raise
    return response


def _complete(claim: Claim, response: Response, *, is_secret: bool) -> None:
    body = JSONRenderer().render(response.data) if response.data is not None else b""
    headers = {name: response[name] for name in _KEPT_HEADERS if response.has_header(name)}
    headers["Content-Type"] = response.content_type or "application/json"
    stored = _cipher().encrypt(body) if is_secret else body
    complete_key(claim=claim, answer=Answer(response.status_code, stored, headers))


def _replay(answer: Answer, *, is_secret: bool) -> HttpResponse:
    body = _cipher().decrypt(answer.body) if is_secret else answer.body
    response = HttpResponse(body, status=answer.status)
    for name, value in answer.headers.items():
        response[name] = value
    response["Idempotency-Replayed"] = "true"
    return response


def _cipher() -> Fernet:
    """Encrypt answers that hold a secret: a copy of the database must not give keys away."""
    seed = hashlib.sha256(b"idempotent answers\n" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(seed))
