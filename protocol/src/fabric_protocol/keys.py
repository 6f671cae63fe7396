"""Ed25519 keys: made, checked and used one way by agent, control plane and SDK.

The libraries accept public keys of small order, for which one signature fits every message; who
registers such a key can later deny what it signed. `check_public_key` refuses them, together with
encodings that are not the only one of their point. Signatures of different purposes never mix:
each purpose signs bytes with its own prefix.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_BYTES = 32
ENROLMENT_DOMAIN = b"fabric-enrol-v1\n"

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_SQRT_MINUS_ONE = pow(2, (_P - 1) // 4, _P)
_Point = tuple[int, int, int, int]
_IDENTITY: _Point = (0, 1, 1, 0)


class BadKey(ValueError):
    """These bytes are not a public key we accept; `code` says why, for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class BadSignature(ValueError):
    """The signature does not belong to this message and key."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, repr=False)
class SigningKey:
    """A private Ed25519 key; its repr shows the key id only."""

    _private: Ed25519PrivateKey

    @classmethod
    def generate(cls) -> Self:
        """Make a new key from the system's randomness."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_seed(cls, seed: bytes) -> Self:
        """Return the key of a 32-byte seed; ValueError on another length."""
        if len(seed) != KEY_BYTES:
            raise ValueError("a seed has 32 bytes")
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a key that `seed_bytes` wrote."""
        return cls.from_seed(path.read_bytes())

    @property
    def seed_bytes(self) -> bytes:
        """The 32 secret bytes, for the key file only."""
        return self._private.private_bytes_raw()

    @property
    def public_bytes(self) -> bytes:
        """The 32 bytes others verify with."""
        return self._private.public_key().public_bytes_raw()

    @property
    def key_id(self) -> str:
        """SHA-256 of the public key, in hex."""
        return key_id(self.public_bytes)

    def sign(self, message: bytes) -> bytes:
        """Sign exact bytes; callers prefix them with the domain of their purpose."""
        return self._private.sign(message)

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id[:12]})"


def key_id(public: bytes) -> str:
    """Return the id of a public key: SHA-256 in hex."""
    return hashlib.sha256(bytes(public)).hexdigest()


def verify(public: bytes, message: bytes, signature: bytes) -> None:
    """Check a signature over exact bytes; BadSignature when it does not hold."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes(public)).verify(bytes(signature), message)
    except (InvalidSignature, ValueError) as error:
        raise BadSignature("BAD_SIGNATURE", "the signature does not hold") from error


def separated(domain: str, message: bytes) -> bytes:
    """Return the bytes to sign for `domain`, so that no other purpose can reuse the signature."""
    return f"fabric-{domain}-v1\n".encode() + message


def enrolment_message(nonce: bytes, public: bytes) -> bytes:
    """Return what a node signs to show that it holds the key it enrols."""
    return ENROLMENT_DOMAIN + bytes(nonce) + bytes(public)


def check_public_key(public: bytes) -> None:
    """Refuse keys that are malformed, not canonical, of small order or outside the prime group."""
    if len(public) != KEY_BYTES:
        raise BadKey("WRONG_LENGTH", "an Ed25519 public key has 32 bytes")
    number = int.from_bytes(public, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    if y >= _P:
        raise BadKey("NOT_CANONICAL", "the key's coordinate is not reduced")
    x = _x_of(y)
    if x is None:
        raise BadKey("NOT_ON_CURVE", "the bytes are not a point of the curve")
    if x == 0 and sign:
        raise BadKey("NOT_CANONICAL", "the key sets the sign of a zero coordinate")
    if x & 1 != sign:
        x = _P - x
    point: _Point = (x, y, 1, x * y % _P)
    if _is_identity(_times(8, point)):
        raise BadKey("SMALL_ORDER", "the key has small order: one signature would fit any message")
    if not _is_identity(_times(_L, point)):
        raise BadKey("MIXED_ORDER", "the key lies outside the group that key generation draws from")


def _x_of(y: int) -> int | None:
    """Return a root x of -x^2 + y^2 = 1 + d x^2 y^2, or None when there is none."""
    u, v = (y * y - 1) % _P, (_D * y * y + 1) % _P
    square = u * pow(v, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _SQRT_MINUS_ONE % _P
    return None if (x * x - square) % _P else x


def _add(p: _Point, q: _Point) -> _Point:
    a = (p[1] - p[0]) * (q[1] - q[0]) % _P
    b = (p[1] + p[0]) * (q[1] + q[0]) % _P
    c = 2 * p[3] * q[3] * _D % _P
    d = 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _times(factor: int, point: _Point) -> _Point:
    result = _IDENTITY
    while factor:
        if factor & 1:
            result = _add(result, point)
        point = _add(point, point)
        factor >>= 1
    return result


def _is_identity(point: _Point) -> bool:
    return point[0] % _P == 0 and (point[1] - point[2]) % _P == 0
