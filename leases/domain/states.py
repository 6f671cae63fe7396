"""States of orders, leases, streams and disputes, the moves between, and which ones charge."""

from fabric.lib.types import Choice


class LeaseState(Choice):
    """Where a lease is between a funded order and its last receipt."""

    PROVISIONING = "provisioning"
    ACTIVE = "active"
    ENDING = "ending"
    ENDED = "ended"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


MOVES: dict[LeaseState, frozenset[LeaseState]] = {
    LeaseState.PROVISIONING: frozenset({LeaseState.ACTIVE, LeaseState.ENDING, LeaseState.FAILED}),
    LeaseState.ACTIVE: frozenset({LeaseState.ENDING, LeaseState.INTERRUPTED}),
    LeaseState.INTERRUPTED: frozenset({LeaseState.ACTIVE, LeaseState.ENDING}),
    LeaseState.ENDING: frozenset({LeaseState.ENDED}),
    LeaseState.ENDED: frozenset(),
    LeaseState.FAILED: frozenset(),
}
CHARGING: frozenset[LeaseState] = frozenset({LeaseState.ACTIVE})
LIVE: frozenset[LeaseState] = frozenset(
    {LeaseState.PROVISIONING, LeaseState.ACTIVE, LeaseState.INTERRUPTED, LeaseState.ENDING}
)


class EndReason(Choice):
    """Why a lease came to its end."""

    BUYER_ENDED = "buyer_ended"
    TERM_REACHED = "term_reached"
    FUNDS_EXHAUSTED = "funds_exhausted"
    NODE_FAILED = "node_failed"
    NOT_READY_IN_TIME = "not_ready_in_time"
    OPERATOR_ENDED = "operator_ended"


class BatchState(Choice):
    """What became of a signed batch."""

    ACCEPTED = "accepted"
    PARKED = "parked"
    REFUSED = "refused"


class StreamState(Choice):
    """Whether a stream still takes batches."""

    OPEN = "open"
    HELD = "held"
    FINAL = "final"


class DisputeState(Choice):
    """Where a dispute stands."""

    OPEN = "open"
    RULED = "ruled"
    WITHDRAWN = "withdrawn"


class WitnessKind(Choice):
    """Who saw what the meter says."""

    CONTROL_PLANE = "control_plane"
    TENANT = "tenant"
