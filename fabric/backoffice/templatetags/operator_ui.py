"""What the back office's own pages write with."""

from django import template

from fabric.backoffice import figures
from listings.domain.kinds import KINDS

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
def verdict_word(key: object) -> str:
    """Write a verdict as the product's pages do."""
    return {"match": "Met", "better": "Met"}.get(str(key), words(key).capitalize())


@register.filter
def field_label(name: object) -> str:
    """Return what the listings' schemas call a promised field; an unknown one reads as itself."""
    labels = {spec.name: spec.label for kind in KINDS.values() for spec in kind.fields}
    return labels.get(str(name), words(name))


@register.filter
def shown(value: object) -> str:
    """Write a measured or promised value; what is missing is a word."""
    if value is None or value == "":
        return "not measured"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
