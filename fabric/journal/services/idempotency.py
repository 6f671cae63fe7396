"""Answering a repeated request once: claim the key, do the work, complete it with the answer.

The claim commits first, so that a twin that arrives during the work sees it. The answer is written
in the transaction of the effect, so that neither exists without the other, also after `kill -9`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from django.db import IntegrityError, transaction
from django.db.models import Q

from fabric.journal.models import IdempotencyKey
from fabric.lib.errors import DomainError

DEAD_AFTER = timedelta(seconds=60)


class IdempotencyKeyReused(DomainError):
    """The same key came with another request."""

    code: ClassVar[str] = "IDEMPOTENCY_KEY_REUSED"
    status: ClassVar[int] = 422


class IdempotencyInProgress(DomainError):
    """The first request with this key is still being worked on."""

    code: ClassVar[str] = "IDEMPOTENCY_IN_PROGRESS"
    status: ClassVar[int] = 409
    retryable: ClassVar[bool] = True


@dataclass(frozen=True)
class Claim:
    """The right to do the work of a key; `claimed_at` tells this holder from a later one."""

    key_id: int
    claimed_at: datetime


@dataclass(frozen=True)
class Answer:
    """What was answered the first time."""

    status: int
    body: bytes
    headers: dict[str, str]


def claim_key(
    *, tenant: str, route: str, key: str, request_hash: bytes, now: datetime, keep: timedelta
) -> Claim | Answer:
    """Return the stored answer, or the claim to produce it.

    Raises IdempotencyKeyReused or IdempotencyInProgress. A claim whose holder died is handed on
    after a minute; an expired key begins anew.
    """
    fresh = IdempotencyKey(
        tenant=tenant,
        route=route,
        key=key,
        request_hash=request_hash,
        claimed_at=now,
        expires_at=now + keep,
    )
    try:
        with transaction.atomic():
            fresh.save(force_insert=True)
    except IntegrityError:
        return _claim_known(fresh)
    return Claim(fresh.pk, now)


def complete_key(*, claim: Claim, answer: Answer) -> None:
    """Write the answer down, in the caller's transaction; refused when another holds the claim."""
    moved = IdempotencyKey.objects.filter(
        pk=claim.key_id, claimed_at=claim.claimed_at, status__isnull=True
    ).update(status=answer.status, body=answer.body, headers=answer.headers)
    if not moved:
        raise _in_progress()


def release_key(*, claim: Claim) -> None:
    """Give a claim back without an answer, so that the request can be made again at once."""
    IdempotencyKey.objects.filter(
        pk=claim.key_id, claimed_at=claim.claimed_at, status__isnull=True
    ).delete()


def forget_expired_keys(*, now: datetime, limit: int = 5_000) -> int:
    """Delete keys whose time is over, and say how many."""
    due = IdempotencyKey.objects.filter(
        Q(expires_at__lt=now) & (Q(status__isnull=False) | Q(claimed_at__lt=now - DEAD_AFTER))
    ).order_by("expires_at")[:limit]
    deleted, _ = IdempotencyKey.objects.filter(pk__in=due.values("pk")).delete()
    return deleted


@transaction.atomic
def _claim_known(wanted: IdempotencyKey) -> Claim | Answer:
    now = wanted.claimed_at
    row = (
        IdempotencyKey.objects.select_for_update()
        .filter(tenant=wanted.tenant, route=wanted.route, key=wanted.key)
        .first()
    )
    if row is None:  # released in this very moment
        raise _in_progress()
    if row.expires_at > now:
        if bytes(row.request_hash) != wanted.request_hash:
            raise IdempotencyKeyReused(
                "This idempotency key was used for another request.",
                suggestion="Make a new key for every new request.",
            )
        if row.status is not None:
            return Answer(row.status, bytes(row.body or b""), dict(row.headers))
        if row.claimed_at + DEAD_AFTER > now:
            raise _in_progress()
    row.request_hash, row.status, row.body, row.headers = wanted.request_hash, None, None, {}
    row.claimed_at, row.expires_at = now, wanted.expires_at
    row.save()
    return Claim(row.pk, now)


def _in_progress() -> IdempotencyInProgress:
    return IdempotencyInProgress(
        "The first request with this key is still being worked on.",
        suggestion="Wait a second and send the same request again.",
    )
