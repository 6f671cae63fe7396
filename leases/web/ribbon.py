"""Where a lease stands, in words that always say whether it is charging."""

from dataclasses import dataclass

from leases.domain.states import LeaseState
from leases.models import Lease

_REACHED = {
    LeaseState.PROVISIONING: 1,
    LeaseState.ACTIVE: 2,
    LeaseState.INTERRUPTED: 2,
    LeaseState.ENDING: 3,
    LeaseState.ENDED: 4,
}


@dataclass(frozen=True)
class Step:
    """One part of the ribbon; `note` says whether it charges, `icon` may be empty."""

    word: str
    note: str
    icon: str
    is_current: bool


def draw_ribbon(lease: Lease, *, hourly: str) -> list[Step]:
    """Return the steps from funded to settled, with the current one marked."""
    state = LeaseState(lease.state)
    if state is LeaseState.FAILED:
        return [
            Step("Funded", "not charging", "met", is_current=False),
            Step("Failed", "nothing charged, all money is back", "missed", is_current=True),
        ]
    words = [
        ("Funded", "not charging"),
        ("Starting", _starting(lease)),
        _running(lease, state, hourly),
        ("Ending", "not charging"),
        (
            "Settled",
            "all returned" if state is LeaseState.ENDED else "after the last dispute window",
        ),
    ]
    reached = _REACHED[state]
    return [
        Step(word, note, _icon(place, reached, state, lease), is_current=place == reached)
        for place, (word, note) in enumerate(words)
    ]


def _starting(lease: Lease) -> str:
    if lease.ready_at is None:
        return "not charging"
    took = round((lease.ready_at - lease.created_at).total_seconds())
    return f"not charging, took {took} s"


def _running(lease: Lease, state: LeaseState, hourly: str) -> tuple[str, str]:
    if state is LeaseState.INTERRUPTED:
        return "Interrupted", "not charging"
    if state in {LeaseState.ENDING, LeaseState.ENDED}:
        return "Running", "over, not charging" if lease.ready_at else "never ran, not charged"
    return "Running", f"charging {hourly} per hour"


def _icon(place: int, reached: int, state: LeaseState, lease: Lease) -> str:
    if place == 2 and state is LeaseState.ACTIVE:
        return "charge"
    if place == 2 and state is LeaseState.INTERRUPTED:
        return "short"
    if place in {1, 2} and place < reached and lease.ready_at is None:
        return "unknown"
    if place == reached:
        return "met" if state is LeaseState.ENDED else "wait"
    return "met" if place < reached else ""
