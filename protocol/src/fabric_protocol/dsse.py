"""DSSE envelopes: a signature over exact bytes and their type, for records that must last.

The payload is kept as the bytes that were signed and is never serialised again. The reader takes
one writing of an envelope only (one signature, canonical base64, no further members), so that two
envelopes of the same content cannot differ.
"""

import base64
import binascii
import json
from typing import Any

from fabric_protocol import canonical, keys

MAX_BYTES = 4 << 20


class BadEnvelope(ValueError):
    """The envelope is refused; `code` says why, for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def pre_authentication(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that are signed: type and payload, each with its length."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def seal(payload_type: str, payload: bytes, key: keys.SigningKey) -> bytes:
    """Sign `payload` as `payload_type` and return the envelope's bytes."""
    signature = key.sign(pre_authentication(payload_type, payload))
    return json.dumps(
        {
            "payload": _encode(payload),
            "payloadType": payload_type,
            "signatures": [{"keyid": key.key_id, "sig": _encode(signature)}],
        },
        separators=(",", ":"),
    ).encode()


def seal_document(payload_type: str, body: Any, key: keys.SigningKey) -> bytes:
    """Sign the canonical form of `body`."""
    return seal(payload_type, canonical.dumps(body), key)


def open(  # noqa: A001 - read as dsse.open, beside dsse.seal
    envelope: bytes, payload_type: str, public_key: bytes, max_bytes: int = MAX_BYTES
) -> bytes:
    """Return the payload when type, key and signature hold; BadEnvelope otherwise."""
    kind, payload, signer, signature = _parse(envelope, max_bytes)
    if kind != payload_type:
        raise BadEnvelope("WRONG_TYPE", f"the envelope holds {kind!r}, not {payload_type!r}")
    if signer != keys.key_id(public_key):
        raise BadEnvelope("WRONG_KEY", "the envelope is signed with another key")
    try:
        keys.verify(public_key, pre_authentication(kind, payload), signature)
    except keys.BadSignature as error:
        raise BadEnvelope("BAD_SIGNATURE", "the envelope's signature does not hold") from error
    return payload


def open_document(
    envelope: bytes, payload_type: str, public_key: bytes, max_bytes: int = MAX_BYTES
) -> dict[str, Any]:
    """Return the payload read strictly as a JSON object; BadEnvelope when it is not one."""
    payload = open(envelope, payload_type, public_key, max_bytes)
    try:
        return canonical.loads_object(payload, max_bytes)
    except canonical.BadDocument as error:
        raise BadEnvelope(error.code, f"the payload is refused: {error}") from error


def key_id_of(envelope: bytes, max_bytes: int = MAX_BYTES) -> str:
    """Return the id of the key an envelope names; nothing is verified yet."""
    return _parse(envelope, max_bytes)[2]


def _parse(envelope: bytes, max_bytes: int) -> tuple[str, bytes, str, bytes]:
    try:
        document = canonical.loads_object(bytes(envelope), max_bytes, max_depth=4)
    except canonical.BadDocument as error:
        raise BadEnvelope(error.code, f"the envelope is refused: {error}") from error
    signatures = document.get("signatures")
    if set(document) != {"payload", "payloadType", "signatures"} or not isinstance(
        signatures, list
    ):
        raise BadEnvelope("MALFORMED", "an envelope has payload, payloadType and signatures only")
    if len(signatures) != 1 or not isinstance(signatures[0], dict):
        raise BadEnvelope("MALFORMED", "an envelope carries exactly one signature")
    signature = signatures[0]
    if set(signature) != {"keyid", "sig"}:
        raise BadEnvelope("MALFORMED", "a signature has keyid and sig only")
    texts = (document["payloadType"], document["payload"], signature["keyid"], signature["sig"])
    if not all(isinstance(text, str) for text in texts):
        raise BadEnvelope("MALFORMED", "every member of an envelope is text")
    kind, payload, signer, sig = texts
    return kind, _decode(payload), signer, _decode(sig)


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadEnvelope("MALFORMED", "a member is not base64") from error
    if _encode(data) != text:
        raise BadEnvelope("MALFORMED", "a member is base64 in a second writing")
    return data
