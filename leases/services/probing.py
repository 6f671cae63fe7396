"""Looking at workloads from outside: the exchange's own reading beside the provider's word.

The address comes from a provider, so the look goes only where it may (never to this host's own
metadata services), follows no redirect, reads a few bytes and waits two seconds at most.
"""

import hashlib
import hmac
import http.client
import ipaddress
import json
import secrets
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from fabric.lib.clock import window_index
from fabric.lib.secrets import access_token
from leases.domain.states import LeaseState, WitnessKind
from leases.models import Lease, WitnessReading
from leases.services.lifecycle import confirm_ready
from leases.services.reserving import rules_of
from leases.services.workloads import read_workload

TIMEOUT_SECONDS = 2.0
TRIES = 2
MAX_ANSWER_BYTES = 4096
AT_ONCE = 16


@dataclass(frozen=True)
class Target:
    """A workload to look at, and the secret it has to know."""

    lease_id: str
    host: str
    port: int
    token: str


@dataclass(frozen=True)
class Sight:
    """What one look saw; `detail` is a code of why the workload was not reached."""

    reachable: bool
    latency_ms: float | None
    detail: str
    elapsed: timedelta


def probe_due(*, now: datetime, limit: int = 100) -> int:
    """Look at every workload that is due and act on what is seen; return how many were looked at.

    Claiming a row moves its next look, so two of these beside each other share the work.
    """
    looked = 0
    targets: list[Target] = []
    for lease in _claim(now=now, limit=limit):
        target = _target(lease)
        if target is not None:
            targets.append(target)
        elif lease.state == LeaseState.ACTIVE:
            nowhere = Sight(
                reachable=False, latency_ms=None, detail="no_address", elapsed=timedelta(0)
            )
            record_sight(lease_id=lease.public_id, sight=nowhere, access=None, now=now)
            looked += 1
    if not targets:
        return looked
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(targets))) as pool:
        sights = list(pool.map(look, targets))
    for target, sight in zip(targets, sights, strict=True):
        access = {"interface": "http", "host": target.host, "port": target.port}
        record_sight(lease_id=target.lease_id, sight=sight, access=access, now=now + sight.elapsed)
    return looked + len(targets)


@transaction.atomic
def record_sight(
    *, lease_id: str, sight: Sight, access: dict[str, Any] | None, now: datetime
) -> None:
    """Keep what was seen as a witness reading, and let a workload that answered start charging."""
    lease = Lease.objects.with_parties().get(pk=Lease.key_from(lease_id))
    if lease.state in {LeaseState.PROVISIONING, LeaseState.INTERRUPTED}:
        if not sight.reachable or access is None:
            return
        if not confirm_ready(lease=lease, access=access, now=now):
            return
    elif lease.state != LeaseState.ACTIVE:
        return
    WitnessReading.objects.create(
        lease=lease,
        kind=WitnessKind.CONTROL_PLANE,
        window_index=window_index(now, window_seconds=rules_of(lease).terms.window_seconds),
        observed={
            "reachable": sight.reachable,
            "latency_ms": sight.latency_ms,
            "detail": sight.detail,
        },
        at=now,
    )


def look(target: Target) -> Sight:
    """Ask the workload to prove that it is this lease's, at most twice."""
    began = time.monotonic()
    detail, latency_ms = "", None
    for _ in range(TRIES):
        detail, latency_ms = _ask(target)
        if not detail:
            break
    elapsed = timedelta(seconds=time.monotonic() - began)
    return Sight(
        reachable=not detail,
        latency_ms=None if detail else latency_ms,
        detail=detail,
        elapsed=elapsed,
    )


def _claim(*, now: datetime, limit: int) -> list[Lease]:
    with transaction.atomic():
        leases = list(
            Lease.objects.probe_due(now=now)
            .select_related("agreement", "node")
            .select_for_update(no_key=True, skip_locked=True, of=("self",))[:limit]
        )
        for lease in leases:
            Lease.objects.filter(pk=lease.pk).update(probe_due_at=now + _interval(lease))
    return leases


def _interval(lease: Lease) -> timedelta:
    """Look three times a window and at most every minute; before it is ready, every second."""
    if lease.state != LeaseState.ACTIVE:
        return timedelta(seconds=1)
    window = rules_of(lease).terms.window_seconds
    return timedelta(seconds=min(60, max(1, window // 3)))


def _target(lease: Lease) -> Target | None:
    """Return where the workload is said to be: as the last beat says, or as last confirmed."""
    workload = read_workload(lease)
    access = workload.access if workload is not None and workload.claims_ready else None
    if access is None and lease.state == LeaseState.ACTIVE:
        access = lease.access or None
    if access is None:
        return None
    host, port = access.get("host"), access.get("port")
    if not isinstance(host, str) or not 0 < len(host) <= 253:
        return None
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        return None
    return Target(lease.public_id, host, port, access_token(lease.public_id))


def _ask(target: Target) -> tuple[str, float | None]:
    """Return the code of what failed, empty when the proof held, and the time to the answer."""
    nonce = secrets.token_hex(16)
    began = time.monotonic()
    try:
        address = _resolve(target.host, target.port)
        if address is None:
            return "address_refused", None
        connection = http.client.HTTPConnection(address, target.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(
                "GET",
                f"/ready?nonce={nonce}",
                headers={"Authorization": f"Bearer {target.token}", "Connection": "close"},
            )
            response = connection.getresponse()
            data = response.read(MAX_ANSWER_BYTES + 1)
        finally:
            connection.close()
    except (OSError, http.client.HTTPException):
        return "unreachable", None
    latency_ms = round((time.monotonic() - began) * 1000, 1)
    if response.status != http.client.OK or len(data) > MAX_ANSWER_BYTES:
        return "wrong_answer", None
    return ("" if _proves(data, nonce, target) else "wrong_proof"), latency_ms


def _proves(data: bytes, nonce: str, target: Target) -> bool:
    try:
        answer = json.loads(data)
    except ValueError:
        return False
    if not isinstance(answer, dict):
        return False
    proof = hmac.new(target.token.encode(), nonce.encode(), hashlib.sha256).hexdigest()
    return (
        answer.get("nonce") == nonce
        and answer.get("lease") == target.lease_id
        and hmac.compare_digest(str(answer.get("proof", "")), proof)
    )


def _resolve(host: str, port: int) -> str | None:
    """Return an address that may be asked, or None: metadata and private nets are out of bounds.

    The name is resolved once and the connection goes to that address, so that a second answer of
    the provider's name server cannot lead somewhere else.
    """
    for *_, place in _addresses(host, port):
        address = ipaddress.ip_address(place[0])
        if address.is_link_local or address.is_multicast or address.is_unspecified:
            return None
        if not settings.FABRIC_ALLOW_PRIVATE_ACCESS and not address.is_global:
            return None
        return str(address)
    return None


def _addresses(host: str, port: int) -> Sequence[Any]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
