"""Brings workloads to what the desired state asks for, and keeps them across restarts of the agent.

Rows in the outbox database say what was started and how to find it again. Tokens are not among
them: they come with the desired state and live in memory only.
"""

import contextlib
import http.client
import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from fabric_agent import hostfacts
from fabric_agent.metering.outbox import Outbox
from fabric_agent.state import write_whole
from fabric_agent.workloads.base import Handle, Runtime, Spec, StartFailed
from fabric_protocol import payloads

STARTING, RUNNING, STOPPED, FAILED = "starting", "running", "stopped", "failed"
MAX_FAILURES = 3
RETRY_SECONDS = 2.0
_LOOK_SECONDS = 1.0
_SECRET_FIELDS = {"access_token"}


@dataclass(frozen=True)
class Standing:
    """A workload as it stands: its item without secrets, and what is running for it."""

    lease: str
    item: dict[str, Any]
    state: str
    detail: str
    handle: Handle | None
    failures: int
    retry_at: float

    @property
    def stops(self) -> bool:
        """Whether the control plane asked for its end."""
        return self.item.get("stop") is True

    def paid_until(self) -> datetime | None:
        """Until when the lease is paid; None while nothing is reserved."""
        until = self.item.get("paid_until")
        return None if until is None else payloads.read_instant(str(until))


