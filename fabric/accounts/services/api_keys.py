"""Making, recognising and revoking API keys."""

import hashlib
import hmac
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.accounts.domain.scopes import SCOPES
from fabric.accounts.models import ApiKey, Project, User
from fabric.journal.services.audit import record_audit
from fabric.journal.services.events import record_event
from fabric.lib.errors import FieldError, InvalidInput, NotAllowed, WrongState

KEY_PREFIXES = ("fk_live_", "fk_test_")
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_USE_RECORDED_EVERY = timedelta(minutes=1)


@transaction.atomic
def issue_key(
    *,
    actor: Actor,
    created_by: User,
    project: Project,
    name: str,
    scopes: Collection[str],
    now: datetime,
    expires_at: datetime | None = None,
    at_most: Collection[str] | None = None,
) -> tuple[str, ApiKey]:
    """Return the key's text, which exists only here, and its row, which cannot give it back.

    `at_most` are the scopes of the key that asks, so that no key makes a stronger one.
    """
    actor.require(Right.MANAGE_KEYS)
    if project.organisation_id != actor.organisation_id:
        raise NotAllowed("The project belongs to another organisation.")
    _check_key(name=name, scopes=scopes, expires_at=expires_at, now=now)
    if at_most is not None and not set(scopes) <= set(at_most):
        beyond = ", ".join(sorted(set(scopes) - set(at_most)))
        raise NotAllowed(f"A key cannot give what it does not hold: {beyond}.")
    kind = "test" if settings.FABRIC_PAYMENT_STANDIN_URL or not _is_secure() else "live"
    visible = f"fk_{kind}_" + "".join(secrets.choice(_LETTERS) for _ in range(8))
    text = f"{visible}_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        project=project,
        name=name.strip(),
        visible_prefix=visible,
        digest=digest_of(text),
        scopes=sorted(set(scopes)),
        created_by=created_by,
        created_at=now,
        expires_at=expires_at,
    )
    organisation = project.organisation.public_id
    record_event(
        kind="api_key.issued",
        subject=key.public_id,
        actor=actor.id,
        organisations=[organisation],
        now=now,
        data={"project": project.public_id, "scopes": key.scopes},
    )
    record_audit(
        actor=actor.id,
        action="api_key.issue",
        subject=key.public_id,
        now=now,
        after={"name": key.name, "scopes": key.scopes, "project": project.public_id},
    )
    return text, key


@transaction.atomic
def revoke_key(*, actor: Actor, key: ApiKey, now: datetime) -> ApiKey:
    """Make a key useless from the next request on; revoking it again is refused."""
    actor.require(Right.MANAGE_KEYS)
    moved = ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=now)
    if not moved:
        raise WrongState("This key is revoked already.")
    key.revoked_at = now
    record_event(
        kind="api_key.revoked",
        subject=key.public_id,
        actor=actor.id,
        organisations=[key.project.organisation.public_id],
        now=now,
    )
    record_audit(actor=actor.id, action="api_key.revoke", subject=key.public_id, now=now)
    return key


def recognise_key(*, text: str, now: datetime) -> ApiKey | None:
    """Return the live key with this text, or None; notes its use, at most once a minute."""
    visible = text[:16]
    key = (
        ApiKey.objects.select_related("project__organisation", "created_by")
        .filter(visible_prefix=visible, revoked_at__isnull=True)
        .filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now))
        .first()
    )
    if key is None or not hmac.compare_digest(bytes(key.digest), digest_of(text)):
        return None
    if key.last_used_at is None or now - key.last_used_at >= _USE_RECORDED_EVERY:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
    return key


def digest_of(text: str) -> bytes:
    """Return what is stored of a key: useless without the server's pepper."""
    pepper = settings.FABRIC_API_KEY_PEPPER.encode()
    return hmac.new(pepper, text.encode(), hashlib.sha256).digest()


def looks_like_key(text: str) -> bool:
    """Return whether a text is shaped like one of our keys, valid or not."""
    return text.startswith(KEY_PREFIXES)


def _is_secure() -> bool:
    return bool(settings.SESSION_COOKIE_SECURE)


def _check_key(
    *, name: str, scopes: Collection[str], expires_at: datetime | None, now: datetime
) -> None:
    errors = []
    if not name.strip() or len(name.strip()) > 80:
        errors.append(FieldError("name", "A key needs a name.", "1 to 80 characters"))
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        reason = f"Not a scope: {', '.join(unknown)}." if unknown else "A key needs a scope."
        errors.append(FieldError("scopes", reason, ", ".join(SCOPES)))
    if expires_at is not None and expires_at <= now:
        errors.append(FieldError("expires_at", "This time has passed.", "a time to come"))
    if errors:
        raise InvalidInput("The key cannot be made like this.", errors=tuple(errors))
