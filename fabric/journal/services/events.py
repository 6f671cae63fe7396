"""Writing down what happened, in the transaction in which it happened."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from fabric.journal.models import Event


def record_event(
    *,
    kind: str,
    subject: str,
    actor: str,
    now: datetime,
    organisations: Iterable[str] = (),
    data: Mapping[str, Any] | None = None,
) -> Event:
    """Append an event to the feed.

    `kind` is noun.past-tense-verb (`lease.ended`); `subject` and `organisations` are public ids,
    the latter those of the tenants who may read it.
    """
    return Event.objects.create(
        kind=kind,
        subject=subject,
        actor=actor,
        organisations=list(organisations),
        data=dict(data or {}),
        at=now,
    )
