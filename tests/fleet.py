"""Nodes for tests that start where a machine has been admitted already.

Tests of enrolment, reports and challenges do not use this: they go through the agent's door.
"""

import secrets
from datetime import datetime

from django.db.backends.postgresql.psycopg_any import NumericRange

from providers.domain.nodes import NodeState, Tier
from providers.models import Device, HardwareClass, Node, NodeBeat, Provider, Unit


def admit_node(
    provider: Provider,
    *,
    now: datetime,
    name: str = "is-r2-07",
    class_slug: str = "host-cpu",
    device_count: int = 1,
    memory_mib: int = 1024,
    accepts_unisolated: bool = True,
    simulated: bool = False,
) -> Node:
    """Return an admitted node with one whole unit on each of its devices."""
    hardware_class = HardwareClass.objects.get(slug=class_slug)
    node = Node.objects.create(
        provider=provider,
        name=name,
        state=NodeState.ADMITTED,
        hardware_class=hardware_class,
        tier=hardware_class.tier or Tier.COMMUNITY,
        accepts_unisolated=accepts_unisolated,
        simulated=simulated,
        installed_at=now,
        enrolled_at=now,
        admitted_at=now,
    )
    NodeBeat.objects.create(node=node, last_beat_at=now)
    for ordinal in range(device_count):
        device = Device.objects.create(
            node=node,
            ordinal=ordinal,
            identity=secrets.token_hex(16),
            hardware_class=hardware_class,
            memory_mib=memory_mib,
        )
        Unit.objects.create(
            device=device, kind="whole", slots=NumericRange(0, 1), memory_mib=memory_mib
        )
    return node
