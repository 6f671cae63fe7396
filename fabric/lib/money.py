"""Money as integer micro-units (10⁻⁶) of the deployment's one settlement currency."""

import re

MICROS = 1_000_000
MAX_MICROS = 2**63 - 1
_DECIMAL = re.compile(r"^(0|[1-9][0-9]{0,12})(?:\.([0-9]{1,6}))?$")


def parse_amount(text: str) -> int:
    """Read a plain decimal such as `2.40` into micro-units.

    ValueError on signs, exponents, NaN, more than six decimals or anything above a bigint: money
    that is not written plainly is refused, not interpreted.
    """
    match = _DECIMAL.match(text.strip())
    if match is None:
        raise ValueError("an amount is a plain number with at most six decimals, such as 2.40")
    whole, fraction = match.group(1), (match.group(2) or "").ljust(6, "0")
    micros = int(whole) * MICROS + int(fraction)
    if micros > MAX_MICROS:
        raise ValueError("the amount is too large")
    return micros


def format_amount(micros: int, *, decimals: int = 2) -> str:
    """Write micro-units as a plain decimal with at least `decimals` places.

    Further places that are not zero are kept, so no amount is shown smaller than it is.
    """
    sign, micros = ("-" if micros < 0 else ""), abs(micros)
    whole, rest = divmod(micros, MICROS)
    fraction = f"{rest:06d}"
    while len(fraction) > decimals and fraction.endswith("0"):
        fraction = fraction[:-1]
    return f"{sign}{whole:,}.{fraction}" if fraction else f"{sign}{whole:,}"
