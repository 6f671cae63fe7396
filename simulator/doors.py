"""`bin/bench NAME` and `bin/simulate NAME`: find the measurement of that name and run it.

A measurement is a module in `simulator/benches` or `simulator/simulations` with a docstring and
`run() -> Outcome`. The last line printed is one JSON object; the exit status is 0 when every goal
is met, 1 when one is not, 2 when there is no such name.
"""

import importlib
import pkgutil
import sys
from types import ModuleType

from simulator import benches, simulations
from simulator.measure import MeasurementFailed, Outcome

_DOORS: dict[str, tuple[str, ModuleType]] = {
    "bench": ("bin/bench", benches),
    "simulation": ("bin/simulate", simulations),
}


def main(kind: str, arguments: list[str]) -> int:
    """Run the measurement that was asked for and return the exit status."""
    command, package = _DOORS[kind]
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    if len(arguments) != 1 or arguments[0] not in names:
        sys.stderr.write(f"usage: {command} NAME\n")
        for name in names:
            about = (_load(package, name).__doc__ or "").strip().splitlines()[0]
            sys.stderr.write(f"  {name:<16} {about}\n")
        return 2
    (name,) = arguments
    try:
        outcome: Outcome = _load(package, name).run()
    except MeasurementFailed as failure:
        sys.stderr.write(f"{command} {name}: {failure}\n")
        return 1
    for figure, value in {**outcome.figures, **outcome.baselines, **outcome.ratios}.items():
        print(f"{figure:<40} {value:,.2f}" if isinstance(value, float) else f"{figure:<40} {value}")
    for goal in outcome.goals:
        verdict = "met" if goal.met else "MISSED"
        print(f"goal: {goal.name} {goal.value:,.2f} {goal.op} {goal.goal:,.2f}: {verdict}")
    print(outcome.last_line(kind, name), flush=True)
    return 0 if outcome.met else 1


def _load(package: ModuleType, name: str) -> ModuleType:
    return importlib.import_module(f"{package.__name__}.{name}")
