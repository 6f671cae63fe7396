"""Page-shaped and shared reads of listings."""

from typing import Any

from listings.models import Revision


def promise_of(revision: Revision) -> dict[str, Any]:
    """Return what a revision promises: field → value, in the units its kind's table names."""
    promise: dict[str, Any] = revision.body["promise"]
    return promise
