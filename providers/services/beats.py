"""Hearing that a node is alive, and what it says about its workloads."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from providers.models import Node, NodeBeat


def record_beat(
    *,
    node: Node,
    seq: int,
    health: Mapping[str, Any],
    workloads: Sequence[Mapping[str, Any]],
    now: datetime,
) -> int:
    """Write down the beat and return the generation of what the node shall do.

    One row is rewritten in place. A beat that was overtaken by a later one changes nothing. What
    the agent says about workloads is kept for the apps that know what a lease is.
    """
    values = {
        "last_beat_at": now,
        "seq": seq,
        "health": dict(health),
        "workloads": [dict(workload) for workload in workloads],
    }
    if not NodeBeat.objects.filter(node=node, last_beat_at__lte=now).update(**values):
        NodeBeat.objects.get_or_create(node=node, defaults=values)
    return Node.objects.values_list("desired_generation", flat=True).get(pk=node.pk)
