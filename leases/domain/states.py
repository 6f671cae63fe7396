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


def can_move(before: LeaseState, after: LeaseState) -> bool:
    """Return whether a lease may go from one state to the other."""
    return after in MOVES[before]


class WindowState(Choice):
    """What became of a window that was paid for in advance."""

    RESERVED = "reserved"
    METERED = "metered"
    VOID = "void"


class EndReason(Choice):
    """Why a lease came to its end."""

    BUYER_ENDED = "buyer_ended"
    TERM_REACHED = "term_reached"
    FUNDS_EXHAUSTED = "funds_exhausted"
    NODE_FAILED = "node_failed"
    NOT_READY_IN_TIME = "not_ready_in_time"
    HOLD_LAPSED = "hold_lapsed"
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


class Side(Choice):
    """Who claims that a reading is wrong; the exchange does so by rule of the terms."""

    BUYER = "buyer"
    PROVIDER = "provider"
    EXCHANGE = "exchange"


class Outcome(Choice):
    """What became of a claim; a line of which nothing stands is a claim upheld in full."""

    UPHELD = "upheld"
    PARTLY_UPHELD = "partly_upheld"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


WHOLE_BPS = 10_000


def outcome_of(state: DisputeState, stands_bps: int | None) -> Outcome | None:
    """Return the outcome in words, or None while the dispute is open."""
    if state == DisputeState.WITHDRAWN:
        return Outcome.WITHDRAWN
    if state == DisputeState.OPEN or stands_bps is None:
        return None
    if stands_bps == 0:
        return Outcome.UPHELD
    return Outcome.REJECTED if stands_bps == WHOLE_BPS else Outcome.PARTLY_UPHELD


class WitnessKind(Choice):
    """Who saw what the meter says."""

    CONTROL_PLANE = "control_plane"
    TENANT = "tenant"
