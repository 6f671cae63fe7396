"""Geometry of the promise line: where a measurement falls beside what was promised."""

from dataclasses import dataclass
from numbers import Real

WIDTH, HEIGHT, MIDDLE = 132, 22, 11
CENTRE = WIDTH / 2
SCALE_PERCENT = 15.0  # both sides of the line, on every gauge of the product
PIXELS_PER_PERCENT = 56 / SCALE_PERCENT
EDGE = SCALE_PERCENT * PIXELS_PER_PERCENT


@dataclass(frozen=True)
class Gauge:
    """One mark on the promise line; `x` is None where nothing was measured."""

    x: float | None
    band_x: float
    band_width: float
    beyond: str  # "", "left" or "right": past the scale's end
    verdict: str  # met, short, missed or unknown: names the colour
    sentence: str


def draw(promised: object, measured: object, tolerance_bps: int, direction: str) -> Gauge:
    """Place a measurement so that left is worse and right is better, whatever the direction.

    `direction` is `higher` or `lower` (which way is better), `exact`, or `set` (at least what was
    promised). Colour follows the verdict: inside the tolerance is met.
    """
    tolerance = tolerance_bps / 100
    band = min(tolerance, SCALE_PERCENT) * PIXELS_PER_PERCENT
    if measured is None or measured == "":
        return Gauge(None, CENTRE, 0, "", "unknown", "not measured")
    percent = _percent_better(promised, measured, direction)
    if percent is None:
        same = _same(promised, measured, direction)
        return Gauge(
            x=CENTRE if same else CENTRE - EDGE,
            band_x=CENTRE - band,
            band_width=band,
            beyond="" if same else "left",
            verdict="met" if same else "missed",
            sentence="exactly as promised" if same else "different from what was promised",
        )
    verdict = "met" if percent >= -tolerance - 1e-9 else "short"
    beyond = "left" if percent < -SCALE_PERCENT else "right" if percent > SCALE_PERCENT else ""
    clipped = max(-SCALE_PERCENT, min(SCALE_PERCENT, percent))
    return Gauge(
        x=CENTRE + clipped * PIXELS_PER_PERCENT,
        band_x=CENTRE - band,
        band_width=band,
        beyond=beyond,
        verdict=verdict,
        sentence=_sentence(percent, tolerance),
    )


def _percent_better(promised: object, measured: object, direction: str) -> float | None:
    """Return by how many percent the measurement beats the promise, or None where none can be."""
    numbers = isinstance(promised, Real) and isinstance(measured, Real)
    if not numbers or isinstance(promised, bool) or isinstance(measured, bool):
        return None
    goal, got = float(promised), float(measured)  # type: ignore[arg-type]
    if goal == 0:
        return 0.0 if got == 0 else None
    difference = (got - goal) / abs(goal) * 100
    if direction == "lower":
        return -difference
    if direction == "exact":
        return -abs(difference)
    return difference


def _same(promised: object, measured: object, direction: str) -> bool:
    if direction == "set" and isinstance(promised, list) and isinstance(measured, list):
        return set(promised) <= set(measured)
    return promised == measured


def _sentence(percent: float, tolerance: float) -> str:
    size = f"{abs(percent):.1f} %"
    if abs(percent) < 0.05:
        text = "exactly as promised"
    else:
        text = f"{size} {'better' if percent > 0 else 'worse'} than promised"
    return f"{text}; tolerance {tolerance:g} %"
