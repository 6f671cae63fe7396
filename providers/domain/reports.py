"""Reading a hardware report: what a node says it is, checked field by field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabric.lib.errors import FieldError, InvalidInput

VERSION = 1
DRIVERS = ("host-cpu", "simulated")
ISOLATIONS = ("none", "container")
MAX_DEVICES = 64
MAX_UNITS = 512
MAX_FACTS = 200
MAX_SLOTS = 64
MAX_MEMORY_MIB = 1 << 24  # 16 TiB on one device: more than anything sold

_REPORT_FIELDS = frozenset(
    {"v", "driver", "agent_version", "host", "facts", "devices", "units", "isolation"}
)


@dataclass(frozen=True)
class ReportedDevice:
    """A device as its node describes it."""

    ordinal: int
    identity: str
    name: str
    kind: str
    class_slug: str
    memory_mib: int
    slots: int
    instruction_set: str
    pci_device_id: str | None


@dataclass(frozen=True)
class ReportedUnit:
    """A unit as its node offers it: slots [first, last) of the device at `device`."""

    device: int
    slots: tuple[int, int]
    memory_mib: int


@dataclass(frozen=True)
class Report:
    """A whole report whose shape is sound; whether it is true is another question."""

    driver: str
    agent_version: str
    isolation: str
    facts: Mapping[str, Mapping[str, Any]]
    devices: tuple[ReportedDevice, ...]
    units: tuple[ReportedUnit, ...]

    def offer(self) -> dict[str, Any]:
        """Return what a change of makes the machine prove itself anew, field by field.

        Speeds of disk and network are not in it: they are never the same twice.
        """
        devices = sorted(self.devices, key=lambda device: device.ordinal)
        return {
            "driver": self.driver,
            "isolation": self.isolation,
            "cpu_cores": self.facts.get("cpu_cores", {}).get("value"),
            "device_class": [device.class_slug for device in devices],
            "device_name": [device.name for device in devices],
            "device_identity": [device.identity for device in devices],
            "memory_mib": [device.memory_mib for device in devices],
            "instruction_set": [device.instruction_set for device in devices],
            "pci_device_id": [device.pci_device_id for device in devices],
            "slots": [device.slots for device in devices],
            "units": sorted([u.device, list(u.slots), u.memory_mib] for u in self.units),
        }


class _Reader:
    """Collects every broken field instead of stopping at the first."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def refuse(self, field: str, reason: str, accepted: str) -> None:
        self.errors.append(FieldError(field, reason, accepted))

    def whole(self, value: object, field: str, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.refuse(field, "not acceptable", f"a whole number from {low} to {high}")
            return low
        return value

    def text(self, value: object, field: str, longest: int, *, least: int = 1) -> str:
        if not isinstance(value, str) or not least <= len(value) <= longest:
            self.refuse(field, "not acceptable", f"a text of {least} to {longest} characters")
            return ""
        return value

    def one_of(self, value: object, field: str, accepted: Sequence[str]) -> str:
        if not isinstance(value, str) or value not in accepted:
            self.refuse(field, "not acceptable", f"one of {', '.join(accepted)}")
            return accepted[0]
        return value

    def rows(self, value: object, field: str, most: int) -> list[Mapping[str, Any]]:
        if not isinstance(value, list) or len(value) > most:
            self.refuse(field, "not acceptable", f"a list of at most {most} objects")
            return []
        if not all(isinstance(row, dict) for row in value):
            self.refuse(field, "not acceptable", "a list of objects")
            return []
        return value


def read_report(body: object) -> Report:
    """Return the report in `body`, or raise InvalidInput naming every broken field."""
    if not isinstance(body, dict):
        raise InvalidInput("A report is a JSON object.")
    reader = _Reader()
    for name in sorted(set(body) - _REPORT_FIELDS):
        reader.refuse(str(name)[:80], "unknown field", ", ".join(sorted(_REPORT_FIELDS)))
    if body.get("v") != VERSION:
        reader.refuse("v", "unknown version", str(VERSION))
    if not isinstance(body.get("host"), dict):
        reader.refuse("host", "missing", "an object with hostname, os and kernel")
    devices = tuple(
        _read_device(reader, row, f"devices.{place}")
        for place, row in enumerate(reader.rows(body.get("devices"), "devices", MAX_DEVICES))
    )
    units = tuple(
        _read_unit(reader, row, f"units.{place}")
        for place, row in enumerate(reader.rows(body.get("units"), "units", MAX_UNITS))
    )
    report = Report(
        driver=reader.one_of(body.get("driver"), "driver", DRIVERS),
        agent_version=reader.text(body.get("agent_version"), "agent_version", 32),
        isolation=reader.one_of(body.get("isolation"), "isolation", ISOLATIONS),
        facts=_read_facts(reader, body.get("facts")),
        devices=devices,
        units=units,
    )
    if not reader.errors:
        _check_places(reader, report)
    if reader.errors:
        raise InvalidInput("The report is not acceptable.", errors=tuple(reader.errors))
    return report


def _read_device(reader: _Reader, row: Mapping[str, Any], at: str) -> ReportedDevice:
    pci = row.get("pci_device_id")
    return ReportedDevice(
        ordinal=reader.whole(row.get("ordinal"), f"{at}.ordinal", 0, MAX_DEVICES - 1),
        identity=reader.text(row.get("identity"), f"{at}.identity", 128, least=8),
        name=reader.text(row.get("name"), f"{at}.name", 200),
        kind=reader.one_of(row.get("kind"), f"{at}.kind", ("cpu", "gpu")),
        class_slug=reader.text(row.get("class"), f"{at}.class", 60),
        memory_mib=reader.whole(row.get("memory_mib"), f"{at}.memory_mib", 1, MAX_MEMORY_MIB),
        slots=reader.whole(row.get("slots"), f"{at}.slots", 1, MAX_SLOTS),
        instruction_set=reader.text(
            row.get("instruction_set") or "", f"{at}.instruction_set", 80, least=0
        ),
        pci_device_id=None if pci is None else reader.text(pci, f"{at}.pci_device_id", 9),
    )


def _read_unit(reader: _Reader, row: Mapping[str, Any], at: str) -> ReportedUnit:
    slots = row.get("slots")
    first = last = 0
    if isinstance(slots, list) and len(slots) == 2:
        first = reader.whole(slots[0], f"{at}.slots", 0, MAX_SLOTS - 1)
        last = reader.whole(slots[1], f"{at}.slots", 1, MAX_SLOTS)
    if first >= last:
        reader.refuse(f"{at}.slots", "not a range", "[first, last) with first below last")
    return ReportedUnit(
        device=reader.whole(row.get("device"), f"{at}.device", 0, MAX_DEVICES - 1),
        slots=(first, last),
        memory_mib=reader.whole(row.get("memory_mib"), f"{at}.memory_mib", 1, MAX_MEMORY_MIB),
    )


def _read_facts(reader: _Reader, value: object) -> dict[str, Mapping[str, Any]]:
    if not isinstance(value, dict) or len(value) > MAX_FACTS:
        reader.refuse("facts", "not acceptable", f"an object of at most {MAX_FACTS} facts")
        return {}
    for name, fact in value.items():
        if not isinstance(fact, dict) or "value" not in fact or len(name) > 60:
            reader.refuse(
                f"facts.{name[:60]}", "not acceptable", "an object with value, unit and method"
            )
    return value


def _check_places(reader: _Reader, report: Report) -> None:
    slots_of = {device.ordinal: device for device in report.devices}
    if len(slots_of) < len(report.devices):
        reader.refuse("devices", "two devices in one place", "each ordinal once")
    identities = {device.identity for device in report.devices}
    if len(identities) < len(report.devices):
        reader.refuse("devices", "one device twice", "each identity once")
    for place, unit in enumerate(report.units):
        device = slots_of.get(unit.device)
        if device is None:
            reader.refuse(f"units.{place}.device", "no such device", "an ordinal of devices")
        elif unit.slots[1] > device.slots:
            reader.refuse(f"units.{place}.slots", "beyond the device", f"up to {device.slots}")
        elif unit.memory_mib > device.memory_mib:
            reader.refuse(
                f"units.{place}.memory_mib", "more than the device", f"up to {device.memory_mib}"
            )
    if len({(unit.device, unit.slots) for unit in report.units}) < len(report.units):
        reader.refuse("units", "one unit twice", "each range of slots once")
