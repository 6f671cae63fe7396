"""What follows from a reading that differs from the promise, by rule of the terms."""

from collections.abc import Iterable
from dataclasses import dataclass

IDENTITY_FIELDS = frozenset({"device_class", "unit_count", "unit_kind"})
"""Fields that say what was delivered, not how well: another class, or a device less."""
CONTRADICTS = frozenset({"different", "short"})


@dataclass(frozen=True)
class Compared:
    """One field's verdict, as the rules of the listing's kind gave it."""

    field: str
    verdict: str


@dataclass(frozen=True)
class Consequence:
    """Whether the window's line is contested by itself, and because of which fields."""

    contested: bool
    fields: tuple[str, ...]

    @property
    def statement(self) -> str:
        """The claim as the exchange writes it into the dispute."""
        return (
            "The signed reading contradicts what the terms promised in "
            f"{', '.join(self.fields)}. By the terms nothing of this line stands unless the "
            "provider shows otherwise."
        )


def consequence_of(verdicts: Iterable[Compared]) -> Consequence:
    """Return what a reading's verdicts lead to.

    A field nobody measured leads to nothing: no reading is neither a match nor a breach.
    """
    broken = tuple(
        item.field
        for item in verdicts
        if item.field in IDENTITY_FIELDS and item.verdict in CONTRADICTS
    )
    return Consequence(contested=bool(broken), fields=broken)


def summary_word(verdicts: Iterable[Compared]) -> str:
    """Return the one word a row of readings shows: the worst verdict it holds."""
    seen = {item.verdict for item in verdicts}
    for word in ("different", "short"):
        if word in seen:
            return word
    measured = seen & {"match", "better"}
    return "match" if measured else "not_measured"
