"""The running agent: reports, beats, reconciles, meters, and answers challenges.

Two loops share one state. The local one looks after workloads and the meter and never waits for the
network; the other talks to the control plane and never holds up the first. A third thread exists
while a challenge is being worked on. What nobody foresaw is logged with its trace and tried again: a
loop that ended would leave a node that looks well and does half its work.
"""

import base64
import contextlib
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fabric_agent import hostfacts
from fabric_agent.client import ControlPlane
from fabric_agent.drivers.base import Driver
from fabric_agent.health import read_health
from fabric_agent.metering.meter import Instant, Look, Meter, Metered
from fabric_agent.metering.outbox import Outbox
from fabric_agent.problems import AgentProblem, Refused
from fabric_agent.reports import build_report
from fabric_agent.state import Identity, StateFolder
from fabric_agent.workloads.base import Runtime
from fabric_agent.workloads.manager import Standing, Workloads
from fabric_protocol import canonical, dsse, keys, payloads

log = logging.getLogger("fabric_agent")

LOCAL_SECONDS = 0.5
OBSERVE_SECONDS = 2.0
DEFAULT_BEAT_SECONDS = 2.0
MAX_CHALLENGE_TRIES = 3
_LONGEST_PAUSE = 30.0


@dataclass
class Parts:
    """What an agent is made of; tests and the simulation put other parts in."""

    state: StateFolder
    identity: Identity
    key: keys.SigningKey
    plane: ControlPlane
    driver: Driver
    runtimes: list[Runtime]
    outbox: Outbox
    workloads: Workloads
    unit_memory_mib: int
    clock: Callable[[], Instant]


def now_instant() -> Instant:
    """Return this moment on both clocks."""
    return Instant(wall_ns=time.time_ns(), mono_ns=time.monotonic_ns(), boot=_BOOT)


_BOOT = hostfacts.boot_id()


@contextlib.contextmanager
def _going_on(doing: str) -> Iterator[None]:
    """Log what goes wrong while `doing` something, and let the loop around it go on."""
    try:
        yield
    except AgentProblem as problem:
        log.warning("%s: %s: %s", doing, problem.code, problem.message)
    except Exception:
        log.exception("%s failed; it is tried again", doing)


