"""What a lease's node is told about it."""

from datetime import datetime
from typing import Any

from billing.models import Terms
from fabric_protocol import payloads
from leases.models import Lease
from providers.services import desired_state


def tell_node(*, lease: Lease, terms: Terms, now: datetime, stop: bool = False) -> None:
    """Write the lease's workload into its node's desired state.

    The access token is not part of what is stored: it is derived where the state is served.
    """
    desired_state.put_item(
        node=lease.node,
        key=lease.public_id,
        kind="workload",
        body=_workload(lease=lease, terms=terms, stop=stop),
        now=now,
    )


def forget(*, lease: Lease, now: datetime) -> None:
    """Take the lease out of its node's desired state: the last batch is in, or given up."""
    desired_state.remove_item(node=lease.node, key=lease.public_id, now=now)


def _workload(*, lease: Lease, terms: Terms, stop: bool) -> dict[str, Any]:
    units = [row.unit for row in lease.lease_units.select_related("unit__device")]
    return {
        "agreement": lease.agreement.public_id,
        "terms_digest": bytes(terms.digest).hex(),
        "window_seconds": terms.window_seconds,
        "unit_ordinals": sorted(unit.device.ordinal for unit in units),
        "memory_mib": min(unit.memory_mib for unit in units),
        "interface": "http",
        "paid_until": None
        if lease.paid_until is None
        else payloads.write_instant(lease.paid_until),
        "stop": stop,
        "isolation": lease.isolation,
    }
