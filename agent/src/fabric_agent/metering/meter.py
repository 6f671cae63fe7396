"""The meter: whole windows of seconds in which a workload was ready, signed one after another.

Time counts as ready only between two looks that saw the same instance of the workload. An instance
has one life, so it was running in between even when the agent was not: killing the agent loses
nothing. What no two looks enclose is not ready. A window without readiness is an explicit zero.
"""

import hashlib
import json
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fabric_agent.metering.outbox import DEAD, QUEUED, RECEIPTED, SUPERSEDED, Outbox, StoredBatch
from fabric_protocol import canonical, dsse, keys, payloads

SECOND_NS = 1_000_000_000
JUMP_NS = SECOND_NS // 4
"""How far wall and monotonic clock may drift apart between two looks before it is a jump."""

CHAIN_DOUBTS = frozenset(
    {"chain_broken", "epoch_over", "number_passed", "unknown_predecessor", "too_far_ahead"}
)
"""Refusals of a batch's place, which a new epoch can mend; others would be refused again."""
MAX_DOUBTS = 5


@dataclass(frozen=True)
class Instant:
    """One moment on both clocks, and the boot that the second one belongs to."""

    wall_ns: int
    mono_ns: int
    boot: str


@dataclass(frozen=True)
class Look:
    """What one look at a workload saw; an empty instance means that it was not ready."""

    instance: str
    observed: dict[str, Any]


@dataclass(frozen=True)
class Metered:
    """What of a desired item the meter needs."""

    lease: str
    agreement: str
    terms_digest: str
    window_ns: int
    paid_until_ns: int | None

    @classmethod
    def from_item(cls, item: dict[str, Any]) -> "Metered":
        """Read a workload item."""
        until = item.get("paid_until")
        return cls(
            lease=str(item["key"]),
            agreement=str(item["agreement"]),
            terms_digest=str(item["terms_digest"]),
            window_ns=int(item["window_seconds"]) * SECOND_NS,
            paid_until_ns=None if until is None else to_ns(payloads.read_instant(str(until))),
        )


