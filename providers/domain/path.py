"""The path from a token to metered capacity, and how long each step took."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

STEPS = ("register", "install", "verify", "benchmark", "admit", "schedule", "meter", "monitor")


@dataclass(frozen=True)
class Step:
    """One step: when it was reached, how long after the first and after the one before."""

    name: str
    state: str
    at: datetime | None
    since_start: timedelta | None
    took: timedelta | None


def walk_path(reached: Sequence[datetime | None]) -> list[Step]:
    """Return the eight steps with `done`, `now` or `next`, given when each was reached.

    A step counts only when those before it do: a machine that is admitted again is not measured
    from its first day. The clock starts at the first step.
    """
    steps: list[Step] = []
    start = reached[0]
    before, waits = start, False
    for name, at in zip(STEPS, reached, strict=True):
        if at is None or waits or start is None or before is None:
            steps.append(Step(name, "next" if waits else "now", None, None, None))
            waits = True
            continue
        reached_at = max(at, before)
        steps.append(Step(name, "done", reached_at, reached_at - start, reached_at - before))
        before = reached_at
    return steps
