"""ETags: which version of an object a caller has read, and which one it means to edit."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.utils.encoders import JSONEncoder

from fabric.lib.errors import DomainError


class PreconditionRequired(DomainError):
    """An edit that must name the version it edits came without `If-Match`."""

    code = "PRECONDITION_REQUIRED"
    status = 428


class PreconditionFailed(DomainError):
    """The object has changed since the caller read it."""

    code = "PRECONDITION_FAILED"
    status = 412


def etag_of(representation: Mapping[str, Any]) -> str:
    """Return the strong entity tag of an object as the API shows it."""
    text = json.dumps(representation, sort_keys=True, cls=JSONEncoder)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def require_match(request: Request, representation: Mapping[str, Any]) -> None:
    """Raise unless `If-Match` names the present version, given as the API shows it now."""
    given = request.headers.get("If-Match", "")
    if not given:
        raise PreconditionRequired(
            "Send the ETag of the version you edit in If-Match.",
            suggestion="Read the object first; its reply carries the ETag.",
        )
    if given.strip() != "*" and etag_of(representation) not in _tags(given):
        raise PreconditionFailed("This has changed since you read it; read it again.")


def is_unchanged(request: Request, etag: str) -> bool:
    """Return whether the caller already has this version (`If-None-Match`)."""
    given = request.headers.get("If-None-Match", "")
    return bool(given) and etag in {tag.removeprefix("W/") for tag in _tags(given)}


def _tags(header: str) -> set[str]:
    return {tag.strip() for tag in header.split(",")}
