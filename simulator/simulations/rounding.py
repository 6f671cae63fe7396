"""A year of metered windows: what lines on a counter lose to rounding, beside priced windows."""

import random
from fractions import Fraction

from billing.domain.lines import Rate
from simulator.measure import Goal, Outcome

_LEASES = 60
_WINDOWS = 24 * 365
_WINDOW_SECONDS = 3_600
_SEED = 20_261_201


def run() -> Outcome:
    """Meter leases with gaps at prices that divide badly, and add their lines up three ways."""
    chance = random.Random(_SEED)
    worst_counter = worst_floored = worst_rounded = Fraction(0)
    largest_reserve_missed = 0
    for _ in range(_LEASES):
        rate = Rate(
            price_micros=chance.randrange(1, 40_000_000),
            per_quantity=chance.choice((3_600, 1_000, 7, 86_400)),
            units=chance.randint(1, 8),
        )
        price = Fraction(rate.total_micros, rate.per_quantity)
        counter = lines = floored = rounded = 0
        for _ in range(_WINDOWS):
            ready = chance.choice((_WINDOW_SECONDS, chance.randint(0, _WINDOW_SECONDS)))
            line = rate.line_amount(counter, counter + ready)
            reserve = rate.largest_line(_WINDOW_SECONDS, first_start=counter, last_start=counter)
            largest_reserve_missed = max(largest_reserve_missed, line - reserve)
            lines += line
            floored += int(price * ready)
            rounded += round(price * ready)
            counter += ready
        exact = price * counter
        worst_counter = max(worst_counter, abs(exact - lines))
        worst_floored = max(worst_floored, abs(exact - floored))
        worst_rounded = max(worst_rounded, abs(exact - rounded))
    return Outcome(
        figures={
            "windows": _LEASES * _WINDOWS,
            "lines_off_by_micros": float(worst_counter),
            "line_above_its_reserve_micros": largest_reserve_missed,
        },
        baselines={
            "floored_windows_off_by_micros": float(worst_floored),
            "rounded_windows_off_by_micros": float(worst_rounded),
        },
        ratios={"floored_to_lines": float(worst_floored / max(worst_counter, Fraction(1, 10**6)))},
        goals=(
            Goal("lines_off_by_micros", float(worst_counter), "<", 1),
            Goal("line_above_its_reserve_micros", largest_reserve_missed, "<=", 0),
        ),
    )
