"""One body, written as each of the doors wants it."""

from typing import Any

from fabric.lib.money import MICROS


def form_data(body: dict[str, Any]) -> dict[str, str]:
    """Return a body as a browser would post the form."""
    data: dict[str, str] = {}
    for name, value in body.items():
        if isinstance(value, dict):
            data |= {f"{name}.{inner}": _text(item) for inner, item in value.items()}
        elif value is True:
            data[name] = "on"
        elif value is not False:
            data[name] = _text(value)
    data.pop("kind", None)
    if (amount := data.get("price.amount_micros")) is not None:
        data["price.amount_micros"] = _dollars(amount)
    return data


def _text(value: Any) -> str:
    return str(value)


def _dollars(micros: str) -> str:
    """Write micro-units as the dollars a person types; what is no number stays as it is."""
    if not micros.lstrip("-").isdecimal():
        return micros
    sign, digits = ("-" if micros.startswith("-") else ""), int(micros.lstrip("-"))
    return f"{sign}{digits // MICROS}.{digits % MICROS:06d}"
