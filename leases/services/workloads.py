"""What the agent says about a lease's workload, as its last beat told."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leases.models import Lease
from providers.domain.nodes import NodeState
from providers.models import NodeBeat

RUNNING = frozenset({"running", "ready"})
FAILED = "failed"


@dataclass(frozen=True)
class ReportedWorkload:
    """The agent's word about one workload; only a look from outside makes it count."""

    state: str
    access: dict[str, Any] | None
    detail: str

    @property
    def claims_ready(self) -> bool:
        """Whether the agent says that the workload can be reached."""
        return self.state in RUNNING and self.access is not None

    @property
    def failed(self) -> bool:
        """Whether the agent says that it cannot provide the workload."""
        return self.state == FAILED


def read_workload(lease: Lease) -> ReportedWorkload | None:
    """Return what the node's last beat said about `lease`, or None. Costs a query."""
    beat = NodeBeat.objects.filter(node=lease.node_id).only("workloads").first()
    for item in beat.workloads if beat is not None else ():
        if isinstance(item, dict) and item.get("lease") == lease.public_id:
            access = item.get("access")
            return ReportedWorkload(
                state=str(item.get("state", "")),
                access=access if isinstance(access, dict) else None,
                detail=str(item.get("detail") or "")[:200],
            )
    return None


def node_is_gone(lease: Lease) -> bool:
    """Return whether the lease's node is fenced or retired, as the lease was read with it.

    Silence is judged by the sweep that fences, which knows whether we were listening ourselves:
    an outage of ours must not interrupt every lease.
    """
    return lease.node.state in {NodeState.FENCED, NodeState.RETIRED}


def node_is_proven(lease: Lease) -> bool:
    """Return whether the lease's node is in; one that came back is not until it proved itself."""
    return bool(lease.node.state == NodeState.ADMITTED)


def last_beat_at(lease: Lease) -> datetime | None:
    """Return when the lease's node was last heard. Costs a query."""
    return (
        NodeBeat.objects.filter(node=lease.node_id).values_list("last_beat_at", flat=True).first()
    )
