"""A machine that has proved itself, as providers' own services would leave it."""

import hashlib
from datetime import datetime, timedelta
from typing import Any

from fabric_protocol import dsse, keys, payloads
from listings.domain.kinds import find_kind
from listings.models import Listing
from listings.services import checks, publishing
from providers.domain.reasons import Reason
from providers.models import Challenge, Device, HardwareReport, Node, Provider, Unit
from tests.listings.bodies import BODY
from tests.world import World

KEY = keys.SigningKey.generate()
UNITS = {spec.name: spec.unit for spec in find_kind("accelerator").fields}
SLOW = Reason(
    "COMPUTE_GOPS_TOO_SLOW",
    "compute_gops",
    "20 to 90 GOPS",
    12.5,
    "Compute is slower than this class is.",
    "Stop other work on this machine, then run the test again.",
)
BY_CHALLENGE = {"memory_mib", "compute_gops", "memory_bandwidth_gb_s"}


def facts_of(promise: dict[str, Any], **changes: Any) -> dict[str, dict[str, Any]]:
    """Return the facts of a machine that keeps `promise`, but for `changes`."""
    shown = {**promise, **changes}
    return {
        field: {"value": value, "unit": UNITS[field], "method": f"how {field} was found"}
        for field, value in shown.items()
        if value is not None
    }


def admitted_node(
    world: World,
    *,
    now: datetime,
    name: str = "reykjavik-1",
    provider: Provider | None = None,
    promise: dict[str, Any] | None = None,
    state: str = "admitted",
    simulated: bool = False,
    **shown: Any,
) -> Node:
    """Return a node whose report and passed challenge show `promise`, but for `shown`."""
    promise = promise or BODY["promise"]
    node = Node.objects.create(
        provider=provider or world.provider,
        name=name,
        state=state,
        held_back_reasons=[SLOW.as_json()] if state == "held_back" else [],
        simulated=simulated,
        hardware_class_id=promise["device_class"],
        tier="community",
        isolation=promise["isolation"],
        enrolled_at=now - timedelta(minutes=5),
        admitted_at=now - timedelta(minutes=4),
    )
    show_evidence(node, facts_of(promise, **shown), at=now - timedelta(minutes=4))
    for ordinal in range(promise["unit_count"]):
        device = Device.objects.create(
            node=node,
            ordinal=ordinal,
            identity=f"{name}-{ordinal}",
            hardware_class_id=promise["device_class"],
            memory_mib=promise["memory_mib"],
        )
        Unit.objects.create(
            device=device, kind="whole", slots=(0, 1), memory_mib=promise["memory_mib"]
        )
    return node


def show_evidence(node: Node, facts: dict[str, dict[str, Any]], *, at: datetime) -> None:
    """Store a report and a passed challenge that show `facts`."""
    body = {"facts": {k: v for k, v in facts.items() if k not in BY_CHALLENGE}}
    report = HardwareReport.objects.create(
        node=node,
        envelope=dsse.seal_document(payloads.REPORT, body, KEY),
        digest=hashlib.sha256(f"{node.pk} {at}".encode()).digest(),
        body=body,
        received_at=at,
    )
    Challenge.objects.create(
        node=node,
        report=report,
        purpose="admission",
        state="judged",
        verdict="passed",
        nonce=bytes(32),
        parameters={},
        figures={k: v for k, v in facts.items() if k in BY_CHALLENGE},
        issued_at=at,
        judged_at=at,
        expires_at=at + timedelta(minutes=2),
    )


def published_listing(
    world: World,
    *,
    now: datetime,
    body: dict[str, Any] | None = None,
    name: str = "reykjavik-1",
    **node: Any,
) -> Listing:
    """Return a listing on sale that went through the publishing service and its check."""
    body = body or BODY
    machine = admitted_node(world, now=now, name=name, promise=body["promise"], **node)
    seller = world.dave if machine.provider == world.strangers_provider else world.carol
    listing = publishing.publish(
        actor=world.actor(seller), provider=machine.provider, node=machine, body=body, now=now
    )
    revision = listing.revisions.get()
    check = checks.check_revision(revision=revision, now=now)
    assert check is not None
    assert check.accepted, [row["reason"] for row in check.fields if row["reason"]]
    listing.refresh_from_db()
    return listing
