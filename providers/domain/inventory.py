"""What is wrong with a reported inventory before any work is asked of it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from providers.domain.reasons import Reason
from providers.domain.reports import Report, ReportedDevice

# What vendors' tools show differs a little from the nominal size: reserved pages, ECC, rounding.
# Outside this window it is another product, or a slice shown as a whole device.
MEMORY_LOW, MEMORY_HIGH = 0.90, 1.05

INVENTORY_CHANGED = "INVENTORY_CHANGED"
"""What a node is held back for while a lease on it keeps it from being tested."""


@dataclass(frozen=True)
class ClassFacts:
    """What a hardware class fixes about each of its devices."""

    slug: str
    kind: str
    memory_mib: int | None
    pci_device_ids: Collection[str]


def check_inventory(report: Report, classes: Mapping[str, ClassFacts]) -> list[Reason]:
    """Return every reason to hold the node back that its own report gives, worst first."""
    if not report.devices:
        return [
            Reason(
                "NO_DEVICES",
                "devices",
                "at least 1",
                0,
                "The report lists no accelerator.",
                "Run fabric-agent doctor on the node; it names what it looked for.",
            )
        ]
    reasons = [reason for device in report.devices for reason in _check_device(device, classes)]
    slugs = sorted({device.class_slug for device in report.devices})
    if len(slugs) > 1:
        reasons.append(
            Reason(
                "MIXED_CLASSES",
                "device_class",
                "one class",
                ", ".join(slugs),
                "A node offers devices of one class.",
                "Offer the others through an agent of their own.",
            )
        )
    if not report.units:
        reasons.append(
            Reason(
                "NO_UNITS",
                "unit_count",
                "at least 1",
                0,
                "The report offers no unit of its devices.",
                "Set what the agent may offer in its configuration.",
            )
        )
    return reasons


def compare_offers(proved: Report, reported: Report) -> list[Reason]:
    """Return a reason for each field in which the offer is no longer what was last proved."""
    before, after = proved.offer(), reported.offer()
    return [
        Reason(
            INVENTORY_CHANGED,
            field,
            _in_words(before[field]),
            _in_words(after[field]),
            "The node no longer reports what it proved. The lease on it goes on as it is; nothing"
            " new is placed.",
            "Nothing to do: the node is tested again when the lease on it has ended.",
        )
        for field in before
        if before[field] != after[field]
    ]


def _in_words(value: object) -> object:
    return ", ".join(str(item) for item in value) if isinstance(value, list) else value


def _check_device(device: ReportedDevice, classes: Mapping[str, ClassFacts]) -> list[Reason]:
    known = classes.get(device.class_slug)
    if known is None:
        return [
            Reason(
                "UNKNOWN_CLASS",
                "device_class",
                device.class_slug,
                device.name,
                f"There is no class {device.class_slug}; its figures cannot be judged.",
                "Update the agent, or ask for the class to be added.",
            )
        ]
    reasons = []
    if device.kind != known.kind:
        reasons.append(
            Reason(
                "KIND_MISMATCH",
                "device_class",
                known.kind,
                device.kind,
                f"Device {device.ordinal} is reported as a {device.kind}.",
                "Update the agent.",
            )
        )
    if known.pci_device_ids and device.pci_device_id not in known.pci_device_ids:
        reasons.append(
            Reason(
                "PCI_ID_MISMATCH",
                "device_class",
                ", ".join(sorted(known.pci_device_ids)),
                device.pci_device_id or "not reported",
                f"Device {device.ordinal} does not carry a PCI id of its class.",
                "Check which card is fitted; PCIe, SXM and NVL cards are different classes.",
            )
        )
    if known.memory_mib is not None:
        low, high = known.memory_mib * MEMORY_LOW, known.memory_mib * MEMORY_HIGH
        if not low <= device.memory_mib <= high:
            reasons.append(
                Reason(
                    "MEMORY_OUTSIDE_CLASS",
                    "memory_mib",
                    known.memory_mib,
                    device.memory_mib,
                    f"Device {device.ordinal} has a memory size that its class does not come in.",
                    "A slice is offered as a slice; switch the partition mode off for a whole one.",
                )
            )
    return reasons