class Meter:
    """Keeps the stream of every lease of one node."""

    def __init__(self, outbox: Outbox, *, node: str, key: keys.SigningKey) -> None:
        self._outbox, self._node, self._key = outbox, node, key

    def look(self, lease: Metered, look: Look, at: Instant) -> int:
        """Account the time since the last look; return how many windows were completed."""
        with self._outbox.transaction() as connection:
            row = self._row(connection, lease.lease)
            if row["finished"] or row["held"]:
                return 0
            if row["cursor_ns"] is None:
                if look.instance and lease.paid_until_ns is not None:
                    self._begin(connection, lease, look, at)
                return 0
            return self._advance(connection, lease, row, look=look, at=at)

    def finish(self, lease: Metered, at: Instant) -> bool:
        """Close the stream with a final batch; return whether there was one to write."""
        with self._outbox.transaction() as connection:
            row = self._row(connection, lease.lease)
            if row["finished"] or row["held"]:
                return False
            if row["cursor_ns"] is None:
                starts = _floor_second(at.wall_ns)
                self._save(connection, lease.lease, starts_ns=starts, cursor_ns=starts)
            else:
                look = Look(instance=row["instance"], observed={})
                self._advance(connection, lease, row, look=look, at=at)
            row = self._row(connection, lease.lease)
            ends = max(_floor_second(at.wall_ns), row["starts_ns"] + SECOND_NS)
            window_end = row["starts_ns"] // lease.window_ns * lease.window_ns + lease.window_ns
            self._emit(connection, lease, row, ends_ns=min(ends, window_end), at=at, final=True)
            connection.execute("update meters set finished = 1 where lease = ?", (lease.lease,))
            return True

    def take_receipt(self, batch: StoredBatch, receipt: dict[str, Any]) -> None:
        """Note the receipt of a batch; open a new epoch when the chain is in doubt."""
        if receipt.get("digest") != batch.digest:
            raise ValueError("the receipt belongs to another batch")
        with self._outbox.transaction() as connection:
            refused_place = (
                receipt.get("state") == "refused" and receipt.get("in_place") is not True
            )
            connection.execute(
                "update batches set state = ?, receipt = ? where lease = ? and epoch = ? and seq = ?",
                (
                    DEAD if refused_place else RECEIPTED,
                    json.dumps(receipt),
                    batch.lease,
                    batch.epoch,
                    batch.seq,
                ),
            )
            if not refused_place:
                self._save(connection, batch.lease, receipted=batch.digest, doubts=0)
                return
            standing, reason = receipt.get("next"), str(receipt.get("reason") or "refused")
            known = standing if isinstance(standing, dict) else {}
            doubts = self._row(connection, batch.lease)["doubts"] + 1
            if (
                reason not in CHAIN_DOUBTS
                or known.get("state") in {"held", "final"}
                or doubts > MAX_DOUBTS
            ):
                self._give_up(connection, batch.lease, reason)
                return
            self._save(connection, batch.lease, doubts=doubts)
            self._restate(connection, batch, known)

    def give_up(self, lease: str, reason: str) -> None:
        """Stop sending for a lease that the control plane does not know, or has closed."""
        with self._outbox.transaction() as connection:
            self._give_up(connection, lease, reason)

    def is_settled(self, lease: str) -> bool:
        """Return whether nothing of this lease waits and its stream is closed."""
        rows = self._outbox.rows("select finished, held from meters where lease = ?", lease)
        closed = not rows or bool(rows[0]["finished"]) or bool(rows[0]["held"])
        return closed and self._outbox.queued_count(lease) == 0

    def forget(self, lease: str) -> None:
        """Drop the stream of a lease that is over; its receipted batches are kept for a while."""
        with self._outbox.transaction() as connection:
            connection.execute("delete from meters where lease = ?", (lease,))

    def _begin(
        self, connection: sqlite3.Connection, lease: Metered, look: Look, at: Instant
    ) -> None:
        """Start metering with the next whole second: fractions are never charged."""
        starts = -(-at.wall_ns // SECOND_NS) * SECOND_NS
        self._save(
            connection,
            lease.lease,
            starts_ns=starts,
            cursor_ns=at.wall_ns,
            mono_ns=at.mono_ns,
            boot=at.boot,
            instance=look.instance,
            observed=json.dumps(look.observed),
            samples=1,
        )

    def _advance(
        self,
        connection: sqlite3.Connection,
        lease: Metered,
        row: sqlite3.Row,
        *,
        look: Look,
        at: Instant,
    ) -> int:
        ready_from, ready_to, doubtful = _ready_part(row, look, at, lease.paid_until_ns)
        if at.wall_ns < row["cursor_ns"]:  # The clock went back: wait until it has caught up.
            if doubtful:
                self._new_epoch(connection, lease.lease)
            self._save(
                connection, lease.lease, mono_ns=at.mono_ns, boot=at.boot, instance=look.instance
            )
            return 0
        if doubtful:
            self._new_epoch(connection, lease.lease)
        cursor, windows = row["cursor_ns"], 0
        while True:
            row = self._row(connection, lease.lease)
            starts = row["starts_ns"]
            window_end = (starts // lease.window_ns + 1) * lease.window_ns
            until = min(window_end, at.wall_ns)
            gained = max(0, min(until, ready_to) - max(cursor, starts, ready_from))
            self._save(connection, lease.lease, ready_ns=row["ready_ns"] + gained)
            if at.wall_ns < window_end:
                break
            row = self._row(connection, lease.lease)
            self._emit(connection, lease, row, ends_ns=window_end, at=at, final=False)
            self._save(
                connection, lease.lease, starts_ns=window_end, ready_ns=0, samples=0, observed="{}"
            )
            cursor, windows = window_end, windows + 1
        row = self._row(connection, lease.lease)
        observed = {**json.loads(row["observed"]), **look.observed}
        self._save(
            connection,
            lease.lease,
            cursor_ns=at.wall_ns,
            mono_ns=at.mono_ns,
            boot=at.boot,
            instance=look.instance,
            observed=json.dumps(observed),
            samples=row["samples"] + (1 if look.observed or look.instance else 0),
        )
        return windows

    def _emit(
        self,
        connection: sqlite3.Connection,
        lease: Metered,
        row: sqlite3.Row,
        *,
        ends_ns: int,
        at: Instant,
        final: bool,
    ) -> None:
        seconds = min(row["ready_ns"], ends_ns - row["starts_ns"]) // SECOND_NS
        body: dict[str, Any] = {
            "v": 1,
            "lease": lease.lease,
            "agreement": lease.agreement,
            "node": self._node,
            "terms_digest": lease.terms_digest,
            "epoch": row["epoch"],
            "seq": row["seq"],
            "prev": row["head"],
            "window_index": row["starts_ns"] // lease.window_ns,
            "starts_at": from_ns(row["starts_ns"]),
            "ends_at": from_ns(ends_ns),
            "ready_seconds": max(0, seconds),
            "observed": json.loads(row["observed"]),
            "samples": row["samples"],
            "monotonic_ns": str(at.mono_ns),
            "final": final,
        }
        self._append(connection, body)

    def _append(self, connection: sqlite3.Connection, body: dict[str, Any]) -> None:
        """Sign a batch once and put it into the outbox, with the stream moved on behind it."""
        payload = canonical.dumps(body)
        digest = hashlib.sha256(payload).hexdigest()
        connection.execute(
            "insert into batches (lease, epoch, seq, digest, body, envelope, state)"
            " values (?, ?, ?, ?, ?, ?, ?)",
            (
                body["lease"],
                body["epoch"],
                body["seq"],
                digest,
                payload.decode(),
                dsse.seal(payloads.METER_BATCH, payload, self._key),
                QUEUED,
            ),
        )
        self._save(connection, body["lease"], seq=body["seq"] + 1, head=digest)

    def _restate(
        self, connection: sqlite3.Connection, batch: StoredBatch, known: dict[str, Any]
    ) -> None:
        """Say again, in a new epoch, what was refused its place and all that waits behind it.

        The old bytes are never signed anew: they stay as they are, marked superseded. A window
        the control plane has taken already it refuses as an overlap, so none counts twice.
        """
        waiting = connection.execute(
            "select body from batches where lease = ? and state = ? order by epoch, seq",
            (batch.lease, QUEUED),
        ).fetchall()
        connection.execute(
            "update batches set state = ? where lease = ? and state = ?",
            (SUPERSEDED, batch.lease, QUEUED),
        )
        self._new_epoch(
            connection,
            batch.lease,
            least=int(known.get("epoch") or 0) + 1,
            head=str(known["head"]) if known.get("head") else None,
        )
        for body in (batch.body, *(json.loads(row["body"]) for row in waiting)):
            row = self._row(connection, batch.lease)
            self._append(
                connection,
                {**body, "epoch": row["epoch"], "seq": row["seq"], "prev": row["head"]},
            )

    def _new_epoch(
        self,
        connection: sqlite3.Connection,
        lease: str,
        *,
        least: int = 0,
        head: str | None = None,
    ) -> None:
        """Begin a new epoch that names the last receipted batch."""
        row = self._row(connection, lease)
        if row["seq"] == 0 and row["epoch"] >= least:
            return  # Nothing was said in this epoch yet: there is nothing to doubt.
        waiting = connection.execute(
            "select digest from batches where lease = ? and state = ? order by epoch, seq",
            (lease, QUEUED),
        ).fetchall()
        # Batches on their way will be receipted before the new epoch's first is sent.
        named = waiting[-1]["digest"] if waiting else head or row["receipted"]
        self._save(connection, lease, epoch=max(row["epoch"] + 1, least), seq=0, head=named)

    def _give_up(self, connection: sqlite3.Connection, lease: str, reason: str) -> None:
        connection.execute(
            "update batches set state = ? where lease = ? and state = ?", (DEAD, lease, QUEUED)
        )
        connection.execute("update meters set held = ? where lease = ?", (reason, lease))

    def _row(self, connection: sqlite3.Connection, lease: str) -> sqlite3.Row:
        connection.execute("insert or ignore into meters (lease) values (?)", (lease,))
        row: sqlite3.Row = connection.execute(
            "select * from meters where lease = ?", (lease,)
        ).fetchone()
        return row

    def _save(self, connection: sqlite3.Connection, lease: str, **values: Any) -> None:
        names = ", ".join(f"{name} = ?" for name in values)
        connection.execute(
            f"update meters set {names} where lease = ?",  # noqa: S608 - names are ours
            (*values.values(), lease),
        )


def _ready_part(
    row: sqlite3.Row, look: Look, at: Instant, paid_until_ns: int | None
) -> tuple[int, int, bool]:
    """Return from when to when, since the last look, the workload was ready; and if clocks jumped.

    After a jump only as much counts as both clocks agree on.
    """
    wall, doubtful = at.wall_ns - row["cursor_ns"], False
    ready_from = row["cursor_ns"]
    if at.boot == row["boot"]:
        mono = at.mono_ns - row["mono_ns"]
        if abs(wall - mono) > max(JUMP_NS, mono // 100):
            doubtful = True
            ready_from = max(ready_from, at.wall_ns - max(0, min(wall, mono)))
    same_life = bool(look.instance) and look.instance == row["instance"] and at.boot == row["boot"]
    ready_to = at.wall_ns if same_life else ready_from
    if paid_until_ns is not None:
        ready_to = min(ready_to, paid_until_ns)
    return ready_from, ready_to, doubtful


def to_ns(at: datetime) -> int:
    """Return nanoseconds since the epoch, exact to the microsecond."""
    delta = at - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * SECOND_NS + delta.microseconds * 1000


def from_ns(wall_ns: int) -> str:
    """Return an instant as the wire writes it; whole seconds only."""
    return payloads.write_instant(datetime.fromtimestamp(wall_ns // SECOND_NS, tz=UTC))


def _floor_second(wall_ns: int) -> int:
    return wall_ns // SECOND_NS * SECOND_NS
