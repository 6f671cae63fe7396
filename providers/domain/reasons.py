"""Why a machine is held back: a code, what was claimed, what was measured, and what to do."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Reason:
    """One thing that holds a node back; `code` is stable, `remedy` says what to do next."""

    code: str
    field: str
    promised: Any
    measured: Any
    detail: str
    remedy: str

    def as_json(self) -> dict[str, Any]:
        """Return the reason as it is stored and shown."""
        return asdict(self)
