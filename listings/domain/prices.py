"""One price in the units that listings are compared in; always whole micro-units, rounded down."""

from dataclasses import dataclass

from fabric.lib.money import format_amount

GOPS_PER_PETA = 1_000_000  # 1,000 TOPS, the unit in which measured compute is priced


@dataclass(frozen=True)
class NormalisedPrice:
    """A price per accelerator-hour, per GiB-hour and per 1,000 TOPS-hours.

    None where what it would be divided by was not measured: that is said in words, and never 0.
    """

    per_hour: int
    per_gib_hour: int | None
    per_peta_hour: int | None

    @property
    def per_gib_hour_text(self) -> str:
        """The price per GiB-hour with four places, cut and never rounded up."""
        return format_amount((self.per_gib_hour or 0) // 100 * 100, decimals=4)


def normalise(
    *, micros_per_hour: int, memory_mib: int | None, gops: float | None
) -> NormalisedPrice:
    """Return the price in the three units, from measured memory and measured compute."""
    return NormalisedPrice(
        per_hour=micros_per_hour,
        per_gib_hour=micros_per_hour * 1024 // memory_mib if memory_mib else None,
        per_peta_hour=int(micros_per_hour * GOPS_PER_PETA / gops) if gops else None,
    )
