"""Taking a signed hardware report: keep the bytes, apply the inventory, ask for proof."""

import hashlib
from collections.abc import Iterable
from datetime import datetime

from django.db import models, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange

from fabric.accounts.domain.actors import Actor
from fabric.journal.services.events import record_event
from fabric.lib.errors import DomainError
from fabric_protocol import payloads
from providers.domain.challenges import ChallengePurpose, ChallengeState
from providers.domain.inventory import ClassFacts, check_inventory, compare_offers
from providers.domain.nodes import NodeState
from providers.domain.reasons import Reason
from providers.domain.reports import Report, ReportedDevice, read_report
from providers.models import Challenge, Device, HardwareClass, HardwareReport, Hold, Node, Unit
from providers.services.capacity import PLACEMENTS, is_leased, lock_devices
from providers.services.challenges import expire_open_challenges, issue_challenge
from providers.services.envelopes import open_envelope
from providers.services.nodes import hold_back


class DriverRefused(DomainError):
    """A simulated driver on a node that was not enrolled as simulated, or the other way round."""

    code = "SIMULATION_REFUSED"
    status = 403


@transaction.atomic
def receive_report(
    *, node: Node, public_key: bytes, envelope: bytes, now: datetime
) -> tuple[HardwareReport, bool]:
    """Keep a report and act on it; return it and whether it is new.

    The same report again returns the first. A report whose offer differs from what was last
    proved makes the node prove itself; one that cannot be true holds it back with the reasons.
    Under a live lease the test waits for its end, and devices and units stay as they were let.
    """
    body, payload = open_envelope(envelope, payload_type=payloads.REPORT, public_key=public_key)
    report = read_report(body)
    if (report.driver == "simulated") != node.simulated:
        raise DriverRefused(
            "Simulated hardware is taken only from nodes enrolled as simulated, and only there."
        )
    claimed = Device.objects.filter(identity__in=[device.identity for device in report.devices])
    _lock(node, claimed.exclude(node=node))
    digest = hashlib.sha256(payload).digest()
    known = HardwareReport.objects.filter(node=node, digest=digest).first()
    if known is not None:
        return known, False
    row = HardwareReport.objects.create(
        node=node, envelope=envelope, digest=digest, body=body, received_at=now
    )
    record_event(
        kind="node.reported",
        subject=node.public_id,
        actor=node.public_id,
        organisations=[node.provider.organisation.public_id],
        data={"report": row.public_id, "digest": digest.hex()},
        now=now,
    )
    _act_on(node, row, report, now)
    return row, True


def sweep_changed(*, now: datetime, limit: int = 100) -> int:
    """Test the nodes that changed under a lease which has ended; return how many.

    Safe beside itself: whoever comes second finds the node no longer held back for it.
    """
    held = Hold.objects.in_force(now=now).filter(
        device__node=models.OuterRef("pk"), kind__in=PLACEMENTS
    )
    waiting = Node.objects.changed_under_lease().filter(~models.Exists(held)).order_by("pk")
    return sum(_test_changed(node, now) for node in waiting[:limit])


@transaction.atomic
def _test_changed(node: Node, now: datetime) -> bool:
    _lock(node, [])
    row = node.reports.first()
    if row is None or not Node.objects.changed_under_lease().filter(pk=node.pk).exists():
        return False
    _act_on(node, row, read_report(row.body), now)
    return True


def _act_on(node: Node, row: HardwareReport, report: Report, now: datetime) -> None:
    actor = Actor(id=node.public_id)
    reasons = [
        *check_inventory(report, _class_facts(report.devices)),
        *_check_isolation(node, report),
        *_refuse_double_claims(node, row, report, now),
    ]
    Node.objects.filter(pk=node.pk).update(
        agent_version=report.agent_version, isolation=report.isolation
    )
    if reasons:
        expire_open_challenges(node=node, now=now)
        hold_back(node=node, reasons=reasons, actor=actor, evidence=row.public_id, now=now)
        return
    if is_leased(node=node, now=now):
        proved = _last_proof(node)
        changes = compare_offers(proved, report) if proved is not None else []
        if changes:
            expire_open_challenges(node=node, now=now)
            hold_back(node=node, reasons=changes, actor=actor, evidence=row.public_id, now=now)
        if changes or Node.objects.changed_under_lease().filter(pk=node.pk).exists():
            return  # Also if it is back to what it was: the sweep tests it after the lease.
    _apply_inventory(node, report)
    if _needs_proof(node, report):
        expire_open_challenges(node=node, now=now)
        purpose = ChallengePurpose.RECHECK if node.admitted_at else ChallengePurpose.ADMISSION
        issue_challenge(node=node, report=row, purpose=purpose, actor=actor, now=now)


