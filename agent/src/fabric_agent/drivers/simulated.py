"""Machines that are not there: profiles of real classes, real proofs, and a clock of their own.

Only a node that an operator enrolled as simulated may use this driver. It does the same work as any
other, cut down by the factors the challenge states, and answers with the time its class would take.
"""

import json
import random
from dataclasses import dataclass
from importlib import resources
from typing import Any

from fabric_agent import hostfacts
from fabric_agent.drivers.base import ChallengeRun, Inventory, fact
from fabric_agent.problems import ConfigProblem
from fabric_protocol import challenge

_NOISE = 0.01
_METHOD = "simulated: profile with noise"


@dataclass(frozen=True)
class Profile:
    """What a simulated machine says of itself and how fast it claims to be."""

    class_slug: str
    name: str
    memory_mib: int
    unit_memory_mib: int
    pci_device_id: str
    compute_gops: float
    memory_bandwidth_gb_s: float
    host: dict[str, Any]
    interconnect: str
    peer_bandwidth_gb_s: float
    driver_version: str


def load_profiles() -> dict[str, Profile]:
    """Return every profile by its class."""
    text = resources.files("fabric_agent.drivers").joinpath("profiles.json").read_text("utf-8")
    return {
        row["class"]: Profile(
            class_slug=row["class"],
            **{name: value for name, value in row.items() if name != "class"},
        )
        for row in json.loads(text)
    }


def find_profile(class_slug: str) -> Profile:
    """Return one profile; ConfigProblem names those there are."""
    profiles = load_profiles()
    if class_slug not in profiles:
        raise ConfigProblem(
            "UNKNOWN_PROFILE",
            f"there is no profile {class_slug!r}",
            fields=[f"profile: accepted are {', '.join(sorted(profiles))}"],
        )
    return profiles[class_slug]


class Simulated:
    """A node of one class with some devices; the same seed gives the same machine."""

    name = "simulated"

    def __init__(self, profile: Profile, *, devices: int = 1, seed: str) -> None:
        self._profile, self._count, self._seed = profile, devices, seed
        self._random = random.Random(seed)  # noqa: S311 - noise on figures, no secret

    def inventory(self, *, isolation: str, runtime: str) -> Inventory:
        """Return what the profile says, with a little noise on what would be measured."""
        profile = self._profile
        facts = {
            "device_class": fact(profile.class_slug, "", "simulated: profile"),
            "unit_count": fact(self._count, "", "simulated: profile"),
            "unit_kind": fact("whole", "", "simulated: profile"),
            "memory_mib": fact(profile.unit_memory_mib, "MiB", "simulated: proved by challenge"),
            "interconnect": fact(self._interconnect, "", "simulated: profile"),
            "runtime": fact(runtime, "", "how workloads are started"),
            "driver_version": fact(profile.driver_version, "", "simulated: profile"),
            "interface": fact("http", "", "what a workload offers"),
            "isolation": fact(isolation, "", "how workloads are started"),
        }
        if self._count > 1:
            peers = self._near(profile.peer_bandwidth_gb_s)
            facts["peer_bandwidth_gb_s"] = fact(peers, "GB/s", _METHOD)
        for name, value in profile.host.items():
            measured = name.endswith(("_mb_s", "_mbit_s"))
            facts[name] = fact(
                self._near(value) if measured else value,
                _unit_of(name),
                _METHOD if measured else "simulated: profile",
            )
        return Inventory(
            driver=self.name,
            facts=facts,
            devices=[
                {
                    "ordinal": ordinal,
                    "identity": hostfacts.device_identity(f"simulated:{self._seed}:{ordinal}"),
                    "name": profile.name,
                    "kind": "gpu",
                    "class": profile.class_slug,
                    "memory_mib": profile.memory_mib,
                    "slots": 1,
                    "instruction_set": "",
                    "pci_device_id": profile.pci_device_id,
                }
                for ordinal in range(self._count)
            ],
            units=[
                {"device": ordinal, "slots": [0, 1], "memory_mib": profile.unit_memory_mib}
                for ordinal in range(self._count)
            ],
        )

    def observe(self, *, unit_ordinals: list[int]) -> dict[str, Any]:
        """Return what the profile would show while a lease runs."""
        profile = self._profile
        observed = {
            "device_class": profile.class_slug,
            "unit_count": len(unit_ordinals),
            "unit_kind": "whole",
            "interconnect": self._interconnect,
            "driver_version": profile.driver_version,
            **{
                name: value
                for name, value in profile.host.items()
                if not name.endswith(("_mb_s", "_mbit_s"))
            },
        }
        if self._count > 1:
            observed["peer_bandwidth_gb_s"] = self._near(profile.peer_bandwidth_gb_s)
        return observed

    def start_challenge(
        self, *, nonce: bytes, parameters: dict[str, Any], unit_memory_mib: int
    ) -> ChallengeRun:
        """Do the cut-down work here; what it would have taken is told by the virtual clock."""
        read = challenge.Parameters.from_document(parameters)
        if not read.is_scaled:
            raise ValueError("a simulated node takes scaled challenges only")
        return _SimulatedRun(
            challenge.Prover(nonce, read),
            gops=self._near(self._profile.compute_gops),
            gb_s=self._near(self._profile.memory_bandwidth_gb_s),
            promised_bytes=unit_memory_mib << 20,
        )

    @property
    def _interconnect(self) -> str:
        return self._profile.interconnect if self._count > 1 else "none"

    def _near(self, value: float) -> float:
        return round(float(value) * self._random.uniform(1 - _NOISE, 1 + _NOISE), 1)


class _SimulatedRun:
    def __init__(
        self, prover: challenge.Prover, *, gops: float, gb_s: float, promised_bytes: int
    ) -> None:
        self._prover, self._promised = prover, promised_bytes
        parameters = prover.parameters
        share = len(parameters.devices)
        self._timings = {
            "product_seconds": parameters.operations / share / (gops * 1e9),
            "memory_seconds": parameters.bytes_touched / share / (gb_s * 1e9),
        }

    def commit(self) -> dict[str, Any]:
        """Do the work."""
        return self._prover.commit()

    def answer(self, opening: dict[str, Any]) -> dict[str, Any]:
        """Open it, with the virtual time it took."""
        devices = self._prover.open(opening)
        read_back = round(self._prover.timings["read_back_seconds"], 6)
        return {
            "devices": devices,
            "timings": {**self._timings, "read_back_seconds": read_back},
            "virtual_clock": True,
            "memory_limit": {"kind": "simulated", "promised_bytes": str(self._promised)},
            "bytes_touched": str(self._prover.parameters.bytes_touched),
        }

    def close(self) -> None:
        """Give the memory back."""
        self._prover.close()


_UNITS = {"_mib": "MiB", "_gib": "GiB", "_mb_s": "MB/s", "_mbit_s": "Mbit/s"}


def _unit_of(name: str) -> str:
    return next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")
