"""What a measurement returns, and how candidates are compared fairly."""

import json
import operator
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
FEWEST_ROUNDS = 3


class MeasurementFailed(Exception):
    """Nothing could be measured; the message says why and what to do."""


@dataclass(frozen=True)
class Goal:
    """A bound that a figure should keep."""

    name: str
    value: float
    op: str
    goal: float

    @property
    def met(self) -> bool:
        """Tell whether the value keeps the bound."""
        return _OPERATORS[self.op](self.value, self.goal)


@dataclass(frozen=True)
class Outcome:
    """Everything a measurement found; figures and baselines may be numbers or small objects."""

    figures: Mapping[str, Any]
    baselines: Mapping[str, Any] = field(default_factory=dict)
    ratios: Mapping[str, float] = field(default_factory=dict)
    goals: tuple[Goal, ...] = ()

    @property
    def met(self) -> bool:
        """Tell whether every goal is met."""
        return all(goal.met for goal in self.goals)

    def last_line(self, kind: str, name: str) -> str:
        """Return the one JSON object that programs read."""
        return json.dumps(
            {
                kind: name,
                "figures": dict(self.figures),
                "baselines": dict(self.baselines),
                "ratios": dict(self.ratios),
                "goals": [
                    {
                        "name": goal.name,
                        "value": goal.value,
                        "op": goal.op,
                        "goal": goal.goal,
                        "met": goal.met,
                    }
                    for goal in self.goals
                ],
                "met": self.met,
            },
            allow_nan=False,
        )


def alternate(
    candidates: Mapping[str, Callable[[], float]], *, rounds: int = FEWEST_ROUNDS
) -> dict[str, float]:
    """Measure every candidate once a round, in turn, and return each one's median.

    Side by side, so that a machine that slows down halfway slows all of them.
    """
    if rounds < FEWEST_ROUNDS:
        raise ValueError(f"a median wants at least {FEWEST_ROUNDS} rounds")
    readings: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, measure in candidates.items():
            readings[name].append(measure())
    return {name: statistics.median(values) for name, values in readings.items()}
