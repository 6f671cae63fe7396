"""The agent's one database: streams, signed batches until their receipts, and workloads.

SQLite with `synchronous=FULL`: a batch is on the disk before it is sent for the first time. Batches
are stored as the exact bytes that were signed and are never signed again.
"""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SCHEMA = """
create table if not exists workloads (
    lease text primary key,
    item text not null,
    state text not null,
    detail text not null default '',
    handle text,
    failures integer not null default 0,
    retry_at real not null default 0
);
create table if not exists meters (
    lease text primary key,
    epoch integer not null default 0,
    seq integer not null default 0,
    head text,
    receipted text,
    starts_ns integer,
    cursor_ns integer,
    mono_ns integer not null default 0,
    boot text not null default '',
    instance text not null default '',
    ready_ns integer not null default 0,
    samples integer not null default 0,
    observed text not null default '{}',
    finished integer not null default 0,
    held text not null default '',
    doubts integer not null default 0
);
create table if not exists batches (
    lease text not null,
    epoch integer not null,
    seq integer not null,
    digest text not null,
    body text not null,
    envelope blob not null,
    state text not null,
    receipt text,
    primary key (lease, epoch, seq)
);
create index if not exists batches_to_send on batches (state) where state = 'queued';
"""
QUEUED, RECEIPTED, SUPERSEDED, DEAD = "queued", "receipted", "superseded", "dead"
KEPT_RECEIPTS = 5_000


@dataclass(frozen=True)
class StoredBatch:
    """A batch as it was signed."""

    lease: str
    epoch: int
    seq: int
    digest: str
    body: dict[str, Any]
    envelope: bytes


class Outbox:
    """One connection for all threads; every change is one short transaction."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(
            path, timeout=10, isolation_level=None, check_same_thread=False
        )
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("pragma journal_mode=wal")
        self._connection.execute("pragma synchronous=full")
        self._connection.executescript(_SCHEMA)
        path.chmod(0o600)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything inside is written, or nothing."""
        with self._lock:
            self._connection.execute("begin immediate")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def queued(self, limit: int = 200) -> list[StoredBatch]:
        """Return batches that wait for a receipt, each lease's in its order."""
        rows = self.rows(
            "select * from batches where state = 'queued' order by lease, epoch, seq limit ?", limit
        )
        return [_stored(row) for row in rows]

    def queued_count(self, lease: str | None = None) -> int:
        """Return how many batches wait, of one lease or of all."""
        if lease is None:
            return int(self.rows("select count(*) from batches where state = 'queued'")[0][0])
        query = "select count(*) from batches where state = 'queued' and lease = ?"
        return int(self.rows(query, lease)[0][0])

    def batches_of(self, lease: str) -> list[StoredBatch]:
        """Return every batch of a lease that is still kept."""
        rows = self.rows("select * from batches where lease = ? order by epoch, seq", lease)
        return [_stored(row) for row in rows]

    def purge(self, keep: int = KEPT_RECEIPTS) -> None:
        """Forget the oldest receipted batches; what waits is never forgotten."""
        with self.transaction() as connection:
            connection.execute(
                "delete from batches where state <> 'queued' and rowid not in"
                " (select rowid from batches order by rowid desc limit ?)",
                (keep,),
            )


def _stored(row: sqlite3.Row) -> StoredBatch:
    return StoredBatch(
        lease=row["lease"],
        epoch=row["epoch"],
        seq=row["seq"],
        digest=row["digest"],
        body=json.loads(row["body"]),
        envelope=bytes(row["envelope"]),
    )
