"""RFC 8785 JSON: one way to write a document, and a reader that refuses every second way.

Two parties that read one signed text differently have signed two different things. So the reader
refuses what parsers disagree on (duplicate keys, NaN, integers beyond 2^53, lone surrogates) and
what a hostile sender uses to exhaust a parser (size, depth), and it names the refusal.
"""

import hashlib
import json
import math
from typing import Any, NoReturn

import rfc8785

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
_MAX_INTEGER = (1 << 53) - 1


class BadDocument(ValueError):
    """The text is not a JSON document we would sign; `code` says why, for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def dumps(value: Any) -> bytes:
    """Return the one RFC 8785 form of `value`; BadDocument when it has none.

    Numbers beyond 2^53 - 1 are refused, floats too: RFC 8785 writes such a float without a point,
    and a reader of integers would take it for another number.
    """
    try:
        _check_numbers(value)
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise BadDocument("NOT_CANONICAL", f"this value has no canonical form: {error}") from error


def digest(value: Any) -> bytes:
    """Return SHA-256 over the canonical form: the content address of `value`."""
    return hashlib.sha256(dumps(value)).digest()


def loads(data: bytes, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Read a JSON document strictly; BadDocument on anything two readers could take differently."""
    if len(data) > max_bytes:
        raise BadDocument("TOO_LARGE", f"{len(data)} bytes; at most {max_bytes} are read")
    try:
        text = bytes(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadDocument("NOT_UTF8", f"not UTF-8 at byte {error.start}") from error
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_pairs,
            parse_constant=_refuse_constant,
            parse_int=_bounded_integer,
            parse_float=_finite_number,
        )
    except BadDocument:
        raise
    except RecursionError as error:
        raise BadDocument("TOO_DEEP", f"nested deeper than {max_depth} levels") from error
    except ValueError as error:
        raise BadDocument("NOT_JSON", f"not a JSON document: {error}") from error
    _check_depth_and_text(value, max_depth)
    return value


def loads_object(
    data: bytes, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> dict[str, Any]:
    """Read a document whose top level must be an object."""
    value = loads(data, max_bytes, max_depth)
    if not isinstance(value, dict):
        raise BadDocument("NOT_AN_OBJECT", "the document is not a JSON object")
    return value


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise BadDocument("DUPLICATE_KEY", f"the key {key!r} appears twice")
            seen.add(key)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise BadDocument("NOT_A_NUMBER", f"{name} is not a number")


def _bounded_integer(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > _MAX_INTEGER:
        raise BadDocument("NUMBER_TOO_LARGE", "an integer beyond 2^53 - 1 is written as a string")
    return int(text)


def _finite_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or abs(value) > _MAX_INTEGER:
        raise BadDocument("NUMBER_TOO_LARGE", f"{text[:32]} is beyond 2^53 - 1")
    return value


def _check_numbers(value: Any) -> None:
    if isinstance(value, float) and abs(value) > _MAX_INTEGER:
        raise BadDocument("NUMBER_TOO_LARGE", "a number beyond 2^53 - 1 is written as a string")
    if isinstance(value, dict):
        for item in value.values():
            _check_numbers(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_numbers(item)


def _check_depth_and_text(value: Any, max_depth: int) -> None:
    level = [value]
    for _ in range(max_depth):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                for key in item:
                    _check_text(key)
                deeper.extend(item.values())
            elif isinstance(item, list):
                deeper.extend(item)
            elif isinstance(item, str):
                _check_text(item)
        if not deeper:
            return
        level = deeper
    if any(isinstance(item, dict | list) for item in level):
        raise BadDocument("TOO_DEEP", f"nested deeper than {max_depth} levels")
    for item in level:
        if isinstance(item, str):
            _check_text(item)


def _check_text(text: str) -> None:
    if text.isascii():
        if "\x00" in text:
            raise BadDocument("BAD_TEXT", "text holds a NUL, which the database cannot keep")
        return
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadDocument("BAD_TEXT", "text holds a NUL or a lone surrogate")
