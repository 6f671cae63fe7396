"""Small types that several apps share."""

from enum import StrEnum


class Choice(StrEnum):
    """An enum of text values that a model field can offer."""

    @classmethod
    def choices(cls) -> list[tuple[str, str]]:
        """Return (value, label) pairs for a model field."""
        return [(item.value, item.value.replace("_", " ")) for item in cls]
