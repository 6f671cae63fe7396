"""What the pages of a lease show: figures, words and rows, ready to print."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from billing.domain.lines import WHOLE_BPS
from billing.models import Terms, UsageRecord
from billing.selectors import recompute
from fabric.lib.money import format_amount
from leases.domain.consequences import Compared, summary_word
from leases.domain.states import LIVE, LeaseState, Side
from leases.models import Dispute, Lease, Reading
from leases.selectors import LeaseMoney
from listings.domain.bodies import kind_of
from listings.domain.kinds.schema import FieldSpec, Kind, ValueType

SHOWN_WINDOWS = 12
MOST_WINDOWS = 200
READY = "ready_seconds"
NUMBERS = frozenset({ValueType.INTEGER, ValueType.NUMBER})
_BOUNDS = {
    "ready_at": "it was not reached from outside before",
    "paid_until": "the money ended",
    "stopped_at": "the lease was stopped",
    "witness": "the exchange could not reach it",
    "not_reserved": "the window was not paid for",
}


@dataclass(frozen=True)
class Runway:
    """For how long the money lasts, and what then happens."""

    seconds: int
    until: datetime | None
    is_low: bool


@dataclass(frozen=True)
class Quantity:
    """A field whose readings can be drawn and listed."""

    name: str
    label: str
    unit: str
    promised: Any
    tolerance_bps: int
    direction: str
    method: str


@dataclass(frozen=True)
class LineSum:
    """How one line divides: to the provider, and to each fee by the pinned parameters."""

    record: UsageRecord
    seconds: int
    price_micros: int
    per_quantity: int
    units: int
    legs: list[tuple[str, int, int]]

    @property
    def total_micros(self) -> int:
        """What is left of the line after all legs: nothing, or the sum is wrong."""
        return self.record.amount_micros + sum(micros for _, _, micros in self.legs)


@dataclass(frozen=True)
class WindowRow:
    """One window in the table of readings."""

    reading: Reading
    digest: bytes | None
    place: str
    value: Any
    verdict: str
    detail: str
    field_verdict: str
    bounds: str
    amount_micros: int
    line_state: str
    disputable_until: datetime | None
    can_dispute: bool
    dispute: Dispute | None


@dataclass(frozen=True)
class PromiseRow:
    """One promised field beside the latest reading of it."""

    line: str
    label: str
    unit: str
    promised: str
    observed: str | None
    raw_promised: Any
    raw_observed: Any
    tolerance_bps: int
    direction: str
    verdict: str
    method: str


def hourly_micros(terms: Terms) -> int:
    """Return what all units of a lease cost per hour, floored."""
    return terms.price_micros * terms.units * 3600 // terms.per_quantity


def hourly_words(terms: Terms) -> str:
    """Return the hourly price of a lease as it is printed."""
    return f"${format_amount(hourly_micros(terms))}"


def read_runway(lease: Lease, terms: Terms, money: LeaseMoney, now: datetime) -> Runway:
    """Return how long the lease can still run on what is reserved and unused."""
    if lease.state not in LIVE - {LeaseState.ENDING}:
        return Runway(0, None, is_low=False)
    paid = max(now, lease.paid_until or now)
    rate = terms.price_micros * terms.units
    unused = money.unused_micros * terms.per_quantity // rate if rate else 10**9
    until = min(paid + timedelta(seconds=min(unused, 10**9)), lease.ends_at)
    return Runway(
        seconds=max(0, int((until - now).total_seconds())),
        until=until,
        is_low=lease.low_funds_at is not None,
    )


def sum_line(record: UsageRecord | None) -> LineSum | None:
    """Return how a line divides, recomputed from the terms it points at."""
    if record is None:
        return None
    terms, sums = record.terms, recompute(record)
    legs = [(share.name, share.bps, -share.micros) for share in sums.shares]
    if sums.ruled < record.amount_micros:
        rest = sums.ruled - record.amount_micros
        legs.append(("the buyer's escrow, as ruled", WHOLE_BPS - record.stands_bps, rest))
    return LineSum(
        record=record,
        seconds=record.counter_end - record.counter_start,
        price_micros=terms.price_micros,
        per_quantity=terms.per_quantity,
        units=terms.units,
        legs=legs,
    )


def list_quantities(lease: Lease, terms: Terms) -> list[Quantity]:
    """Return what can be drawn: readiness, then every promised figure."""
    promise = terms.body["promise"]
    ready = Quantity(
        READY, "Ready", "s", terms.window_seconds, 0, "higher", "Metered against outside looks"
    )
    figures = [
        _quantity(spec, promise[spec.name])
        for spec in kind_of(lease.revision.body).fields
        if spec.type in NUMBERS and spec.name in promise
    ]
    # What is measured within a tolerance moves, and is looked at first; counts hardly ever do.
    return [ready, *sorted(figures, key=lambda item: item.tolerance_bps == 0)]


def choose_quantity(quantities: Sequence[Quantity], name: str) -> Quantity:
    """Return the quantity called `name`, or the first."""
    return next((item for item in quantities if item.name == name), quantities[0])


def list_rows(
    readings: Sequence[Reading], quantity: Quantity, *, side: Side | None, now: datetime
) -> list[WindowRow]:
    """Return the readings as rows, in the order given."""
    return [_row(reading, quantity, side, now) for reading in readings]


def list_promises(lease: Lease, terms: Terms, latest: Reading | None) -> list[PromiseRow]:
    """Return every promised field with the latest reading of it; a missing one says so."""
    return _promise_rows(
        kind_of(lease.revision.body), terms.body["promise"], latest.conformity if latest else []
    )


def list_promised(body: Mapping[str, Any]) -> list[PromiseRow]:
    """Return every field that a listing's text promises, before anything was measured for it."""
    return _promise_rows(kind_of(body), body["promise"], [])


