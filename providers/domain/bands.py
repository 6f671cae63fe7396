"""Reference ranges: which one a figure is judged by, and whether it lies inside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabric.lib.types import Choice


class Place(Choice):
    """Where a figure lies; too good is as suspicious as too slow."""

    TOO_SLOW = "too_slow"
    INSIDE = "inside"
    TOO_GOOD = "too_good"


@dataclass(frozen=True)
class Band:
    """The range of one figure of a class, for one device, with how it came about."""

    figure: str
    low: float
    high: float
    unit: str
    source: str
    sample_size: int
    instruction_set: str = ""
    per_core: bool = False
    fastest: float | None = None

    @property
    def expected(self) -> float:
        """What to size work by: the fastest run we saw, or the middle where none is stated."""
        return (self.low + self.high) / 2 if self.fastest is None else self.fastest

    def scaled(self, cores: int) -> "Band":
        """Return the range for a device with this many cores, where it is stated per core."""
        if not self.per_core:
            return self
        return Band(
            self.figure,
            self.low * cores,
            self.high * cores,
            self.unit,
            self.source,
            self.sample_size,
            self.instruction_set,
            fastest=None if self.fastest is None else self.fastest * cores,
        )

    def place(self, value: float) -> Place:
        """Return where `value` lies; both ends belong to the range."""
        if value < self.low:
            return Place.TOO_SLOW
        return Place.TOO_GOOD if value > self.high else Place.INSIDE


def read_bands(data: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, tuple[Band, ...]]:
    """Return the ranges a class's data states, by figure; ValueError where one is upside down."""
    bands = {
        figure: tuple(
            Band(
                figure=figure,
                low=float(row["low"]),
                high=float(row["high"]),
                unit=str(row["unit"]),
                source=str(row["source"]),
                sample_size=int(row["sample_size"]),
                instruction_set=str(row.get("instruction_set", "")),
                per_core=bool(row.get("per_core", False)),
                fastest=float(row["fastest"]) if "fastest" in row else None,
            )
            for row in rows
        )
        for figure, rows in data.items()
    }
    for rows in bands.values():
        for band in rows:
            if not 0 < band.low < band.high:
                raise ValueError(f"the range of {band.figure} is upside down")
    return bands


def select_band(
    bands: Mapping[str, Sequence[Band]], figure: str, *, instruction_set: str, cores: int
) -> Band | None:
    """Return the range to judge `figure` by: the one for this instruction set, else the general.

    None means that nobody has measured such a machine: it cannot be judged.
    """
    rows = bands.get(figure, ())
    for wanted in (instruction_set, ""):
        for band in rows:
            if band.instruction_set == wanted:
                return band.scaled(cores)
    return None
