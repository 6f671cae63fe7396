"""The currency's own exponent, which exists only where the card processor is spoken to."""

from fabric.lib.errors import FieldError, InvalidInput
from fabric.lib.money import MICROS

_WITHOUT_MINOR_UNIT = frozenset(
    {"bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf"}
    | {"xof", "xpf"}
)


def micros_per_minor_unit(currency: str) -> int:
    """Return how many micro-units the smallest payable amount of a currency is."""
    return MICROS if currency.lower() in _WITHOUT_MINOR_UNIT else MICROS // 100


def to_minor_units(amount_micros: int, *, currency: str) -> int:
    """Convert an amount for a card payment; refused unless it is a whole number of minor units."""
    whole, rest = divmod(amount_micros, micros_per_minor_unit(currency))
    if rest:
        raise InvalidInput(
            "A card cannot pay a fraction of the smallest unit.",
            errors=(
                FieldError(
                    "amount_micros",
                    "finer than the currency",
                    f"a multiple of {micros_per_minor_unit(currency)}",
                ),
            ),
        )
    return whole


def to_micros(amount_minor: int, *, currency: str) -> int:
    """Convert what a card paid into micro-units."""
    return amount_minor * micros_per_minor_unit(currency)
