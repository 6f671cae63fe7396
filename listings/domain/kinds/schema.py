"""What a kind of listing is made of: fields, price, and the words for both."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MAX_DECIMALS = 3


class ValueType(StrEnum):
    """How a field's value is written in a body."""

    TEXT = "text"
    CHOICE = "choice"
    INTEGER = "integer"
    NUMBER = "number"
    SET = "set"
    FLAG = "flag"


class Direction(StrEnum):
    """Which way a measured value may differ from a promise and still keep it."""

    EXACT = "exact"
    HIGHER = "higher"
    LOWER = "lower"
    SET = "set"


class Refusal(Exception):
    """Why one value is not acceptable; the caller adds which field it was."""

    def __init__(self, reason: str, *, code: str = "INVALID") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


@dataclass(frozen=True)
class FieldSpec:
    """One field: its place among the five lines, its unit, and when a reading keeps it.

    `line` is 1 to 5 for what is promised about the accelerator, its memory, the host, the
    interconnect and the runtime; 0 for performance figures and isolation, which no line states.
    """

    name: str
    label: str
    type: ValueType
    line: int = 0
    unit: str = ""
    direction: Direction = Direction.EXACT
    tolerance_bps: int = 0
    method: str = ""
    required: bool = False
    low: int = 0
    high: int = 0
    choices: tuple[str, ...] = ()
    pattern: str = ""
    pattern_words: str = ""
    max_length: int = 120

    @property
    def accepted(self) -> str:
        """Say in words which values are accepted."""
        unit = f" {self.unit}" if self.unit else ""
        match self.type:
            case ValueType.INTEGER:
                return f"a whole number from {self.low:,} to {self.high:,}{unit}"
            case ValueType.NUMBER:
                return (
                    f"a number from {self.low:,} to {self.high:,}{unit}, "
                    f"with at most {MAX_DECIMALS} decimals"
                )
            case ValueType.CHOICE:
                return f"one of {', '.join(self.choices)}"
            case ValueType.SET:
                return "a list of different words of a to z, 0 to 9 and _"
            case ValueType.FLAG:
                return "true or false"
            case ValueType.TEXT:
                return self.pattern_words or f"text of 1 to {self.max_length} characters"

    def read(self, value: object) -> Any:
        """Return `value` as a revision stores it, or raise Refusal."""
        match self.type:
            case ValueType.INTEGER:
                return self._in_range(_read_integer(value))
            case ValueType.NUMBER:
                return self._in_range(_read_number(value))
            case ValueType.CHOICE:
                return self._read_choice(value)
            case ValueType.SET:
                return _read_set(value)
            case ValueType.FLAG:
                if not isinstance(value, bool):
                    raise Refusal(f"{_shown(value)} is neither true nor false", code="WRONG_TYPE")
                return value
            case ValueType.TEXT:
                return self._read_text(value)

    def _in_range(self, value: float) -> int | float:
        if value < self.low:
            raise Refusal(f"{_shown(value)} is below {self.low:,}", code="TOO_SMALL")
        if value > self.high:
            raise Refusal(f"{_shown(value)} is above {self.high:,}", code="TOO_LARGE")
        return value

    def _read_choice(self, value: object) -> str:
        text = _read_line(value)
        if text not in self.choices:
            raise Refusal(f"{_shown(text)} is not known here", code="UNKNOWN_CHOICE")
        return text

    def _read_text(self, value: object) -> str:
        text = _read_line(value)
        if not text:
            raise Refusal("it is empty", code="MISSING")
        if len(text) > self.max_length:
            raise Refusal(f"it has {len(text):,} characters", code="TOO_LONG")
        if self.pattern and not re.fullmatch(self.pattern, text):
            raise Refusal(f"{_shown(text)} is not written like that", code="INVALID")
        return text


@dataclass(frozen=True)
class PriceSpec:
    """The form of a price: micro-units per a quantity of the metered unit."""

    meter_unit: str
    per_quantity: int
    words: str
    max_micros: int

    @property
    def fields(self) -> tuple[FieldSpec, ...]:
        """Return the fields inside `price`."""
        return (
            FieldSpec(
                "amount_micros", f"Price {self.words}", ValueType.INTEGER, low=1,
                high=self.max_micros, unit="micro-units", required=True,
            ),
            FieldSpec(
                "per_quantity", "Quantity priced", ValueType.INTEGER, low=self.per_quantity,
                high=self.per_quantity, required=True,
            ),
            FieldSpec(
                "meter_unit", "Metered unit", ValueType.CHOICE, choices=(self.meter_unit,),
                required=True,
            ),
        )  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of listing: what it promises, what else it states, and how it is priced.

    `needed_with` names fields that one value of another makes necessary: (field, value, needed).
    """

    name: str
    title: str
    fields: tuple[FieldSpec, ...]
    statements: tuple[FieldSpec, ...]
    price: PriceSpec
    lines: Mapping[int, str]
    needed_with: tuple[tuple[str, Any, str], ...] = ()

    def field(self, name: str) -> FieldSpec:
        """Return the promise field called `name`; KeyError when there is none."""
        for spec in self.fields:
            if spec.name == name:
                return spec
        raise KeyError(name)


def _read_integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal(f"{_shown(value)} is not a whole number", code="WRONG_TYPE")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Refusal(f"{_shown(value)} is not a finite number", code="NOT_FINITE")
        if not value.is_integer() or abs(value) >= 2**53:
            raise Refusal(f"{_shown(value)} is not a whole number", code="WRONG_TYPE")
        return int(value)
    return value


def _read_number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal(f"{_shown(value)} is not a number", code="WRONG_TYPE")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Refusal(f"{_shown(value)} is not a finite number", code="NOT_FINITE")
        if round(value, MAX_DECIMALS) != value:
            raise Refusal(
                f"{_shown(value)} has more than {MAX_DECIMALS} decimals", code="TOO_PRECISE"
            )
        return int(value) if value.is_integer() else value
    return value


def _read_line(value: object) -> str:
    if not isinstance(value, str):
        raise Refusal(f"{_shown(value)} is not text", code="WRONG_TYPE")
    text = " ".join(value.split())
    if not text.isprintable():
        raise Refusal("it holds characters that cannot be shown", code="INVALID")
    return text


def _read_set(value: object) -> list[str]:
    if not isinstance(value, list | tuple):
        raise Refusal(f"{_shown(value)} is not a list", code="WRONG_TYPE")
    words = [
        item for item in value if isinstance(item, str) and re.fullmatch(r"[a-z0-9_]{1,40}", item)
    ]
    if len(words) != len(value) or len(set(words)) != len(words) or not words or len(words) > 64:
        raise Refusal("it is empty, repeats itself, or holds other things", code="INVALID")
    return sorted(words)


def _shown(value: object) -> str:
    """Quote a refused value, short enough for a message."""
    if value is None:
        return "nothing"
    try:
        text = str(value)
    except ValueError:  # An integer of thousands of digits has no decimal text in Python.
        return "a number of thousands of digits"
    text = text if len(text) <= 40 else f"{text[:40]}…"
    return repr(text) if isinstance(value, str) else text
