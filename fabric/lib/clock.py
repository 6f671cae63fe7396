"""The clock, read only by views, tasks and commands; below them `now` is an argument."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the current instant in UTC."""
    return datetime.now(tz=UTC)


def window_index(at: datetime, *, window_seconds: int) -> int:
    """Return the index of the half-open window that holds `at`: floor(epoch seconds / length)."""
    return int(at.timestamp()) // window_seconds


def window_bounds(index: int, *, window_seconds: int) -> tuple[datetime, datetime]:
    """Return start (inclusive) and end (exclusive) of a window."""
    start = index * window_seconds
    return (
        datetime.fromtimestamp(start, tz=UTC),
        datetime.fromtimestamp(start + window_seconds, tz=UTC),
    )
