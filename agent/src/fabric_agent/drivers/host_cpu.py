"""The host CPU as an accelerator class of its own, so that the whole product runs anywhere."""

import platform
from pathlib import Path
from typing import Any

from fabric_agent import hostfacts
from fabric_agent.challenge_process import ChallengeProcess
from fabric_agent.drivers.base import ChallengeRun, Inventory, fact
from fabric_agent.measure import DiskSpeed, measure_disk

CLASS_SLUG = "host-cpu"


class HostCpu:
    """One device: all cores this agent may use; one unit with the memory the provider promises."""

    name = "host-cpu"

    def __init__(self, *, unit_memory_mib: int, work_folder: Path) -> None:
        self._memory_mib = unit_memory_mib
        self._folder = work_folder
        self._cpu = hostfacts.read_cpu()

    def inventory(self, *, isolation: str, runtime: str) -> Inventory:
        """Return the machine's facts; the disk is measured, which takes about a second."""
        cpu, disk = self._cpu, hostfacts.read_disk(self._folder)
        interface = hostfacts.network_interface()
        link = hostfacts.network_link_mbit_s(interface)
        not_measured = "not measured: the control plane offers no transfer to time"
        read, write, how = self._disk_speed()
        facts = {
            "device_class": fact(CLASS_SLUG, "", "the processors this agent may use"),
            "unit_count": fact(1, "", "one unit of all usable cores"),
            "unit_kind": fact("whole", "", "configuration"),
            "memory_mib": fact(self._memory_mib, "MiB", "configuration; proved by challenge"),
            "cpu_model": fact(cpu.model, "", "/proc/cpuinfo"),
            "cpu_cores": fact(cpu.cores, "", "scheduler affinity"),
            "cpu_cores_present": fact(cpu.cores_present, "", "/proc/cpuinfo"),
            "instruction_set": fact(cpu.instruction_set, "", "processor flags"),
            "system_memory_mib": fact(hostfacts.system_memory_mib(), "MiB", "/proc/meminfo"),
            "disk_kind": fact(disk.kind, "", "/sys/block and mount table"),
            "disk_gib": fact(disk.free_gib, "GiB", "free space of the work folder"),
            "disk_read_mb_s": fact(read, "MB/s", how),
            "disk_write_mb_s": fact(write, "MB/s", how),
            "network_interface": fact(interface or None, "", "default route"),
            "network_link_mbit_s": fact(link, "Mbit/s", "link speed the kernel states"),
            "network_down_mbit_s": fact(None, "Mbit/s", not_measured),
            "network_up_mbit_s": fact(None, "Mbit/s", not_measured),
            "interconnect": fact("none", "", "one device"),
            "runtime": fact(runtime, "", "how workloads are started"),
            "driver_version": fact(platform.release(), "", "kernel release"),
            "interface": fact("http", "", "what a workload offers"),
            "isolation": fact(isolation, "", "how workloads are started"),
        }
        for level, kib in cpu.caches_kib.items():
            facts[f"cpu_cache_{level}_kib"] = fact(kib, "KiB", "/sys/devices/system/cpu")
        return Inventory(
            driver=self.name,
            facts=facts,
            devices=[
                {
                    "ordinal": 0,
                    "identity": hostfacts.device_identity(CLASS_SLUG),
                    "name": cpu.model,
                    "kind": "cpu",
                    "class": CLASS_SLUG,
                    "memory_mib": max(self._memory_mib, hostfacts.system_memory_mib()),
                    "slots": 1,
                    "instruction_set": cpu.instruction_set,
                    "pci_device_id": None,
                }
            ],
            units=[{"device": 0, "slots": [0, 1], "memory_mib": self._memory_mib}],
        )

    def observe(self, *, unit_ordinals: list[int]) -> dict[str, Any]:
        """Return what reading the kernel again says now; nothing here takes the tenant's time."""
        cpu, disk = hostfacts.read_cpu(), hostfacts.read_disk(self._folder)
        return {
            "device_class": CLASS_SLUG,
            "unit_count": len(unit_ordinals),
            "unit_kind": "whole",
            "cpu_model": cpu.model,
            "cpu_cores": cpu.cores,
            "instruction_set": cpu.instruction_set,
            "system_memory_mib": hostfacts.system_memory_mib(),
            "disk_kind": disk.kind,
            "disk_gib": disk.free_gib,
            "interconnect": "none",
            "driver_version": platform.release(),
        }

    def start_challenge(
        self, *, nonce: bytes, parameters: dict[str, Any], unit_memory_mib: int
    ) -> ChallengeRun:
        """Do the work in a process of its own, whose memory is limited to the promise."""
        return ChallengeProcess(nonce=nonce, parameters=parameters, unit_memory_mib=unit_memory_mib)

    def _disk_speed(self) -> tuple[float | None, float | None, str]:
        try:
            speed: DiskSpeed = measure_disk(self._folder)
        except OSError as error:
            return None, None, f"not measured: {error.strerror}"
        how = "64 MiB in 1 MiB blocks, " + ("direct" if speed.direct else "through the page cache")
        return speed.read_mb_s, speed.write_mb_s, how
