"""What the chart of a lease draws, and the same figures as CSV."""

import csv
import io
from typing import Any

from leases.models import Reading
from leases.web.shown import READY, Quantity, field_verdict_of, value_of


def draw_chart(
    readings: list[Reading], quantity: Quantity, *, window_seconds: int
) -> dict[str, Any]:
    """Return the chart's data for readings in order of time; a missing value is a gap, not zero."""
    measured = [value_of(reading, quantity) for reading in readings]
    series = [{"name": "provider", "kind": "measured", "values": measured}]
    if quantity.name == READY:
        seen = [reading.witnessed_seconds for reading in readings]
        series.append({"name": "exchange", "kind": "second", "values": seen})
    below = [
        _span(reading, "below")
        for reading in readings
        if field_verdict_of(reading, quantity) in {"short", "different"}
    ]
    gaps = [
        _span(reading, f"{reading.starts_at:%H:%M:%S} no reading")
        for reading, value in zip(readings, measured, strict=True)
        if value is None
    ]
    return {
        "x": [int(reading.starts_at.timestamp()) for reading in readings],
        "series": series,
        "unit": quantity.unit,
        "promise": {
            "value": quantity.promised,
            "tolerance_bps": quantity.tolerance_bps,
            "direction": quantity.direction,
        },
        "gaps": gaps,
        "below": below,
        "summary": _summary(quantity, readings, len(below), len(gaps), window_seconds),
    }


def write_csv(readings: list[Reading], quantity: Quantity) -> str:
    """Return exactly what the chart draws, one window a line."""
    out = io.StringIO()
    writer = csv.writer(out)
    unit = f" ({quantity.unit})" if quantity.unit else ""
    writer.writerow(
        [
            "window_starts_at",
            "window_ends_at",
            f"promised{unit}",
            f"provider{unit}",
            *(["exchange (s)", "billed (s)"] if quantity.name == READY else []),
            "verdict",
        ]
    )
    for reading in readings:
        value = value_of(reading, quantity)
        row: list[Any] = [
            reading.starts_at.isoformat(),
            reading.ends_at.isoformat(),
            quantity.promised,
            "" if value is None else value,
        ]
        if quantity.name == READY:
            seen = reading.witnessed_seconds
            row += ["" if seen is None else seen, reading.ready_seconds]
        writer.writerow([*row, field_verdict_of(reading, quantity)])
    return out.getvalue()


def _span(reading: Reading, label: str) -> dict[str, Any]:
    return {
        "from": int(reading.starts_at.timestamp()),
        "to": int(reading.ends_at.timestamp()),
        "label": label,
    }


def _summary(
    quantity: Quantity, readings: list[Reading], below: int, gaps: int, window_seconds: int
) -> str:
    kept = len(readings) - below - gaps
    return (
        f"{quantity.label}: {len(readings)} windows of {window_seconds} s, {kept} as promised, "
        f"{below} below, {gaps} without a reading."
    )
