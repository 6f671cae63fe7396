"""Promise, measurement and verdict side by side, ready for the page."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from listings.domain.bodies import kind_of
from listings.domain.kinds.schema import FieldSpec
from listings.models import Revision, RevisionCheck
from listings.selectors import promise_of

KEPT = frozenset({"match", "better"})


@dataclass(frozen=True)
class PromiseRow:
    """One promised field as the table shows it."""

    name: str
    label: str
    unit: str
    promised: Any
    measured: Any
    verdict: str
    detail: str
    tolerance_bps: int
    direction: str
    method: str
    source: str
    reason: str

    @property
    def kept(self) -> bool:
        """Whether the promise was found kept."""
        return self.verdict in KEPT


@dataclass(frozen=True)
class PromiseTable:
    """All promised fields of a revision, what came of them, and when they were measured."""

    rows: tuple[PromiseRow, ...]
    checked: bool
    outcome: str
    checked_at: datetime | None

    @property
    def sources(self) -> list[str]:
        """The public ids of the records that the measured values come from."""
        return sorted({row.source for row in self.rows if row.source})

    @property
    def broken(self) -> list[PromiseRow]:
        """The fields that were not found kept."""
        return [row for row in self.rows if not row.kept]


def build_promise_table(revision: Revision, check: RevisionCheck | None) -> PromiseTable:
    """Return the table of a revision with the findings of its check, or before there is one."""
    kind = kind_of(revision.body)
    promise = promise_of(revision)
    found = {row["field"]: row for row in check.fields} if check else {}
    specs = {spec.name: spec for spec in kind.fields}
    rows = [
        _row(specs[name], promise[name], found.get(name, {})) for name in specs if name in promise
    ]
    extra = [_loose_row(row) for name, row in found.items() if name not in specs]
    table = (*extra, *rows)
    return PromiseTable(
        rows=table,
        checked=check is not None,
        outcome=_outcome(table) if check else f"{len(table)} fields, not checked yet",
        checked_at=check.checked_at if check else None,
    )


def _row(spec: FieldSpec, promised: Any, found: dict[str, Any]) -> PromiseRow:
    measured = found.get("measured")
    verdict = found.get("verdict", "waiting")
    return PromiseRow(
        name=spec.name,
        label=spec.label,
        unit=spec.unit,
        promised=promised,
        measured=measured,
        verdict=verdict,
        detail=_detail(verdict, promised, measured),
        tolerance_bps=spec.tolerance_bps,
        direction=str(spec.direction),
        method=found.get("method") or spec.method,
        source=found.get("source", ""),
        reason=found.get("reason", ""),
    )


def _loose_row(found: dict[str, Any]) -> PromiseRow:
    """Show a finding about something else than a promised field, such as the node's state."""
    return PromiseRow(
        name=found["field"],
        label=str(found["field"]).capitalize(),
        unit=found["unit"],
        promised=found["promised"],
        measured=found["measured"],
        verdict=found["verdict"],
        detail="",
        tolerance_bps=0,
        direction="exact",
        method=found["method"],
        source=found["source"],
        reason=found["reason"],
    )


def _detail(verdict: str, promised: Any, measured: Any) -> str:
    """Say by how much a figure is short."""
    numbers = isinstance(promised, int | float) and isinstance(measured, int | float)
    if verdict != "short" or not numbers or not promised:
        return ""
    return f"{abs(promised - measured) / abs(promised) * 100:.1f} %"


def _outcome(rows: Iterable[PromiseRow]) -> str:
    verdicts = [row.verdict for row in rows]
    words = {"short": "short", "different": "different", "not_measured": "not measured"}
    parts = [f"{sum(verdict in KEPT for verdict in verdicts)} met"]
    parts += [f"{verdicts.count(key)} {word}" for key, word in words.items() if key in verdicts]
    return f"{len(verdicts)} fields: {', '.join(parts)}"
