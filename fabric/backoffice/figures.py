"""How the back office writes money: as the ledger has it."""

from fabric.lib.money import MICROS


def money(micros: int | None) -> str:
    """Write micro-units with all six places."""
    if micros is None:
        return "none"
    whole, rest = divmod(abs(micros), MICROS)
    return f"{'-' if micros < 0 else ''}{whole:,}.{rest:06d}"
