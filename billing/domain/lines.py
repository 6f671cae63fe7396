"""The arithmetic of a line: what a quantity costs, what to reserve for it, how it is shared.

A line covers `[start, end)` on the agreement's own counter and never reads the ledger, so a void,
a partial post or a late reading cannot change another line. Everything is whole micro-units.
"""

from collections.abc import Mapping
from dataclasses import dataclass

WHOLE_BPS = 10_000
UNLIMITED_QUANTITY = 10**9  # what any sum affords at a price of zero


@dataclass(frozen=True)
class Rate:
    """A price per `per_quantity` of the metered unit, for each of `units` that run at once."""

    price_micros: int
    per_quantity: int
    units: int

    @property
    def total_micros(self) -> int:
        """Micro-units per `per_quantity` for all units together."""
        return self.price_micros * self.units

    def line_amount(self, start: int, end: int) -> int:
        """Return what `[start, end)` costs: the difference of two floors, so that lines add up."""
        return self.cost_up_to(end) - self.cost_up_to(start)

    def largest_line(self, quantity: int, *, first_start: int, last_start: int) -> int:
        """Return the most that `quantity` can cost if it begins anywhere in the given range.

        The cost is one of two neighbouring integers; the larger one occurs exactly when some
        start in the range leaves a fraction that carries. Counting those starts is a difference
        of two sums of floors, so the answer is exact however wide the range is.
        """
        floor, carry = divmod(self.total_micros * quantity, self.per_quantity)
        if carry == 0:
            return floor
        starts = last_start - first_start + 1
        offset = self.total_micros * first_start
        carrying = _sum_of_floors(
            starts, self.per_quantity, self.total_micros, offset + carry
        ) - _sum_of_floors(starts, self.per_quantity, self.total_micros, offset)
        return floor + (1 if carrying else 0)

    def affordable_quantity(self, funds_micros: int, *, first_start: int, last_start: int) -> int:
        """Return the largest quantity whose largest line the funds still cover."""
        if self.total_micros == 0:
            return UNLIMITED_QUANTITY
        low = funds_micros * self.per_quantity // self.total_micros
        high = (funds_micros + 1) * self.per_quantity // self.total_micros + 1
        while low < high:
            middle = (low + high + 1) // 2
            line = self.largest_line(middle, first_start=first_start, last_start=last_start)
            if line <= funds_micros:
                low = middle
            else:
                high = middle - 1
        return low

    def cost_up_to(self, quantity: int) -> int:
        """Return what everything from the counter's beginning to `quantity` costs, floored."""
        return self.total_micros * quantity // self.per_quantity


def ruled_amount(amount_micros: int, *, stands_bps: int) -> int:
    """Return the part of a line that stands, floored."""
    return amount_micros * stands_bps // WHOLE_BPS


def split_amount(amount_micros: int, *, fee_shares_bps: Mapping[str, int]) -> dict[str, int]:
    """Share an amount out: each fee floored, the provider takes the rest, so the parts add up."""
    shares = {
        name: amount_micros * bps // WHOLE_BPS for name, bps in sorted(fee_shares_bps.items())
    }
    shares["provider"] = amount_micros - sum(shares.values())
    return shares


def _sum_of_floors(count: int, divisor: int, step: int, offset: int) -> int:
    """Return the sum of floor((step·i + offset) / divisor) for i in [0, count), by Euclid."""
    total = 0
    while count > 0:
        total += count * (count - 1) // 2 * (step // divisor) + count * (offset // divisor)
        step, offset = step % divisor, offset % divisor
        highest = step * count + offset
        if highest < divisor:
            break
        count, offset, divisor, step = highest // divisor, highest % divisor, step, divisor
    return total