def _lock(node: Node, rivals: Iterable[Device]) -> None:
    """Lock devices, then nodes, each in key order: this node's and those of rival claimants."""
    rivals = list(rivals)
    own = Device.objects.filter(node=node).values_list("pk", flat=True)
    lock_devices([*own, *(device.pk for device in rivals)])
    keys = {node.pk, *(device.node_id for device in rivals)}
    list(Node.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk"))
    node.refresh_from_db(fields=["state", "admitted_at", "held_back_reasons"])


def _needs_proof(node: Node, report: Report) -> bool:
    """Return whether what is offered now was not the subject of the last challenge, or failed."""
    if node.state in {NodeState.ENROLLED, NodeState.HELD_BACK, NodeState.FENCED}:
        return True
    proved = _last_proof(node)
    return proved is None or proved.offer() != report.offer()


def _last_proof(node: Node) -> Report | None:
    """Return the report that the last challenge which did not run out was about."""
    last = (
        Challenge.objects.filter(node=node)
        .exclude(state=ChallengeState.EXPIRED)
        .select_related("report")
        .first()
    )
    return read_report(last.report.body) if last is not None else None


def _class_facts(devices: Iterable[ReportedDevice]) -> dict[str, ClassFacts]:
    rows = HardwareClass.objects.filter(slug__in={device.class_slug for device in devices})
    return {
        row.slug: ClassFacts(row.slug, row.kind, row.memory_mib, frozenset(row.pci_device_ids))
        for row in rows
    }


def _check_isolation(node: Node, report: Report) -> list[Reason]:
    if report.isolation != "none" or node.accepts_unisolated:
        return []
    return [
        Reason(
            "NO_ISOLATION",
            "isolation",
            "container",
            "none",
            "The node has no container runtime, and it was enrolled without the consent to that.",
            "Install Podman, or enrol anew with a token that accepts leases without a container.",
        )
    ]


def _refuse_double_claims(
    node: Node, row: HardwareReport, report: Report, now: datetime
) -> list[Reason]:
    """Freeze both claimants of a device: one of them is not what it says, and we cannot tell."""
    identities = [device.identity for device in report.devices]
    rivals = (
        Device.objects.filter(identity__in=identities)
        .exclude(node=node)
        .exclude(node__state=NodeState.RETIRED)
        .select_related("node__provider__organisation")
        .order_by("node_id", "ordinal")
    )
    reasons = []
    for device in rivals:
        reasons.append(_claimed_twice(device.identity))
        rival = device.node
        record_event(
            kind="device.claimed_twice",
            subject=device.public_id,
            actor=node.public_id,
            data={"holder": rival.public_id, "claimant": node.public_id, "report": row.public_id},
            now=now,
        )
        if rival.state in {NodeState.ADMITTED, NodeState.PROVING}:
            expire_open_challenges(node=rival, now=now)
            hold_back(
                node=rival,
                reasons=[_claimed_twice(device.identity)],
                actor=Actor(id=node.public_id),
                evidence=row.public_id,
                now=now,
            )
    return reasons


def _claimed_twice(identity: str) -> Reason:
    return Reason(
        "DEVICE_CLAIMED_TWICE",
        "device_identity",
        "one node",
        "two nodes",
        f"The device {identity[:12]}… is claimed by another node as well.",
        "Retire the node that no longer has it, then run the test again.",
    )


def _apply_inventory(node: Node, report: Report) -> None:
    """Make devices and units what the report says; what it no longer lists is taken off offer."""
    Device.objects.filter(node=node).update(present=False)
    Unit.objects.filter(device__node=node).update(active=False)
    by_ordinal = {}
    for reported in sorted(report.devices, key=lambda device: device.ordinal):
        by_ordinal[reported.ordinal], _ = Device.objects.update_or_create(
            identity=reported.identity,
            defaults={
                "node": node,
                "ordinal": reported.ordinal,
                "hardware_class_id": reported.class_slug,
                "slots": reported.slots,
                "memory_mib": reported.memory_mib,
                "present": True,
            },
        )
    for offered in report.units:
        device = by_ordinal[offered.device]
        whole = offered.slots == (0, device.slots)
        Unit.objects.update_or_create(
            device=device,
            slots=NumericRange(*offered.slots),
            defaults={
                "kind": "whole" if whole else "slice",
                "memory_mib": offered.memory_mib,
                "active": True,
            },
        )
    Node.objects.filter(pk=node.pk).update(hardware_class_id=report.devices[0].class_slug)
    node.hardware_class_id = report.devices[0].class_slug
