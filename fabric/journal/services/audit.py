"""Writing down who changed what and why."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fabric.journal.models import AuditEntry


def record_audit(
    *,
    actor: str,
    action: str,
    subject: str,
    now: datetime,
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Append an audit entry; `before` and `after` hold only the fields that changed."""
    return AuditEntry.objects.create(
        actor=actor,
        action=action,
        subject=subject,
        reason=reason,
        before=None if before is None else dict(before),
        after=None if after is None else dict(after),
        at=now,
    )
