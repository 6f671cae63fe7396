"""RFC 9421 signatures on the requests of agents and on the replies of the control plane.

The signature binds method, host, path, query and body digest to a key, an instant and a nonce. It
says who speaks now; what must last is a DSSE envelope inside the body. The scheme is left out,
because a proxy that ends TLS changes it on the way. A reply carries the nonce of its request, so
that an old reply cannot stand in for a new one.
"""

import datetime as dt
import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import http_message_signatures as hms
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from fabric_protocol import keys

REQUEST_TAG = "agent-v1"
REPLY_TAG = "server-v1"
MAX_AGE_S = 60
MAX_SKEW_S = 5
_REQUEST_PARTS = ("@method", "@authority", "@path", "@query", "content-digest")
_REPLY_PARTS = ("@status", "content-digest")
_PARAMETERS = frozenset({"created", "expires", "nonce", "keyid", "tag", "alg"})
_MAX_NONCE = 64

FindKey = Callable[[str], bytes | None]


class BadRequestSignature(keys.BadSignature):
    """The request or reply is not signed as it must be; `code` says how."""


@dataclass(frozen=True)
class VerifiedRequest:
    """Who signed, when, and with which nonce."""

    key_id: str
    nonce: str
    created: dt.datetime
    public_key: bytes


@dataclass
class _Request:
    method: str
    url: str
    headers: dict[str, str]


@dataclass
class _Reply:
    status_code: int
    headers: dict[str, str]
    request: None = None


class _Resolver(hms.HTTPSignatureKeyResolver):
    """Hands one private key out for signing, and looks public keys up for verifying."""

    def __init__(self, *, key: keys.SigningKey | None = None, find: FindKey | None = None) -> None:
        self._key, self._find = key, find
        self.found: bytes | None = None

    def resolve_private_key(self, key_id: str) -> Ed25519PrivateKey:  # noqa: ARG002
        if self._key is None:
            raise KeyError("no private key here")
        return Ed25519PrivateKey.from_private_bytes(self._key.seed_bytes)

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        public = self._find(key_id) if self._find else None
        if public is None or keys.key_id(public) != key_id:
            raise BadRequestSignature("UNKNOWN_KEY", "no active key has this key id")
        self.found = bytes(public)
        return Ed25519PublicKey.from_public_bytes(self.found)


class _Verifier(hms.HTTPMessageVerifier):
    """The library's verifier with the instant and the limits as arguments, not from the clock."""

    now: dt.datetime
    max_age_s: int

    def validate_created_and_expires(self, sig_input: object, max_age: object = None) -> None:  # noqa: ARG002
        parameters: dict[str, object] = dict(sig_input.params)  # type: ignore[attr-defined]
        created, expires = parameters.get("created"), parameters.get("expires")
        if type(created) is not int or type(expires) is not int:
            raise BadRequestSignature("SIGNATURE_INVALID", "created and expires must be given")
        now = self.now.timestamp()
        if created > now + MAX_SKEW_S:
            raise BadRequestSignature("SIGNATURE_FROM_FUTURE", "created lies in the future")
        if now > created + self.max_age_s or now > expires + MAX_SKEW_S:
            raise BadRequestSignature("SIGNATURE_STALE", "the signature is too old")


def new_nonce() -> str:
    """Return a fresh nonce for one request."""
    return secrets.token_urlsafe(16)


def sign(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    key: keys.SigningKey,
    created: dt.datetime,
    nonce: str,
) -> dict[str, str]:
    """Return `headers` with Content-Digest, Signature-Input and Signature for this request."""
    message = _Request(method, url, _without_signature(headers))
    _signer(key).sign(
        message,
        key_id=key.key_id,
        created=created,
        expires=created + dt.timedelta(seconds=MAX_AGE_S),
        nonce=nonce,
        label="fabric",
        tag=REQUEST_TAG,
        covered_component_ids=_REQUEST_PARTS,
        body=body,
    )
    return message.headers


def verify(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    find_key: FindKey,
    now: dt.datetime,
    max_age_s: int = MAX_AGE_S,
) -> VerifiedRequest:
    """Check a request's signature; BadRequestSignature, with a code, on anything amiss."""
    message = _Request(method, url, dict(headers))
    return _verify(
        message,
        body,
        find_key=find_key,
        now=now,
        max_age_s=max_age_s,
        tag=REQUEST_TAG,
        parts=_REQUEST_PARTS,
    )