def _promise_rows(
    kind: Kind, promise: Mapping[str, Any], conformity: Sequence[Mapping[str, Any]]
) -> list[PromiseRow]:
    found = {item["field"]: item for item in conformity}
    rows = []
    for spec in kind.fields:
        if spec.name not in promise:
            continue
        promised = promise[spec.name]
        item = found.get(spec.name, {"observed": None, "verdict": "not_measured"})
        rows.append(
            PromiseRow(
                line=kind.lines[spec.line],
                label=spec.label,
                unit=spec.unit,
                promised=_words(promised),
                observed=None if item["observed"] is None else _words(item["observed"]),
                raw_promised=promised,
                raw_observed=item["observed"],
                tolerance_bps=spec.tolerance_bps,
                direction=str(spec.direction),
                verdict=item["verdict"],
                method=spec.method,
            )
        )
    return rows


def count_verdicts(rows: Sequence[PromiseRow]) -> dict[str, int]:
    """Return how many promised fields were kept, short or different, and not measured."""
    kept = sum(row.verdict in {"match", "better"} for row in rows)
    unread = sum(row.verdict == "not_measured" for row in rows)
    return {"kept": kept, "unread": unread, "broken": len(rows) - kept - unread}


def value_of(reading: Reading, quantity: Quantity) -> Any:
    """Return what a reading says of a quantity; None where it says nothing."""
    if quantity.name == READY:
        return reading.claimed_seconds if reading.batch_id else None
    value = reading.observed.get(quantity.name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def field_verdict_of(reading: Reading, quantity: Quantity) -> str:
    """Return the judged verdict of a quantity in a reading."""
    if quantity.name == READY:
        if reading.batch_id is None:
            return "not_measured"
        return "match" if reading.ready_seconds == reading.claimed_seconds else "short"
    for item in reading.conformity:
        if item["field"] == quantity.name:
            return str(item["verdict"])
    return "not_measured"


def _row(reading: Reading, quantity: Quantity, side: Side | None, now: datetime) -> WindowRow:
    record, batch = reading.usage_record, reading.batch
    dispute = getattr(reading, "dispute", None)
    verdict, detail = _verdict(reading)
    open_now = (
        record is not None
        and record.state == "pending"
        and record.amount_micros > 0
        and record.disputable_until > now
    )
    return WindowRow(
        reading=reading,
        digest=None if batch is None else bytes(batch.digest),
        place="" if batch is None else f"{batch.epoch}/{batch.seq}",
        value=value_of(reading, quantity),
        verdict=verdict,
        detail=detail,
        field_verdict=field_verdict_of(reading, quantity),
        bounds="; ".join(_BOUNDS.get(cap["rule"], cap["rule"]) for cap in reading.caps),
        amount_micros=record.amount_micros if record else 0,
        line_state=record.state if record else "",
        disputable_until=record.disputable_until if record else None,
        can_dispute=side is not None and open_now and dispute is None,
        dispute=dispute,
    )


def _verdict(reading: Reading) -> tuple[str, str]:
    if reading.batch_id is None:
        return "not_measured", ""
    word = summary_word(
        Compared(field=item["field"], verdict=item["verdict"]) for item in reading.conformity
    )
    seen = reading.witnessed_seconds
    if word in {"match", "better"} and seen is not None and seen < reading.claimed_seconds:
        return "readings_differ", ""
    broken = [item["field"] for item in reading.conformity if item["verdict"] == word]
    return word, f"in {len(broken)}" if word in {"short", "different"} else ""


def _quantity(spec: FieldSpec, promised: Any) -> Quantity:
    return Quantity(
        name=spec.name,
        label=spec.label,
        unit=spec.unit,
        promised=promised,
        tolerance_bps=spec.tolerance_bps,
        direction=str(spec.direction),
        method=spec.method,
    )


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
