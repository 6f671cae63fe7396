"""What this machine is, read from the kernel rather than from tools that can be replaced."""

import hashlib
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

import psutil

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_INSTRUCTION_SETS = (
    ("avx512", {"avx512f", "avx512bw", "avx512dq", "avx512vl"}),
    ("avx2", {"avx2", "fma"}),
    ("avx", {"avx"}),
    ("sse4", {"sse4_2"}),
    ("sve", {"sve"}),
    ("neon", {"asimd"}),
)
_NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "ceph", "glusterfs", "9p"}


@dataclass(frozen=True)
class Cpu:
    """The processors this process may run on."""

    model: str
    cores: int
    cores_present: int
    instruction_set: str
    caches_kib: dict[str, int]


@dataclass(frozen=True)
class Disk:
    """The file system that work is done on."""

    device: str
    kind: str
    free_gib: float


def read_cpu(cpuinfo: str | None = None) -> Cpu:
    """Read model, usable cores, vector instructions and cache sizes."""
    text = cpuinfo if cpuinfo is not None else _read(Path("/proc/cpuinfo"))
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    present = len(re.findall(r"^processor\s*:", text, flags=re.MULTILINE))
    return Cpu(
        model=fields.get("model name") or fields.get("Hardware") or platform.machine(),
        cores=usable_cores(),
        cores_present=present or os.cpu_count() or 1,
        instruction_set=next(
            (name for name, needed in _INSTRUCTION_SETS if needed <= flags), "scalar"
        ),
        caches_kib=_caches(),
    )


def usable_cores() -> int:
    """Return how many cores this process may use, which is fewer than present in a container."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def system_memory_mib() -> int:
    """Return the machine's memory in MiB."""
    return int(psutil.virtual_memory().total) >> 20


def available_memory_mib() -> int:
    """Return what a new process could still allocate, in MiB."""
    return int(psutil.virtual_memory().available) >> 20


def read_disk(folder: Path) -> Disk:
    """Return device, kind and free space of the file system that holds `folder`."""
    device, file_system = _mount_of(folder.resolve())
    free = psutil.disk_usage(str(folder)).free / (1 << 30)
    return Disk(device=device, kind=_disk_kind(device, file_system), free_gib=round(free, 1))


def network_interface() -> str:
    """Return the name of the interface that carries the default route, or an empty text."""
    for line in _read(Path("/proc/net/route")).splitlines()[1:]:
        columns = line.split()
        if len(columns) > 1 and columns[1] == "00000000":
            return columns[0]
    return ""


def network_link_mbit_s(interface: str) -> int | None:
    """Return the link speed the kernel states, or None where it states none (virtual cards)."""
    text = _read(Path(f"/sys/class/net/{interface}/speed")).strip() if interface else ""
    return int(text) if text.isdigit() and int(text) > 0 else None


def device_identity(what: str) -> str:
    """Return the lasting identity of a device of this machine, the same for every enrolment.

    It is a hash, so that the machine's own id is told to no one.
    """
    machine = next((text for path in _MACHINE_IDS if (text := _read(path).strip())), "")
    machine = machine or _read(Path("/sys/class/dmi/id/product_uuid")).strip() or platform.node()
    return hashlib.sha256(f"fabric-device-v1\n{machine}\n{what}".encode()).hexdigest()


def boot_id() -> str:
    """Return the id of this boot: monotonic clocks of two boots cannot be compared."""
    return _read(Path("/proc/sys/kernel/random/boot_id")).strip() or "unknown"


def process_start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None when it is gone.

    Together with the pid this names one process for good, although pids are used again.
    """
    text = _read(Path(f"/proc/{pid}/stat"))
    after_name = text.rpartition(")")[2].split()
    if len(after_name) < 20 or after_name[0] in {"Z", "X"}:
        return None
    return int(after_name[19])


def _caches() -> dict[str, int]:
    caches: dict[str, int] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind = _read(index / "level").strip(), _read(index / "type").strip()
        size = re.fullmatch(r"(\d+)([KM])", _read(index / "size").strip())
        if level and size and kind != "Instruction":
            kib = int(size.group(1)) * (1024 if size.group(2) == "M" else 1)
            caches[f"l{level}"] = kib
    return caches


def _mount_of(path: Path) -> tuple[str, str]:
    """Return (device, file system) of the longest mount point above `path`."""
    best = ("", "", "")
    for line in _read(Path("/proc/self/mounts")).splitlines():
        columns = line.split()
        if len(columns) < 3:
            continue
        device, mount, file_system = columns[0], columns[1], columns[2]
        if path.is_relative_to(mount) and len(mount) >= len(best[1]):
            best = (device, mount, file_system)
    return best[0], best[2]


def _disk_kind(device: str, file_system: str) -> str:
    """Return nvme, ssd, hdd, network or virtual: what the kernel shows, not what is claimed."""
    if file_system in _NETWORK_FILE_SYSTEMS:
        return "network"
    name = re.sub(r"p?\d+$", "", Path(device).name)
    if name.startswith("nvme"):
        return "nvme"
    if not name or name.startswith(("vd", "xvd", "zram", "loop", "overlay", "tmpfs", "dm-")):
        return "virtual"
    rotational = _read(Path(f"/sys/block/{name}/queue/rotational")).strip()
    return {"0": "ssd", "1": "hdd"}.get(rotational, "virtual")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
