"""Looking at workloads that are due, and what follows from what is seen."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from fabric.lib.clock import window_index
from fabric.lib.secrets import access_token
from leases.domain.states import LeaseState, WitnessKind
from leases.models import Lease, WitnessReading
from leases.services.lifecycle import confirm_ready
from leases.services.looking import Sight, Target, look
from leases.services.reserving import rules_of
from leases.services.workloads import read_workload

AT_ONCE = 16


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
