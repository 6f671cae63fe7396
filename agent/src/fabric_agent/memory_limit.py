"""A limit on this process's further memory: a cgroup where one may be made, else RLIMIT_AS."""

import contextlib
import os
import resource
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

_ROOT = Path("/sys/fs/cgroup")
RUNTIME_BYTES = 32 << 20
"""What interpreter and libraries may take besides; stated in the proof with the limit."""


class MemoryLimit:
    """While entered, this process cannot take more than `promised_bytes` and the runtime's share.

    A cgroup counts pages, and pages taken before the process entered it stay with the old one, so
    its limit is the promise itself. RLIMIT_AS counts addresses, so what is mapped already is added.
    """

    def __init__(self, promised_bytes: int, *, root: Path = _ROOT) -> None:
        self._promised = promised_bytes
        self._root = root
        self._group: Path | None = None
        self._home: Path | None = None
        self._kind = "rlimit_as"
        self._limit = 0
        self._before = resource.getrlimit(resource.RLIMIT_AS)

    def __enter__(self) -> Self:
        if not self._enter_cgroup():
            mapped = int(psutil.Process().memory_info().vms)
            self._limit = mapped + self._promised + RUNTIME_BYTES
            resource.setrlimit(resource.RLIMIT_AS, (self._limit, self._before[1]))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._group is None:
            resource.setrlimit(resource.RLIMIT_AS, self._before)
            return
        with contextlib.suppress(OSError):
            if self._home is not None:
                (self._home / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
            self._group.rmdir()

    def as_document(self) -> dict[str, Any]:
        """Return what the proof states about the limit."""
        return {
            "kind": self._kind,
            "limit_bytes": str(self._limit),
            "promised_bytes": str(self._promised),
            "runtime_bytes": str(RUNTIME_BYTES),
        }

    def _enter_cgroup(self) -> bool:
        for kind, parent, file in self._hierarchies():
            group = parent / f"fabric-challenge-{os.getpid()}"
            limit = self._promised + RUNTIME_BYTES
            try:
                group.mkdir()
                (group / file).write_text(str(limit), encoding="ascii")
                (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
            except OSError:
                with contextlib.suppress(OSError):
                    group.rmdir()
                continue
            self._group, self._home = group, parent
            self._kind, self._limit = kind, limit
            return True
        return False

    def _hierarchies(self) -> list[tuple[str, Path, str]]:
        """Return (kind, this process's group, name of the limit file) for each version present."""
        found = []
        for line in _lines(Path("/proc/self/cgroup")):
            number, controllers, path = line.split(":", 2)
            if number == "0" and (self._root / "cgroup.controllers").exists():
                found.append(("cgroup_v2", self._root / path.lstrip("/"), "memory.max"))
            elif "memory" in controllers.split(","):
                home = self._root / "memory" / path.lstrip("/")
                found.append(("cgroup_v1", home, "memory.limit_in_bytes"))
        return [row for row in found if (row[1] / "cgroup.procs").exists()]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
