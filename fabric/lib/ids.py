"""Identifiers: UUIDv7 underneath, a typed prefix at the border (`lse_…`)."""

import os
import time
import uuid

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32: no i, l, o, u
_VALUE_OF = {letter: value for value, letter in enumerate(_ALPHABET)}
_ENCODED_LENGTH = 26
PUBLIC_ID_PATTERN = f"[a-z]{{3}}_[{_ALPHABET}]{{{_ENCODED_LENGTH}}}"


def uuid7() -> uuid.UUID:
    """Return a time-ordered UUID of version 7 (Python 3.11 to 3.13 have none of their own)."""
    millis = time.time_ns() // 1_000_000
    value = (millis & ((1 << 48) - 1)) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)


def to_public(prefix: str, value: uuid.UUID) -> str:
    """Write `value` as people and programs see it: prefix, underscore, 26 letters."""
    number, letters = value.int, []
    for _ in range(_ENCODED_LENGTH):
        number, rest = divmod(number, 32)
        letters.append(_ALPHABET[rest])
    return f"{prefix}_{''.join(reversed(letters))}"


def from_public(prefix: str, text: str) -> uuid.UUID:
    """Read a public id back; ValueError when it is of another type or not one at all."""
    head, _, tail = text.partition("_")
    if head != prefix or len(tail) != _ENCODED_LENGTH:
        raise ValueError(f"not a {prefix}_ id")
    number = 0
    for letter in tail:
        if letter not in _VALUE_OF:
            raise ValueError(f"not a {prefix}_ id")
        number = number * 32 + _VALUE_OF[letter]
    if number >= 1 << 128:
        raise ValueError(f"not a {prefix}_ id")
    return uuid.UUID(int=number)
