"""What to do with the next signed batch of a stream.

A stream is one unbroken chain: epochs count up, sequence numbers count from 0 within an epoch, and
each batch names the digest of the one before. The rules never guess: a batch fits, waits for the
one before it, or is refused with a reason that says what to do.
"""

from dataclasses import dataclass
from enum import StrEnum

from leases.domain.states import StreamState

FIRST_SEQ = 0
MAX_AHEAD = 512
"""How far beyond the next number a batch may be parked; more would let a node fill our disk."""
MAX_PARKED = MAX_AHEAD
"""How many batches of a stream may wait at once, in whatever epochs they say they are."""


class Step(StrEnum):
    """What the rules say about a batch."""

    ACCEPT = "accept"
    PARK = "park"
    REFUSE = "refuse"
    EQUIVOCATION = "equivocation"


@dataclass(frozen=True)
class Position:
    """Where a stream stands: the number it waits for and the digest that number must name."""

    state: StreamState
    epoch: int
    next_seq: int
    head: bytes | None


@dataclass(frozen=True)
class Link:
    """A batch's place in the chain, as it claims."""

    epoch: int
    seq: int
    prev: bytes | None
    digest: bytes


@dataclass(frozen=True)
class Decision:
    """A step, and for a refusal the stable code of why."""

    step: Step
    reason: str = ""


def decide(
    position: Position,
    link: Link,
    *,
    occupant: bytes | None,
    prev_is_ours: bool,
    parked: int,
) -> Decision:
    """Return what becomes of a batch that this stream has not stored yet.

    `occupant` is the digest of the batch that already holds this (epoch, seq), accepted or
    parked; `prev_is_ours` says whether `link.prev` is a digest in this stream's accepted chain;
    `parked` counts the batches that wait. The same bytes sent again never come here: they get the
    receipt they had.
    """
    if occupant is not None and occupant != link.digest:
        return Decision(Step.EQUIVOCATION, "other_batch_with_this_number")
    if position.state == StreamState.HELD:
        return Decision(Step.REFUSE, "stream_held")
    if position.state == StreamState.FINAL:
        return Decision(Step.REFUSE, "stream_final")
    if link.epoch < position.epoch:
        return Decision(Step.REFUSE, "epoch_over")
    if link.epoch == position.epoch:
        decision = _in_this_epoch(position, link)
    else:
        decision = _in_next_epoch(position, link, prev_is_ours=prev_is_ours)
    if decision.step is Step.PARK and parked >= MAX_PARKED:
        return Decision(Step.REFUSE, "too_many_waiting")
    return decision


def after(position: Position, link: Link, *, final: bool) -> Position:
    """Return where a stream stands once `link` took its place."""
    return Position(
        StreamState.FINAL if final else position.state, link.epoch, link.seq + 1, link.digest
    )


def _in_this_epoch(position: Position, link: Link) -> Decision:
    if link.seq < position.next_seq:
        return Decision(Step.REFUSE, "number_passed")
    if link.seq >= position.next_seq + MAX_AHEAD:
        return Decision(Step.REFUSE, "too_far_ahead")
    if link.seq > position.next_seq:
        return Decision(Step.PARK)
    if link.prev != position.head:
        return Decision(Step.REFUSE, "chain_broken")
    return Decision(Step.ACCEPT)


def _in_next_epoch(position: Position, link: Link, *, prev_is_ours: bool) -> Decision:
    """Judge a new epoch: it begins after any doubt of the agent's and names a receipted batch.

    That need not be our head: a receipt lost in a crash leaves us further than the agent knows.
    """
    if link.epoch > position.epoch + MAX_AHEAD or link.seq >= MAX_AHEAD:
        return Decision(Step.REFUSE, "too_far_ahead")
    if link.seq != FIRST_SEQ:
        return Decision(Step.PARK)
    if link.prev is None and position.head is None:
        return Decision(Step.ACCEPT)
    if not prev_is_ours:
        return Decision(Step.REFUSE, "unknown_predecessor")
    return Decision(Step.ACCEPT)