class Workloads:
    """All workloads of one node."""

    def __init__(
        self,
        outbox: Outbox,
        *,
        folder: Path,
        runtimes: list[Runtime],
        accepts_unisolated: bool,
        listen_host: str,
        advertise_host: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._outbox, self._folder = outbox, folder
        self._runtimes = {runtime.isolation: runtime for runtime in runtimes}
        self._by_name = {runtime.name: runtime for runtime in runtimes}
        self._accepts_unisolated = accepts_unisolated
        self._listen_host, self._advertise_host = listen_host, advertise_host
        self._tokens: dict[str, str] = {}
        self._clock = clock

    def take_items(self, items: list[dict[str, Any]]) -> None:
        """Note what is asked for now. A lease that is no longer named is to be forgotten."""
        named = set()
        for item in items:
            lease = str(item["key"])
            named.add(lease)
            if item.get("access_token"):
                self._tokens[lease] = str(item["access_token"])
            kept = {name: value for name, value in item.items() if name not in _SECRET_FIELDS}
            with self._outbox.transaction() as connection:
                connection.execute(
                    "insert into workloads (lease, item, state) values (?, ?, ?)"
                    " on conflict (lease) do update set item = excluded.item",
                    (lease, json.dumps(kept), STARTING),
                )
            if item.get("paid_until") and not item.get("stop"):
                # At once, not with the next reconcile: a slow start elsewhere must not end it.
                self._tell_until(lease, payloads.read_instant(str(item["paid_until"])))
        for standing in self.all():
            if standing.lease not in named:
                kept = {**standing.item, "stop": True, "forgotten": True}
                self._save(standing.lease, item=json.dumps(kept))

    def all(self) -> list[Standing]:
        """Return every workload that is known here."""
        return [
            _standing(row) for row in self._outbox.rows("select * from workloads order by lease")
        ]

    def reconcile(self, standing: Standing) -> Standing:
        """Start, keep or stop one workload, and return how it stands then."""
        until, now = standing.paid_until(), self._clock()
        over = until is not None and now >= until.timestamp()
        if standing.stops or over:
            return self._stop(standing, "asked to stop" if standing.stops else "paid until then")
        if until is not None:
            self._tell_until(standing.lease, until)
        if standing.handle is not None and self._living(standing.handle) is not None:
            return standing
        token = self._tokens.get(standing.lease)
        if standing.state == FAILED or now < standing.retry_at or token is None or until is None:
            return standing
        return self._start(standing, token, until, now)

    def look(self, standing: Standing) -> tuple[str, dict[str, Any]]:
        """Return the running instance, empty when it does not answer, and what is read of it."""
        handle = standing.handle
        runtime = self._living(handle) if handle is not None else None
        if handle is None or runtime is None:
            return "", {}
        instance = self._ask(handle)
        if not instance:
            return "", {}
        observed = {
            "memory_mib": runtime.memory_mib(handle),
            "interface": "http",
            "runtime": runtime.name,
            "isolation": runtime.isolation,
        }
        return instance, {name: value for name, value in observed.items() if value is not None}

    def status(self, standing: Standing) -> dict[str, Any]:
        """Return a workload as a beat tells it."""
        access = None
        if standing.handle is not None and standing.state == RUNNING:
            access = {
                "interface": "http",
                "host": self._advertise_host,
                "port": standing.handle.port,
            }
        return {
            "lease": standing.lease,
            "state": standing.state,
            "access": access,
            "detail": standing.detail,
        }

    def forget(self, lease: str) -> None:
        """Drop a workload whose stream is settled, with its folder."""
        with self._outbox.transaction() as connection:
            connection.execute("delete from workloads where lease = ?", (lease,))
        self._tokens.pop(lease, None)
        shutil.rmtree(self._folder / lease, ignore_errors=True)

    def stop_all(self) -> None:
        """Stop every workload at once: for an operator who retires the node."""
        for standing in self.all():
            self._stop(standing, "the agent was told to stop its workloads")

    def _start(self, standing: Standing, token: str, until: datetime, now: float) -> Standing:
        try:
            handle = self._start_with_runtime(standing, token, until)
        except StartFailed as problem:
            # Time that was over before the start was through says nothing about this node.
            failures = standing.failures + (self._clock() < until.timestamp())
            state = FAILED if failures >= MAX_FAILURES else STARTING
            return self._save(
                standing.lease,
                state=state,
                detail=problem.message,
                handle=None,
                failures=failures,
                retry_at=now + RETRY_SECONDS * failures,
            )
        return self._save(
            standing.lease,
            state=RUNNING,
            detail="",
            handle=json.dumps(handle.as_document()),
            failures=0,
        )

    def _start_with_runtime(self, standing: Standing, token: str, until: datetime) -> Handle:
        isolation = str(standing.item.get("isolation"))
        if isolation == "none" and not self._accepts_unisolated:
            raise StartFailed("NO_CONSENT", "the provider did not consent to unisolated workloads")
        runtime = self._runtimes.get(isolation)
        if runtime is None:
            raise StartFailed("NO_RUNTIME", f"this node cannot run workloads as {isolation}")
        folder = self._folder / standing.lease
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # Below a private folder; a container reads it as nobody.
        self._tell_until(standing.lease, until)
        return runtime.start(
            Spec(
                lease=standing.lease,
                token=token,
                memory_mib=int(standing.item["memory_mib"]),
                folder=folder,
                listen_host=self._listen_host,
                cores=hostfacts.usable_cores(),
            )
        )

    def _stop(self, standing: Standing, why: str) -> Standing:
        runtime = self._by_name.get(standing.handle.runtime) if standing.handle else None
        if standing.handle is not None and runtime is not None:
            runtime.stop(standing.handle)
        with contextlib.suppress(OSError):
            (self._folder / standing.lease / "until").unlink()
        if standing.state == STOPPED and standing.handle is None:
            return standing
        return self._save(standing.lease, state=STOPPED, detail=why, handle=None, failures=0)

    def _tell_until(self, lease: str, until: datetime) -> None:
        """Tell the running service how long it is paid for; it ends itself even without us."""
        path, text = self._folder / lease / "until", f"{until.timestamp():.3f}"
        with contextlib.suppress(OSError):
            if path.read_text(encoding="ascii") == text:
                return
        with contextlib.suppress(FileNotFoundError):  # The lease's folder went with the lease.
            write_whole(path, text, mode=0o644)

    def _living(self, handle: Handle) -> Runtime | None:
        """Return the runtime of a workload that runs; None too where the runtime is gone."""
        runtime = self._by_name.get(handle.runtime)
        return runtime if runtime is not None and runtime.is_alive(handle) else None

    def _ask(self, handle: Handle) -> str:
        connection = http.client.HTTPConnection(
            self._local_host, handle.port, timeout=_LOOK_SECONDS
        )
        try:
            connection.request("GET", "/alive")
            document = json.loads(connection.getresponse().read(4096))
        except (OSError, http.client.HTTPException, ValueError):
            return ""
        finally:
            connection.close()
        instance = document.get("instance") if isinstance(document, dict) else None
        return instance if instance == handle.instance else ""

    @property
    def _local_host(self) -> str:
        wildcard = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - looked up, not bound
        return wildcard.get(self._listen_host, self._listen_host)

    def _save(self, lease: str, **values: Any) -> Standing:
        names = ", ".join(f"{name} = ?" for name in values)
        with self._outbox.transaction() as connection:
            connection.execute(
                f"update workloads set {names} where lease = ?",  # noqa: S608 - names are ours
                (*values.values(), lease),
            )
            row: sqlite3.Row = connection.execute(
                "select * from workloads where lease = ?", (lease,)
            ).fetchone()
        return _standing(row)


def _standing(row: sqlite3.Row) -> Standing:
    return Standing(
        lease=row["lease"],
        item=json.loads(row["item"]),
        state=row["state"],
        detail=row["detail"],
        handle=Handle.from_document(json.loads(row["handle"])) if row["handle"] else None,
        failures=row["failures"],
        retry_at=row["retry_at"],
    )