def sign_reply(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    key: keys.SigningKey,
    created: dt.datetime,
    nonce: str,
) -> dict[str, str]:
    """Return `headers` with the signature of a reply; `nonce` is the request's."""
    message = _Reply(status, _without_signature(headers))
    _signer(key).sign(
        message,
        key_id=key.key_id,
        created=created,
        expires=created + dt.timedelta(seconds=MAX_AGE_S),
        nonce=nonce,
        label="fabric",
        tag=REPLY_TAG,
        covered_component_ids=_REPLY_PARTS,
        body=body,
    )
    return message.headers


def verify_reply(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    find_key: FindKey,
    now: dt.datetime,
    nonce: str,
    max_age_s: int = MAX_AGE_S,
) -> VerifiedRequest:
    """Check a reply's signature and that it answers the request with this nonce."""
    message = _Reply(status, dict(headers))
    found = _verify(
        message,
        body,
        find_key=find_key,
        now=now,
        max_age_s=max_age_s,
        tag=REPLY_TAG,
        parts=_REPLY_PARTS,
    )
    if found.nonce != nonce:
        raise BadRequestSignature("WRONG_NONCE", "the reply answers another request")
    return found


def unsigned_nonce(body: bytes) -> str:
    """Return the nonce a reply carries when its request had no key yet: the body's digest."""
    return hashlib.sha256(body).hexdigest()


def _verify(
    message: _Request | _Reply,
    body: bytes,
    *,
    find_key: FindKey,
    now: dt.datetime,
    max_age_s: int,
    tag: str,
    parts: tuple[str, ...],
) -> VerifiedRequest:
    present = {name.lower() for name in message.headers}
    if not {"signature", "signature-input"} <= present:
        raise BadRequestSignature("SIGNATURE_MISSING", "the message carries no signature")
    if "content-digest" not in present:
        raise BadRequestSignature("SIGNATURE_INVALID", "the message carries no content digest")
    resolver = _Resolver(find=find_key)
    verifier = _Verifier(
        signature_algorithm=hms.algorithms.ED25519,
        key_resolver=resolver,
    )
    verifier.now, verifier.max_age_s = now, max_age_s
    try:
        results = verifier.verify(
            message, max_age=None, expect_tag=tag, require_components=parts, body=body
        )
    except hms.InvalidSignature as error:
        if isinstance(error.__cause__, BadRequestSignature):
            raise error.__cause__ from None
        raise BadRequestSignature(
            "SIGNATURE_INVALID", f"the signature is refused: {error}"
        ) from error
    except (hms.HTTPMessageSignaturesException, ValueError, KeyError) as error:
        if isinstance(error, BadRequestSignature):
            raise
        raise BadRequestSignature("SIGNATURE_INVALID", "the signature cannot be read") from error
    if len(results) != 1 or not set(results[0].parameters) <= _PARAMETERS:
        raise BadRequestSignature("SIGNATURE_INVALID", "exactly one signature is expected")
    parameters, nonce = results[0].parameters, results[0].nonce
    if not nonce or len(nonce) > _MAX_NONCE:
        raise BadRequestSignature("SIGNATURE_INVALID", "a nonce of 1 to 64 letters is expected")
    if resolver.found is None:
        raise BadRequestSignature("UNKNOWN_KEY", "no active key has this key id")
    return VerifiedRequest(
        key_id=str(parameters["keyid"]),
        nonce=str(nonce),
        created=dt.datetime.fromtimestamp(int(parameters["created"]), tz=dt.UTC),
        public_key=resolver.found,
    )


def _signer(key: keys.SigningKey) -> hms.HTTPMessageSigner:
    return hms.HTTPMessageSigner(
        signature_algorithm=hms.algorithms.ED25519, key_resolver=_Resolver(key=key)
    )


def _without_signature(headers: Mapping[str, str]) -> dict[str, str]:
    dropped = {"signature", "signature-input", "content-digest"}
    return {name: value for name, value in headers.items() if name.lower() not in dropped}
