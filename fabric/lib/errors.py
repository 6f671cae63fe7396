"""Refusals: expected failures with a stable code, for programs and for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class FieldError:
    """One field that was refused: where, why, and what would be accepted."""

    field: str
    reason: str
    accepted: str
    code: str = "INVALID"


class DomainError(Exception):
    """Base of all refusals. `code` is the contract; the message is safe to show to a person.

    `status` is the HTTP status an interface answers with: 400 bad input, 402 not enough funds,
    403 not allowed, 404 not visible, 409 wrong state or lost race, 422 conflicting reuse.
    """

    code: ClassVar[str] = "REFUSED"
    status: ClassVar[int] = 409
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        errors: tuple[FieldError, ...] = (),
        suggestion: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.errors = errors
        self.suggestion = suggestion
        self.metadata = dict(metadata or {})


class InvalidInput(DomainError):
    """Input that breaks a rule of a field; carries one `FieldError` per broken field."""

    code = "INVALID_INPUT"
    status = 400


class NotVisible(DomainError):
    """The object does not exist for this actor; never says whether it exists for another."""

    code = "NOT_FOUND"
    status = 404


class NotAllowed(DomainError):
    """The actor sees the object but may not do this to it."""

    code = "NOT_ALLOWED"
    status = 403


class WrongState(DomainError):
    """The object is in a state from which this act does not lead anywhere."""

    code = "WRONG_STATE"
    status = 409
