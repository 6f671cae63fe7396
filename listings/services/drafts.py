"""First drafts of listings: a promise of what a node has shown, for its provider to finish."""

import math
from collections.abc import Mapping
from typing import Any

from listings.domain.kinds import find_kind
from listings.domain.kinds.schema import Kind, Refusal
from providers.models import Node
from providers.services.nodes import measured_facts

_KIND = "accelerator"
_ROUND_FROM = 100  # above it nobody reads the decimals


def draft_listing(*, node: Node) -> dict[str, Any]:
    """Return a listing body without a price, whose figures are cut and never rounded up."""
    kind = find_kind(_KIND)
    return {
        "kind": _KIND,
        "title": node.name,
        "region": node.provider.region,
        "country": node.provider.country,
        "depth": "container",
        "max_hours": 24,
        "interruptible": False,
        "promise": _promise(kind, measured_facts(node=node)),
    }


def _promise(kind: Kind, facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Keep the facts that could be promised as they are."""
    promise = {}
    for spec in kind.fields:
        value = facts.get(spec.name, {}).get("value")
        if isinstance(value, float):
            value = math.floor(value) if value >= _ROUND_FROM else math.floor(value * 100) / 100
        try:
            if value is not None:
                promise[spec.name] = spec.read(value)
        except Refusal:
            continue
    return promise
