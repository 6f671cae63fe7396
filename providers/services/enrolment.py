"""How a machine becomes a node: a token shown once, then proof that it holds its key."""

import hashlib
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction

from fabric.accounts.domain.actors import Actor
from fabric.journal.services.audit import record_audit
from fabric.journal.services.events import record_event
from fabric.lib.errors import DomainError, FieldError, InvalidInput, NotAllowed, WrongState
from fabric_protocol import keys
from providers.domain.names import read_node_name
from providers.models import Enrolment, EnrolmentToken, Node, NodeKey, NodeTransition, Provider
from providers.services.nodes import require_provider

TOKENS_BEGIN_WITH = "fabric-enrol-"
TOKEN_LIFETIME = timedelta(hours=1)


class TokenRefused(DomainError):
    """The token is unknown, used, revoked or older than an hour; never says which is unknown."""

    code = "ENROLMENT_TOKEN_REFUSED"
    status = 403


class KeyRefused(InvalidInput):
    """The public key is malformed, not canonical or of small order, or belongs to another node."""

    code = "KEY_REFUSED"


class ProofRefused(DomainError):
    """The signature does not show possession of the key."""

    code = "PROOF_REFUSED"
    status = 403


@transaction.atomic
def create_token(
    *,
    provider: Provider,
    actor: Actor,
    now: datetime,
    accepts_unisolated: bool = False,
    simulated: bool = False,
) -> tuple[str, EnrolmentToken]:
    """Return a new token's text, shown this once, and its row; it enrols one machine in an hour.

    Only an operator makes tokens for simulated nodes, and only where the deployment allows them.
    """
    require_provider(actor=actor, provider=provider)
    if simulated:
        actor.require_operator()
        if not settings.FABRIC_ALLOW_SIMULATED:
            raise NotAllowed("This deployment takes no simulated nodes.")
    if accepts_unisolated and not settings.FABRIC_ALLOW_UNISOLATED:
        raise NotAllowed("This deployment runs tenants' work in containers only.")
    text = TOKENS_BEGIN_WITH + secrets.token_urlsafe(32)
    token = EnrolmentToken.objects.create(
        provider=provider,
        digest=_digest(text),
        simulated=simulated,
        accepts_unisolated=accepts_unisolated,
        created_by=actor.id,
        created_at=now,
        expires_at=now + TOKEN_LIFETIME,
    )
    record_audit(
        actor=actor.id,
        action="enrolment_token.create",
        subject=token.public_id,
        after={"simulated": simulated, "accepts_unisolated": accepts_unisolated},
        now=now,
    )
    return text, token


def token_state(token: EnrolmentToken, *, now: datetime) -> str:
    """Return what a token is good for: usable, used, revoked or expired."""
    if token.used_at is not None:
        return "used"
    if token.revoked_at is not None:
        return "revoked"
    return "usable" if token.expires_at > now else "expired"


@transaction.atomic
def revoke_token(*, actor: Actor, token: EnrolmentToken, now: datetime) -> EnrolmentToken:
    """Make an unused token worthless; revoking it again changes nothing."""
    require_provider(actor=actor, provider=token.provider)
    rows = EnrolmentToken.objects.filter(pk=token.pk, used_at__isnull=True, revoked_at__isnull=True)
    if rows.update(revoked_at=now):
        record_audit(
            actor=actor.id, action="enrolment_token.revoke", subject=token.public_id, now=now
        )
    token.refresh_from_db()
    if token.revoked_at is None:
        raise WrongState("The token has enrolled a machine already; retire that node instead.")
    return token


