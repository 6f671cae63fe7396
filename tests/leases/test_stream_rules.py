"""What becomes of the next signed batch."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leases.domain.states import StreamState
from leases.domain.streams import (
    MAX_AHEAD,
    MAX_PARKED,
    Decision,
    Link,
    Position,
    Step,
    after,
    decide,
)

NEW = Position(StreamState.OPEN, epoch=0, next_seq=0, head=None)


def digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


FIRST = digest_of("0/0")
SECOND = digest_of("0/1")
RUNNING = Position(StreamState.OPEN, epoch=0, next_seq=2, head=SECOND)


def judge(
    position: Position,
    link: Link,
    *,
    occupant: bytes | None = None,
    prev_is_ours: bool = True,
    parked: int = 0,
) -> Decision:
    return decide(position, link, occupant=occupant, prev_is_ours=prev_is_ours, parked=parked)


def test_batches_in_order_are_accepted_and_move_the_stream() -> None:
    """R-C4 (agent): a chain that goes on is accepted link by link."""
    first = Link(0, 0, None, FIRST)
    assert judge(NEW, first) == Decision(Step.ACCEPT)
    moved = after(NEW, first, final=False)
    assert moved == Position(StreamState.OPEN, 0, 1, FIRST)
    assert judge(moved, Link(0, 1, FIRST, SECOND)) == Decision(Step.ACCEPT)


def test_a_gap_parks_the_batch() -> None:
    """R-C4 (agent): a batch ahead of the next number waits for the one before it."""
    assert judge(RUNNING, Link(0, 3, digest_of("0/2"), digest_of("0/3"))).step is Step.PARK


@pytest.mark.parametrize("link", [Link(0, 3, FIRST, digest_of("x")), Link(9, 9, FIRST, FIRST)])
def test_only_so_many_batches_wait_in_whatever_epochs(link: Link) -> None:
    """R-C4 (agent): a node cannot fill our disk with batches whose turn never comes."""
    assert judge(RUNNING, link, parked=MAX_PARKED - 1).step is Step.PARK
    assert judge(RUNNING, link, parked=MAX_PARKED) == Decision(Step.REFUSE, "too_many_waiting")


def test_two_batches_under_one_number_are_equivocation_whatever_the_state() -> None:
    """R-C4 (agent): other bytes under a number that is taken prove two truths."""
    for state in StreamState:
        position = Position(state, epoch=0, next_seq=2, head=SECOND)
        decision = judge(position, Link(0, 1, FIRST, digest_of("other")), occupant=SECOND)
        assert decision == Decision(Step.EQUIVOCATION, "other_batch_with_this_number")


@pytest.mark.parametrize(
    ("position", "link", "prev_is_ours", "reason"),
    [
        (RUNNING, Link(0, 2, FIRST, digest_of("x")), True, "chain_broken"),
        (RUNNING, Link(0, 2, None, digest_of("x")), True, "chain_broken"),
        (RUNNING, Link(0, 1, FIRST, digest_of("x")), True, "number_passed"),
        (RUNNING, Link(0, 2 + MAX_AHEAD, SECOND, digest_of("x")), True, "too_far_ahead"),
        (RUNNING, Link(1, 0, digest_of("?"), digest_of("x")), False, "unknown_predecessor"),
        (RUNNING, Link(1, 0, None, digest_of("x")), False, "unknown_predecessor"),
        (RUNNING, Link(2**40, 0, SECOND, digest_of("x")), True, "too_far_ahead"),
        (
            Position(StreamState.OPEN, 3, 1, SECOND),
            Link(2, 9, FIRST, digest_of("x")),
            True,
            "epoch_over",
        ),
        (
            Position(StreamState.HELD, 0, 2, SECOND),
            Link(0, 2, SECOND, digest_of("x")),
            True,
            "stream_held",
        ),
        (
            Position(StreamState.FINAL, 0, 2, SECOND),
            Link(0, 2, SECOND, digest_of("x")),
            True,
            "stream_final",
        ),
    ],
)
def test_a_batch_that_cannot_fit_is_refused_with_its_reason(
    position: Position, link: Link, prev_is_ours: bool, reason: str
) -> None:
    """R-C4 (agent): each way not to fit has a code of its own."""
    decision = judge(position, link, prev_is_ours=prev_is_ours)
    assert decision == Decision(Step.REFUSE, reason)


def test_a_new_epoch_names_a_batch_we_receipted() -> None:
    """R-C4 (agent): after a crash the agent goes on from the last receipt it kept."""
    assert judge(RUNNING, Link(1, 0, FIRST, digest_of("1/0"))) == Decision(Step.ACCEPT)
    assert judge(NEW, Link(4, 0, None, digest_of("4/0"))) == Decision(Step.ACCEPT)


def test_the_final_batch_closes_the_stream() -> None:
    """R-C4 (agent): nothing follows a final batch."""
    closed = after(RUNNING, Link(0, 2, SECOND, digest_of("0/2")), final=True)
    assert closed.state == StreamState.FINAL
    assert judge(closed, Link(0, 3, digest_of("0/2"), digest_of("0/3"))).reason == "stream_final"


@given(order=st.permutations(range(8)))
def test_any_order_of_delivery_ends_with_the_same_chain(order: list[int]) -> None:
    """R-C4 (agent): reordered batches are parked and drained; the chain does not depend on luck."""
    digests = [digest_of(str(number)) for number in range(8)]
    links = [
        Link(0, number, digests[number - 1] if number else None, digests[number])
        for number in range(8)
    ]
    position, parked = NEW, {}
    for number in order:
        decision = judge(position, links[number])
        if decision.step is Step.PARK:
            parked[number] = links[number]
            continue
        assert decision.step is Step.ACCEPT
        position = after(position, links[number], final=False)
        while position.next_seq in parked:
            link = parked.pop(position.next_seq)
            assert judge(position, link).step is Step.ACCEPT
            position = after(position, link, final=False)
    assert position == Position(StreamState.OPEN, 0, 8, digests[-1])
    assert not parked