class Agent:
    """One node's agent."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._meter = Meter(parts.outbox, node=parts.identity.node_id, key=parts.key)
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._generation = -1
        self._is_stale = True
        self._beat_seconds = DEFAULT_BEAT_SECONDS
        self._seq = time.time_ns() // 1_000_000
        self._report_digest = ""
        self._challenge: threading.Thread | None = None
        self._challenge_tries: dict[str, int] = {}
        self._clock_offset_ms = 0.0
        self._observed: tuple[float, dict[str, Any]] = (-OBSERVE_SECONDS, {})

    def run(self) -> None:
        """Run until `stop` is called; workloads go on when this returns."""
        talk = threading.Thread(target=self._talk, name="talk", daemon=True)
        talk.start()
        while not self._stop.is_set():
            with _going_on("the workloads"):
                self.tend()
            self._stop.wait(LOCAL_SECONDS)
        self._wake.set()
        talk.join(timeout=5)

    def stop(self) -> None:
        """End both loops soon."""
        self._stop.set()
        self._wake.set()

    def tend(self) -> None:
        """Look after every workload once: start, stop, meter."""
        for standing in self._parts.workloads.all():
            with _going_on(f"workload {standing.lease}"):
                self._tend_one(standing)

    def _tend_one(self, standing: Standing) -> None:
        metered = Metered.from_item(standing.item)
        if standing.stops:
            with _going_on(f"metering {standing.lease}"):  # Stopped even if it cannot be metered.
                self._look(standing.lease, metered)  # Up to the very end, before it is stopped.
                if self._meter.finish(metered, self._parts.clock()):
                    self._wake.set()
        after = self._parts.workloads.reconcile(standing)
        if after.state != standing.state:
            log.info("workload %s is %s %s", after.lease, after.state, after.detail)
            self._wake.set()
        if not after.stops:
            self._look(standing.lease, metered)
        elif standing.item.get("forgotten") and self._meter.is_settled(standing.lease):
            self._parts.workloads.forget(standing.lease)
            self._meter.forget(standing.lease)

    def _look(self, lease: str, metered: Metered) -> None:
        standing = next((row for row in self._parts.workloads.all() if row.lease == lease), None)
        if standing is None:
            return
        instance, observed = self._parts.workloads.look(standing)
        if instance:
            ordinals = [int(number) for number in standing.item.get("unit_ordinals") or []]
            observed = {**self._observe(ordinals), **observed}
        if self._meter.look(metered, Look(instance, observed), self._parts.clock()):
            self._wake.set()

    def _observe(self, ordinals: list[int]) -> dict[str, Any]:
        at, observed = self._observed
        if time.monotonic() - at >= OBSERVE_SECONDS:
            observed = self._parts.driver.observe(unit_ordinals=ordinals)
            self._observed = (time.monotonic(), observed)
        return observed

    def _talk(self) -> None:
        pause = 0.0
        while not self._stop.is_set():
            pause = min(_LONGEST_PAUSE, max(self._beat_seconds, pause * 2))
            with _going_on("talking to the control plane"):
                self.talk_once()
                pause = 0.0
            self._wake.wait(pause or self._beat_seconds)
            self._wake.clear()

    def talk_once(self) -> None:
        """Report if that is due, send what waits, beat, and fetch the desired state if it moved."""
        if not self._report_digest:
            self._send_report()
        self._send_batches()
        reply = self._parts.plane.post("beats/", self._beat()).document()
        self._take_server_time(str(reply.get("server_time") or ""))
        self._beat_seconds = min(60.0, max(0.2, float(reply.get("beat_seconds") or 2.0)))
        if self._is_stale or int(reply["generation"]) > self._generation:
            self._fetch_desired_state()

    def _beat(self) -> dict[str, Any]:
        self._seq += 1
        health = read_health(
            queued_batches=self._parts.outbox.queued_count(),
            clock_offset_ms=self._clock_offset_ms,
        )
        workloads = [
            self._parts.workloads.status(standing)
            for standing in self._parts.workloads.all()
            if not standing.item.get("forgotten")
        ]
        return {"seq": self._seq, "health": health, "workloads": workloads}

    def _send_report(self) -> None:
        runtime = self._parts.runtimes[0] if self._parts.runtimes else None
        payload = canonical.dumps(build_report(self._parts.driver, runtime))
        envelope = dsse.seal(payloads.REPORT, payload, self._parts.key)
        self._parts.plane.post_envelope("reports/", envelope)
        self._report_digest = hashlib.sha256(payload).hexdigest()
        log.info("hardware report %s sent", self._report_digest[:12])

    def _send_batches(self) -> None:
        blocked: set[str] = set()
        waiting = self._parts.outbox.queued()
        for batch in waiting:
            if batch.lease in blocked:
                continue
            try:
                reply = self._parts.plane.post_envelope(
                    f"streams/{batch.lease}/batches/", batch.envelope
                )
                receipt = reply.document()
                self._meter.take_receipt(batch, receipt)
            except Refused as refusal:
                if refusal.status in {403, 404}:
                    self._meter.give_up(batch.lease, refusal.code)
                log.warning("batch of %s refused: %s", batch.lease, refusal.message)
                blocked.add(batch.lease)
                continue
            except ValueError:
                blocked.add(batch.lease)
                log.warning("a receipt for %s does not fit its batch", batch.lease)
                continue
            if receipt.get("state") == "refused":
                log.warning("batch of %s refused: %s", batch.lease, receipt.get("reason"))
                blocked.add(batch.lease)  # What follows may have been restated; read it anew.
        if waiting:
            self._parts.outbox.purge()

    def _fetch_desired_state(self) -> None:
        envelope = self._parts.plane.get("desired-state/").body
        document = dsse.open_document(
            envelope, payloads.DESIRED_STATE, self._parts.identity.server_key
        )
        generation = int(document["generation"])
        if document.get("node") != self._parts.identity.node_id or generation < self._generation:
            log.warning("a desired state of another node, or an older one, is ignored")
            return
        items = [item for item in document["items"] if isinstance(item, dict)]
        self._parts.workloads.take_items([item for item in items if item["kind"] == "workload"])
        self._generation, self._is_stale = generation, False
        for item in items:
            if item["kind"] == "challenge":
                self._begin_challenge(item)

    def _begin_challenge(self, item: dict[str, Any]) -> None:
        key = str(item["key"])
        running = self._challenge is not None and self._challenge.is_alive()
        tries = self._challenge_tries.get(key, 0)
        if running or tries >= MAX_CHALLENGE_TRIES:
            return
        self._challenge_tries[key] = tries + 1
        self._challenge = threading.Thread(
            target=self._answer_challenge, args=(key,), name="challenge", daemon=True
        )
        self._challenge.start()

    def _answer_challenge(self, key: str) -> None:
        with _going_on(f"challenge {key}"):
            self.answer_challenge(key)
            self._challenge_tries[key] = MAX_CHALLENGE_TRIES
        self._is_stale = True  # Look again: a try may be left, or another challenge waits.
        self._wake.set()

    def answer_challenge(self, key: str) -> None:
        """Take a challenge from its nonce to its answer."""
        plane, parts = self._parts.plane, self._parts
        question = plane.post(f"challenges/{key}/start/", {}).document()
        parameters = dict(question["parameters"])
        run = parts.driver.start_challenge(
            nonce=base64.b64decode(str(question["nonce"]), validate=True),
            parameters=parameters,
            unit_memory_mib=parts.unit_memory_mib,
        )
        try:
            committed = run.commit()
            log.info("challenge %s: work done, committing", key)
            reply = plane.post(f"challenges/{key}/commitment/", committed).document()
            answered = run.answer(dict(reply["opening"]))
        finally:
            run.close()
        body = {
            "v": 1,
            "challenge": key,
            "node": parts.identity.node_id,
            "report": str(parameters["report"]),
            **answered,
        }
        envelope = dsse.seal_document(payloads.CHALLENGE_ANSWER, body, parts.key)
        plane.post_envelope(f"challenges/{key}/answer/", envelope)
        log.info("challenge %s answered", key)

    def _take_server_time(self, text: str) -> None:
        try:
            server = payloads.read_instant(text)
        except ValueError:
            return
        self._clock_offset_ms = (datetime.now(tz=UTC) - server).total_seconds() * 1000


def describe_state(outbox: Outbox) -> list[dict[str, Any]]:
    """Return what the outbox knows of every lease, for `status`."""
    return [
        {
            "lease": row["lease"],
            "state": row["state"],
            "detail": row["detail"],
            "paid_until": json.loads(row["item"]).get("paid_until"),
            "batches_waiting": outbox.queued_count(row["lease"]),
        }
        for row in outbox.rows("select * from workloads order by lease")
    ]
