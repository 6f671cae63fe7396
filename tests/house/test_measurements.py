"""`bin/bench` and `bin/simulate`: one contract for every measurement."""

import json
import subprocess
import sys
from functools import partial

import pytest

from deploy.local.venv import ROOT
from simulator.measure import Goal, Outcome, alternate


def _bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    call = (
        f"import sys; from simulator.doors import main; sys.exit(main('bench', {list(arguments)}))"
    )
    return subprocess.run(
        [sys.executable, "-c", call],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_last_line_is_one_object_with_everything_in_it() -> None:
    done = _bench("signatures")
    told = json.loads(done.stdout.splitlines()[-1])
    assert set(told) == {"bench", "figures", "baselines", "ratios", "goals", "met"}
    assert told["bench"] == "signatures"
    assert told["figures"]["requests_per_s"] > 0
    assert told["ratios"]["request_to_ed25519"] == pytest.approx(
        told["figures"]["requests_per_s"] / told["baselines"]["ed25519_per_s"]
    )
    for goal in told["goals"]:
        assert set(goal) == {"name", "value", "op", "goal", "met"}
    assert done.returncode == (0 if told["met"] else 1)


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("signatures", "twice")])
def test_an_unknown_name_lists_the_known_ones(arguments: tuple[str, ...]) -> None:
    done = _bench(*arguments)
    assert done.returncode == 2
    assert "signatures" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("value", "op", "goal", "met"),
    [
        (1, ">=", 1, True),
        (1, ">", 1, False),
        (1, "<=", 1, True),
        (1, "<", 1, False),
        (1, "==", 2, False),
    ],
)
def test_a_goal_is_met_or_not(value: float, op: str, goal: float, met: bool) -> None:
    outcome = Outcome(figures={"x": value}, goals=(Goal("x", value, op, goal),))
    assert outcome.met is met
    assert json.loads(outcome.last_line("simulation", "y"))["met"] is met


def test_candidates_take_turns_and_the_median_counts() -> None:
    order: list[str] = []
    readings = {"a": iter([1.0, 100.0, 2.0]), "b": iter([5.0, 4.0, 6.0])}

    def measure(name: str) -> float:
        order.append(name)
        return next(readings[name])

    medians = alternate({name: partial(measure, name) for name in ("a", "b")})
    assert order == ["a", "b"] * 3
    assert medians == {"a": 2.0, "b": 5.0}


def test_too_few_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 3"):
        alternate({}, rounds=2)
