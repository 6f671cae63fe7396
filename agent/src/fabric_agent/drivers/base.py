"""What the rest of the agent may ask of any driver."""

from dataclasses import dataclass
from typing import Any, Protocol

from fabric_protocol.payloads import DeviceReport, Fact, UnitReport


@dataclass(frozen=True)
class Inventory:
    """What a driver found: facts about the host, its devices, and the units offered of them."""

    driver: str
    facts: dict[str, Fact]
    devices: list[DeviceReport]
    units: list[UnitReport]


class ChallengeRun(Protocol):
    """A challenge in progress: first the commitment, then, once told what to open, the answer."""

    def commit(self) -> dict[str, Any]:
        """Do the work and return the commitment."""
        ...

    def answer(self, opening: dict[str, Any]) -> dict[str, Any]:
        """Return devices, timings, virtual_clock, memory_limit and bytes_touched."""
        ...

    def close(self) -> None:
        """Give back what the work took; safe to call twice."""
        ...


class Driver(Protocol):
    """One kind of accelerator."""

    name: str

    def inventory(self, *, isolation: str, runtime: str) -> Inventory:
        """Return what there is, measured where it can be."""
        ...

    def observe(self, *, unit_ordinals: list[int]) -> dict[str, Any]:
        """Return what can be read now, cheaply, about units in use: field → value."""
        ...

    def start_challenge(
        self, *, nonce: bytes, parameters: dict[str, Any], unit_memory_mib: int
    ) -> ChallengeRun:
        """Begin the work of a challenge."""
        ...


def fact(value: Any, unit: str, method: str) -> Fact:
    """Return one fact; a value of None says that it was not measured, and the method why."""
    return {"value": value, "unit": unit, "method": method}
