"""Reading a meter batch's body: every field checked, nothing interpreted."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

FIELDS = frozenset(
    {
        "v",
        "lease",
        "agreement",
        "node",
        "terms_digest",
        "epoch",
        "seq",
        "prev",
        "window_index",
        "starts_at",
        "ends_at",
        "ready_seconds",
        "observed",
        "samples",
        "monotonic_ns",
        "final",
    }
)
SENTINELS = frozenset(
    {2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1, -1, -(2**31), -(2**63), 0xFFFFFFFE}
)
"""Values that drivers return for "I do not know"; none of them is ever a reading."""
MAX_COUNT = 2**53 - 1
MAX_OBSERVED_FIELDS = 64
MAX_TEXT = 200
_HEX_DIGEST = re.compile(r"^[0-9a-f]{64}$")
_DIGITS = re.compile(r"^[0-9]{1,20}$")


class BadBatch(Exception):
    """A body that is not a meter batch; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class MeterBatch:
    """One window as the meter saw it, and its place in the chain."""

    lease: str
    agreement: str
    node: str
    terms_digest: bytes
    epoch: int
    seq: int
    prev: bytes | None
    window_index: int
    starts_at: datetime
    ends_at: datetime
    ready_seconds: int
    observed: dict[str, Any]
    samples: int
    final: bool


def read_batch(body: object) -> MeterBatch:
    """Return the batch in a parsed JSON body, or raise BadBatch."""
    if not isinstance(body, Mapping):
        raise BadBatch("not_an_object")
    if body.get("v") != 1 or isinstance(body.get("v"), bool):
        raise BadBatch("unknown_version")
    if set(body) - FIELDS:
        raise BadBatch("unknown_field")
    if FIELDS - set(body):
        raise BadBatch("missing_field")
    if not isinstance(body["final"], bool):
        raise BadBatch("malformed_final")
    if not isinstance(body["monotonic_ns"], str) or not _DIGITS.match(body["monotonic_ns"]):
        raise BadBatch("malformed_monotonic_ns")
    return MeterBatch(
        lease=_text(body, "lease"),
        agreement=_text(body, "agreement"),
        node=_text(body, "node"),
        terms_digest=_digest(body, "terms_digest"),
        epoch=_count(body, "epoch"),
        seq=_count(body, "seq"),
        prev=None if body["prev"] is None else _digest(body, "prev"),
        window_index=_count(body, "window_index"),
        starts_at=_instant(body, "starts_at"),
        ends_at=_instant(body, "ends_at"),
        ready_seconds=_count(body, "ready_seconds"),
        observed=_observed(body["observed"]),
        samples=_count(body, "samples"),
        final=body["final"],
    )


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body[name]
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise BadBatch(f"malformed_{name}")
    return value


def _digest(body: Mapping[str, Any], name: str) -> bytes:
    value = body[name]
    if not isinstance(value, str) or not _HEX_DIGEST.match(value):
        raise BadBatch(f"malformed_{name}")
    return bytes.fromhex(value)


def _count(body: Mapping[str, Any], name: str) -> int:
    value = body[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadBatch(f"malformed_{name}")
    if value in SENTINELS or not 0 <= value <= MAX_COUNT:
        raise BadBatch(f"implausible_{name}")
    return value


def _instant(body: Mapping[str, Any], name: str) -> datetime:
    value = body[name]
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        at = None
    if at is None or at.utcoffset() != timedelta(0):
        raise BadBatch(f"malformed_{name}")
    return at.astimezone(UTC)


def _observed(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping) or len(value) > MAX_OBSERVED_FIELDS:
        raise BadBatch("malformed_observed")
    for name, seen in value.items():
        if not isinstance(name, str) or len(name) > MAX_TEXT:
            raise BadBatch("malformed_observed")
        if not _plausible(seen):
            raise BadBatch("implausible_observed")
    return dict(value)


def _plausible(seen: object) -> bool:
    """Return whether a device can have seen this; an absent reading is null or left out."""
    if seen is None or isinstance(seen, bool):
        return True
    if isinstance(seen, str):
        return len(seen) <= MAX_TEXT
    if isinstance(seen, int):
        return seen not in SENTINELS and 0 <= seen <= MAX_COUNT
    if isinstance(seen, float):
        return math.isfinite(seen) and 0 <= seen <= MAX_COUNT
    if isinstance(seen, list):
        return len(seen) <= MAX_OBSERVED_FIELDS and all(
            isinstance(item, str | int | float) and _plausible(item) for item in seen
        )
    return False
