"""What the agent says about a lease's workload, as its last beat told."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fabric.journal.services import parameters
from leases.models import Lease
from providers.domain.liveness import Liveness, read_liveness
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


def node_is_gone(lease: Lease, *, now: datetime) -> bool:
    """Return whether the lease's node is silent past the limit, or fenced, or retired."""
    if lease.node.state in {NodeState.FENCED, NodeState.RETIRED}:
        return True
    limits = parameters.get_operational(now=now)
    liveness = read_liveness(
        last_beat_at(lease),
        now=now,
        suspect_after_seconds=limits.suspect_after_seconds,
        dead_after_seconds=limits.dead_after_seconds,
    )
    return liveness in {Liveness.DEAD, Liveness.NEVER_HEARD}


def last_beat_at(lease: Lease) -> datetime | None:
    """Return when the lease's node was last heard. Costs a query."""
    return (
        NodeBeat.objects.filter(node=lease.node_id).values_list("last_beat_at", flat=True).first()
    )
