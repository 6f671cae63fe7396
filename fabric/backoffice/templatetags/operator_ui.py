"""What the back office's own pages write with."""

from django import template

from fabric.backoffice import figures

register = template.Library()


@register.filter
def money(micros: int) -> str:
    """Write micro-units with all six places."""
    return figures.money(micros)


@register.filter
def words(key: object) -> str:
    """Write a key of ours as words."""
    return str(key).replace("_", " ")


@register.filter
def shown(value: object) -> str:
    """Write a measured or promised value; what is missing is a word."""
    if value is None or value == "":
        return "not measured"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
