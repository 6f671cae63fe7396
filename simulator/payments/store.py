"""What the stand-in remembers: objects, events and their deliveries, idempotent answers."""

import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS object (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, created INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS answer (
  key TEXT PRIMARY KEY, request TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS delivery (
  event_id TEXT PRIMARY KEY, attempts INTEGER NOT NULL, next_at REAL NOT NULL, done INTEGER NOT NULL
);
"""
Json = dict[str, Any]


def new_id(prefix: str) -> str:
    """Return an id in the manner of the real service."""
    return f"{prefix}_{secrets.token_hex(12)}"


class Store:
    """One SQLite connection behind a lock; a request is one transaction."""

    def __init__(self, path: str) -> None:
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.executescript(_SCHEMA)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the lock and commit, or undo everything on an error."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def put(self, body: Json) -> Json:
        """Write an object under its id."""
        with self._lock:
            self._connection.execute(
                "INSERT INTO object (id, kind, created, body) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET body = excluded.body",
                (body["id"], body["object"], body["created"], json.dumps(body)),
            )
        return body

    def get(self, kind: str, object_id: str) -> Json | None:
        """Return an object of a kind, or None."""
        with self._lock:
            row = self._connection.execute(
                "SELECT body FROM object WHERE id = ? AND kind = ?", (object_id, kind)
            ).fetchone()
        return json.loads(row[0]) if row else None

    def newest(self, kind: str, *, limit: int, after: str | None) -> tuple[list[Json], bool]:
        """Return a page of objects, newest first, and whether there are more."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT body FROM object WHERE kind = ? AND (? IS NULL OR rowid < "
                "(SELECT rowid FROM object WHERE id = ?)) ORDER BY rowid DESC LIMIT ?",
                (kind, after, after, limit + 1),
            ).fetchall()
        found = [json.loads(row[0]) for row in rows]
        return found[:limit], len(found) > limit

    def stored_answer(self, key: str) -> tuple[str, int, str] | None:
        """Return the request, status and body that an idempotency key stands for."""
        with self._lock:
            row = self._connection.execute(
                "SELECT request, status, body FROM answer WHERE key = ?", (key,)
            ).fetchone()
        return (row[0], row[1], row[2]) if row else None

    def store_answer(self, key: str, request: str, status: int, body: str) -> None:
        """Remember the first answer to an idempotency key."""
        with self._lock:
            self._connection.execute(
                "INSERT OR IGNORE INTO answer VALUES (?, ?, ?, ?)", (key, request, status, body)
            )

    def queue_delivery(self, event_id: str) -> None:
        """Let an event be delivered as soon as the pump looks."""
        with self._lock:
            self._connection.execute(
                "INSERT INTO delivery VALUES (?, 0, ?, 0)", (event_id, time.time())
            )

    def due_deliveries(self) -> list[tuple[str, int]]:
        """Return events to deliver now and how often each was tried."""
        with self._lock:
            return self._connection.execute(
                "SELECT event_id, attempts FROM delivery WHERE done = 0 AND next_at <= ?"
                " ORDER BY next_at",
                (time.time(),),
            ).fetchall()

    def note_delivery(self, event_id: str, *, done: bool, wait_seconds: float) -> None:
        """Write down how a delivery went and when to try again."""
        with self._lock:
            self._connection.execute(
                "UPDATE delivery SET attempts = attempts + 1, done = ?, next_at = ?"
                " WHERE event_id = ?",
                (int(done), time.time() + wait_seconds, event_id),
            )
