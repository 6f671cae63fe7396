"""The picture of a node's units: which slots are taken, by what, and which are free."""

from collections.abc import Iterable
from dataclasses import dataclass

_SLOT, _WHOLE, _GAP = 12.0, 29.0, 4.0
# kind of hold → (class of the box, letter in it, word in the sentence)
_LOOKS = {
    "lease": ("leased", "L", "leased"),
    "pool": ("leased", "P", "in a pool"),
    "reservation": ("drain", "R", "reserved"),
    "maintenance": ("own", "M", "in maintenance"),
    "fence": ("held", "!", "fenced"),
}


@dataclass(frozen=True)
class Taken:
    """Slots of a device that a live hold keeps."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Box:
    """One rectangle of the picture."""

    x: float
    width: float
    css: str
    letter: str

    @property
    def middle(self) -> float:
        """Where the letter stands."""
        return self.x + self.width / 2


@dataclass(frozen=True)
class Strip:
    """The picture of one node and the sentence that says the same."""

    boxes: list[Box]
    width: float
    sentence: str
    free: int
    used: int
    total: int


def draw_strip(devices: Iterable[tuple[int, list[Taken]]], *, rentable: bool) -> Strip:
    """Draw a node's devices, each given as (slots, what is taken); whole slots, left to right.

    What is free on a node that may not be let is drawn as held.
    """
    boxes: list[Box] = []
    counts: dict[str, int] = {}
    x, total, free, used = 0.5, 0, 0, 0
    for slots, taken in devices:
        width = _WHOLE if slots == 1 else slots * _SLOT
        for start, end, kind in _parts(slots, taken):
            size = (end - start) / slots * width
            if kind == "free" and not rentable:
                css, letter, word = "held", "!", "not offered"
            elif kind == "free":
                css, letter, word = "free", "", "free"
            else:
                css, letter, word = _LOOKS.get(kind, ("own", "?", kind))
            counts[word] = counts.get(word, 0) + end - start
            boxes.append(Box(round(x, 1), round(size - 1, 1), css, letter))
            x += size
            total += end - start
            free += end - start if word == "free" else 0
            used += end - start if css == "leased" else 0
        x += _GAP
    sentence = ", ".join(f"{count} {word}" for word, count in counts.items())
    return Strip(boxes, round(x, 1), sentence or "no units yet", free, used, total)


def _parts(slots: int, taken: list[Taken]) -> Iterable[tuple[int, int, str]]:
    """Walk over a device's slots, taken parts and single free slots in between."""
    at = 0
    for part in sorted(taken, key=lambda one: one.start):
        yield from ((slot, slot + 1, "free") for slot in range(at, part.start))
        yield part.start, part.end, part.kind
        at = part.end
    yield from ((slot, slot + 1, "free") for slot in range(at, slots))
