"""What a node's page prints: steps, checks with their figures, facts, units. No page logic."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from providers.domain.bands import Place
from providers.models import Challenge, Node

# The drawing of a range: its ends stand at these places of a line 132 wide, as on other gauges.
LOW_X, HIGH_X, LEFT_X, RIGHT_X = 26.0, 106.0, 6.0, 126.0
_LABELS = {
    "compute_gops": "Compute, integer product",
    "memory_bandwidth_gb_s": "Memory bandwidth",
    "memory_mib": "Memory, allocatable",
}
_UNIT_ENDINGS = ("_mib", "_gib", "_kib", "_mb_s", "_gb_s", "_mbit_s")
_PLACES = {
    Place.INSIDE.value: ("match", "inside the range"),
    Place.TOO_SLOW.value: ("missed", "below the range"),
    Place.TOO_GOOD.value: ("missed", "above the range"),
}


@dataclass(frozen=True)
class Figure:
    """One measured figure beside its class's range, and where to draw it."""

    label: str
    unit: str
    value: Any
    low: float | None
    high: float | None
    verdict: str
    sentence: str
    x: float | None
    source: str
    sample_size: int | None
    method: str


@dataclass(frozen=True)
class Check:
    """One challenge with all it shows."""

    challenge: Challenge
    figures: list[Figure]
    seconds: float | None
    read_back_seconds: float | None
    answer_digest: str
    roots: list[tuple[str, str]]
    limit: str
    bytes_touched: int | None


def show_check(challenge: Challenge) -> Check:
    """Return a challenge as the page prints it."""
    started, committed, answered = (
        challenge.started_at,
        challenge.committed_at,
        challenge.answered_at,
    )
    memory = challenge.figures.get("memory_mib", {})
    return Check(
        challenge=challenge,
        figures=[
            _figure(name, challenge.figures[name]) for name in sorted(challenge.figures, key=_rank)
        ],
        seconds=(committed - started).total_seconds() if started and committed else None,
        read_back_seconds=(answered - committed).total_seconds()
        if committed and answered
        else None,
        answer_digest=(
            hashlib.sha256(bytes(challenge.envelope)).hexdigest() if challenge.envelope else ""
        ),
        roots=_roots(challenge.commitment or {}),
        limit=_limit(memory.get("limit") or {}),
        bytes_touched=int(memory["bytes_touched"]) if "bytes_touched" in memory else None,
    )


def show_checks(node: Node, *, most: int = 5) -> list[Check]:
    """Return the newest challenges of a node; costs a query."""
    rows = node.challenges.select_related("report").order_by("-issued_at", "-id")[:most]
    return [show_check(challenge) for challenge in rows]


def show_facts(facts: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return facts as rows, those that were measured first."""
    rows = [
        {"field": label_of(field), **fact, "is_judged": str(fact["source"]).startswith("chl_")}
        for field, fact in facts.items()
    ]
    return sorted(rows, key=lambda row: (not row["is_judged"], row["value"] is None, row["field"]))


def _rank(name: str) -> tuple[int, str]:
    known = list(_LABELS)
    return (known.index(name) if name in known else len(known), name)


def label_of(field: str) -> str:
    """Return a field's name as words; its unit stands beside it and is not said twice."""
    if field in _LABELS:
        return _LABELS[field]
    for ending in _UNIT_ENDINGS:
        field = field.removesuffix(ending)
    words = ["CPU" if word == "cpu" else word for word in field.split("_")]
    return words[0][:1].upper() + " ".join(words)[1:]


def _figure(name: str, figure: Mapping[str, Any]) -> Figure:
    low, high, value = figure.get("low"), figure.get("high"), figure.get("value")
    verdict, words = _PLACES.get(
        str(figure.get("place")), ("not_measured", "no range to hold it to")
    )
    if name == "memory_mib":
        verdict, words = "match", "all of the promise was held at once"
    x = None
    if low is not None and high is not None and isinstance(value, int | float):
        x = LOW_X + (value - low) / (high - low) * (HIGH_X - LOW_X)
        x = round(min(RIGHT_X, max(LEFT_X, x)), 1)
    return Figure(
        label=_LABELS.get(name, name.replace("_", " ")),
        unit=str(figure.get("unit", "")),
        value=value,
        low=low,
        high=high,
        verdict=verdict,
        sentence=f"{_LABELS.get(name, name)}: {value} {figure.get('unit', '')}, {words}",
        x=x,
        source=str(figure.get("source", "")),
        sample_size=figure.get("sample_size"),
        method=str(figure.get("method", "")),
    )


def _roots(commitment: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for device in commitment.get("devices", []):
        for number, root in enumerate(device.get("product_roots", []), start=1):
            rows.append((f"Device {device['ordinal']}, product {number}", str(root)))
        rows.append((f"Device {device['ordinal']}, memory", str(device.get("memory_root", ""))))
    return rows


def _limit(limit: Mapping[str, Any]) -> str:
    kinds = {
        "cgroup": "a memory cgroup",
        "rlimit_as": "RLIMIT_AS on the process",
        "simulated": "nothing: this node is simulated",
        "none": "nothing",
    }
    kind = str(limit.get("kind", ""))
    return kinds.get(kind, kind.replace("_", " "))
