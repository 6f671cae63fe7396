"""Whether silence means anything yet."""

from datetime import datetime, timedelta

from fabric.lib.types import Choice


class Liveness(Choice):
    """How a node's silence is read."""

    ALIVE = "alive"
    SUSPECT = "suspect"
    DEAD = "dead"
    NEVER_HEARD = "never_heard"


def read_liveness(
    last_beat_at: datetime | None,
    *,
    now: datetime,
    suspect_after_seconds: int,
    dead_after_seconds: int,
    listening_since: datetime | None = None,
) -> Liveness:
    """Return what the silence since the last beat means.

    Only silence while we listened counts: `listening_since` is when the exchange itself came back.
    """
    if last_beat_at is None:
        return Liveness.NEVER_HEARD
    heard = max(last_beat_at, listening_since) if listening_since else last_beat_at
    silence = now - heard
    if silence > timedelta(seconds=dead_after_seconds):
        return Liveness.DEAD
    if silence > timedelta(seconds=suspect_after_seconds):
        return Liveness.SUSPECT
    return Liveness.ALIVE
