"""What a challenge can be for, where it stands, and what can come of it."""

from fabric.lib.types import Choice


class ChallengePurpose(Choice):
    """Why the machine is asked."""

    ADMISSION = "admission"
    READINESS = "readiness"
    RECHECK = "recheck"


class ChallengeState(Choice):
    """How far the exchange between server and agent has come."""

    ISSUED = "issued"
    STARTED = "started"
    COMMITTED = "committed"
    ANSWERED = "answered"
    JUDGED = "judged"
    EXPIRED = "expired"


OPEN_CHALLENGE_STATES = (
    ChallengeState.ISSUED,
    ChallengeState.STARTED,
    ChallengeState.COMMITTED,
    ChallengeState.ANSWERED,
)

CHALLENGE_MOVES: dict[ChallengeState, frozenset[ChallengeState]] = {
    ChallengeState.ISSUED: frozenset({ChallengeState.STARTED, ChallengeState.EXPIRED}),
    ChallengeState.STARTED: frozenset({ChallengeState.COMMITTED, ChallengeState.EXPIRED}),
    ChallengeState.COMMITTED: frozenset({ChallengeState.ANSWERED, ChallengeState.EXPIRED}),
    ChallengeState.ANSWERED: frozenset({ChallengeState.JUDGED, ChallengeState.EXPIRED}),
    ChallengeState.JUDGED: frozenset(),
    ChallengeState.EXPIRED: frozenset(),
}


class Verdict(Choice):
    """What the judge found; not being able to judge is a result of its own."""

    PASSED = "passed"
    FAILED = "failed"
    CANNOT_JUDGE = "cannot_judge"