@transaction.atomic
def start_enrolment(
    *,
    token: str,
    public_key: bytes,
    node_name: str,
    agent_version: str,
    installed_at: datetime | None,
    now: datetime,
) -> Enrolment:
    """Take a token for one key and return the nonce to sign.

    The token is spent by a compare-and-set, so of machines that race with it one wins. The same
    key with the same token gets its enrolment again, because the first answer may be lost.
    """
    name = read_node_name(node_name)
    _check_key(public_key)
    row = EnrolmentToken.objects.filter(digest=_digest(token)).first()
    if row is None:
        raise TokenRefused("The enrolment token is not valid.")
    if EnrolmentToken.objects.usable(now=now).filter(pk=row.pk).update(used_at=now):
        _refuse_taken(row.provider, name, public_key)
        return Enrolment.objects.create(
            token=row,
            public_key=public_key,
            nonce=secrets.token_bytes(32),
            node_name=name,
            agent_version=agent_version[:32],
            installed_at=_not_after(installed_at, now),
            created_at=now,
        )
    again = Enrolment.objects.filter(token=row, public_key=public_key).first()
    if again is None or row.expires_at <= now:
        raise TokenRefused("The enrolment token is used, revoked or older than an hour.")
    return again


@transaction.atomic
def prove_possession(*, enrolment: Enrolment, signature: bytes, now: datetime) -> Node:
    """Check the signature over nonce and key, and make the node; a repeat returns that node."""
    message = keys.enrolment_message(bytes(enrolment.nonce), bytes(enrolment.public_key))
    try:
        keys.verify(bytes(enrolment.public_key), message, signature)
    except keys.BadSignature as error:
        raise ProofRefused("The signature does not match the key and the nonce.") from error
    row = (
        Enrolment.objects.select_for_update(of=("self",))
        .select_related("token__provider__organisation", "node")
        .get(pk=enrolment.pk)
    )
    if row.node is not None:
        return row.node
    if row.token.expires_at <= now:
        raise TokenRefused("The enrolment is older than an hour.", suggestion="Ask for a token.")
    node = _create_node(row, now)
    row.node, row.completed_at = node, now
    row.save(update_fields=["node", "completed_at"])
    return node


def _create_node(enrolment: Enrolment, now: datetime) -> Node:
    token, public_key = enrolment.token, bytes(enrolment.public_key)
    try:
        with transaction.atomic():
            node = Node.objects.create(
                provider=token.provider,
                name=enrolment.node_name,
                simulated=token.simulated,
                accepts_unisolated=token.accepts_unisolated,
                agent_version=enrolment.agent_version,
                installed_at=enrolment.installed_at or enrolment.created_at,
                enrolled_at=now,
            )
            key = NodeKey.objects.create(
                node=node,
                key_id=keys.key_id(public_key),
                public_key=public_key,
                active_from=now,
            )
    except IntegrityError:
        _refuse_taken(token.provider, enrolment.node_name, public_key)
        raise
    NodeTransition.objects.create(
        node=node, to_state=node.state, actor=node.public_id, reason="enrolled", at=now
    )
    record_event(
        kind="node.enrolled",
        subject=node.public_id,
        actor=node.public_id,
        organisations=[token.provider.organisation.public_id],
        data={"key_id": key.key_id, "token": token.public_id, "simulated": node.simulated},
        now=now,
    )
    return node


def _check_key(public_key: bytes) -> None:
    try:
        keys.check_public_key(public_key)
    except keys.BadKey as error:
        raise KeyRefused(
            "The public key is refused.",
            errors=(
                FieldError("public_key", str(error), "a canonical Ed25519 public key", error.code),
            ),
        ) from error


def _refuse_taken(provider: Provider, name: str, public_key: bytes) -> None:
    if NodeKey.objects.filter(public_key=public_key).exists():
        raise KeyRefused(
            "The public key belongs to a node already.",
            errors=(FieldError("public_key", "already enrolled", "a key made on this machine"),),
        )
    if Node.objects.standing().filter(provider=provider, name=name).exists():
        raise InvalidInput(
            "Another node of this provider has this name.",
            errors=(FieldError("node_name", "already taken", "a name no other node has"),),
        )


def _not_after(at: datetime | None, now: datetime) -> datetime | None:
    """Return `at` unless it lies in the future or over a week back: a clock that is wrong."""
    if at is None or at > now or now - at > timedelta(days=7):
        return None
    return at


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
