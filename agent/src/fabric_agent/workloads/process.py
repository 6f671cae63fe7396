"""Workloads as plain child processes: for nodes whose provider consented, and buyers who accept."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fabric_agent.hostfacts import process_start_ticks
from fabric_agent.workloads import service
from fabric_agent.workloads.base import Handle, Spec, StartFailed

START_SECONDS = 20.0
_LIMIT_LINE = re.compile(r"^Max address space\s+(\d+)", re.MULTILINE)


class ProcessRuntime:
    """Starts the lease's service in a session of its own, so that it outlives the agent."""

    name = "process"
    isolation = "none"
    description = "process"

    def __init__(self, *, supervisor_pid: int | None = None) -> None:
        self._supervisor = supervisor_pid
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, spec: Spec) -> Handle:
        """Start the service and wait until it told its port."""
        status = spec.folder / "status.json"
        status.unlink(missing_ok=True)
        with (spec.folder / "service.log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - our own file, fixed arguments
                [sys.executable, "-I", service.__file__],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=spec.folder,
                start_new_session=True,
                env={"PATH": os.environ.get("PATH", "")},
            )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(self._settings(spec)).encode() + b"\n")
            process.stdin.close()
        self._children[process.pid] = process
        found = self._wait_for(status, process)
        ticks = process_start_ticks(process.pid)
        if ticks is None:
            raise StartFailed("WORKLOAD_DIED", "the service ended as soon as it had started")
        return Handle(
            runtime=self.name,
            pid=process.pid,
            start_ticks=ticks,
            port=int(found["port"]),
            instance=str(found["instance"]),
            base_bytes=int(found["base_bytes"]),
        )

    def is_alive(self, handle: Handle) -> bool:
        """Return whether the process with this pid and this start time runs."""
        if process_start_ticks(handle.pid) == handle.start_ticks:
            return True
        self._reap(handle.pid)
        return False

    def stop(self, handle: Handle) -> None:
        """Ask it to end, then make it."""
        for number, patience in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0)):
            if not self.is_alive(handle):
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(handle.pid, number)
            deadline = time.monotonic() + patience
            while self.is_alive(handle) and time.monotonic() < deadline:
                time.sleep(0.02)
        self._reap(handle.pid)

    def _reap(self, pid: int) -> None:
        """Take the exit status of a child that ended, so that nothing is left of it."""
        child = self._children.pop(pid, None)
        if child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=2.0)

    def memory_mib(self, handle: Handle) -> int | None:
        """Return the process's address limit less what the service itself had mapped."""
        try:
            text = Path(f"/proc/{handle.pid}/limits").read_text(encoding="ascii")
        except OSError:
            return None
        found = _LIMIT_LINE.search(text)
        return (int(found.group(1)) - handle.base_bytes) >> 20 if found else None

    def _settings(self, spec: Spec) -> dict[str, object]:
        supervisor = None
        if self._supervisor is not None:
            supervisor = [self._supervisor, process_start_ticks(self._supervisor)]
        return {
            "lease": spec.lease,
            "token": spec.token,
            "host": spec.listen_host,
            "port": 0,
            "folder": str(spec.folder),
            "memory_bytes": spec.memory_mib << 20,
            "supervisor": supervisor,
        }

    def _wait_for(self, status: Path, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if status.exists():
                return dict(json.loads(status.read_text(encoding="utf-8")))
            if process.poll() is not None:
                raise StartFailed("WORKLOAD_DIED", f"the service ended with {process.returncode}")
            time.sleep(0.02)
        process.kill()
        process.wait(timeout=5)
        raise StartFailed("WORKLOAD_SILENT", f"no sign of the service in {START_SECONDS:.0f} s")
