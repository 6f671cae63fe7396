"""What may be an amount of money: a whole, positive number of micro-units that a bigint holds."""

from fabric.lib.errors import FieldError, InvalidInput
from fabric.lib.money import MAX_MICROS, format_amount


def check_amount(
    value: object,
    *,
    field: str = "amount_micros",
    at_least: int = 1,
    at_most: int = MAX_MICROS,
) -> int:
    """Return `value` if it is an acceptable amount, or raise InvalidInput naming the field.

    Booleans, floats and text are refused, never converted: money is not guessed.
    """
    if type(value) is not int:
        raise _refusal(field, "not a whole number of micro-units", at_least, at_most)
    if value < at_least:
        raise _refusal(field, "too small", at_least, at_most)
    if value > at_most:
        raise _refusal(field, "too large", at_least, at_most)
    return value


def _refusal(field: str, reason: str, at_least: int, at_most: int) -> InvalidInput:
    accepted = (
        f"a whole number of micro-units from {at_least} to {at_most} "
        f"({format_amount(at_least)} to {format_amount(at_most)})"
    )
    return InvalidInput(
        "The amount is not acceptable.", errors=(FieldError(field, reason, accepted),)
    )
