"""Starts processes that cannot outlive the one that started them, and stops them in order."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_RESTARTS_ALLOWED = 5
_ENDING = (signal.SIGINT, signal.SIGTERM)


class StartFailed(Exception):
    """A process ended, or did not become ready in time; the message ends with its last words."""


def dies_with_parent(
    signal_number: int = signal.SIGTERM, *, user: tuple[int, int] | None = None
) -> Callable[[], None]:
    """Return what a child runs between fork and exec: drop root, then follow its parent's death.

    The order matters: the kernel forgets the death signal when a process changes its user. Must
    be started from the main thread, since the signal follows the thread that forked.
    """
    parent = os.getpid()

    def prepare() -> None:
        if user is not None:
            os.setgroups([])
            os.setgid(user[1])
            os.setuid(user[0])
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
            if os.getppid() != parent:  # it died before we asked to be told
                os.kill(os.getpid(), signal.SIGKILL)

    return prepare


def run_to_end(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user: tuple[int, int] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run a command that ends by itself, or with us; its output and status are returned."""
    return subprocess.run(
        list(command),
        cwd=folder,
        env=None if environment is None else dict(environment),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=dies_with_parent(user=user),
    )


def free_port(preferred: int = 0) -> int:
    """Return a port of the loopback that nobody listens on: `preferred` or the next free one."""
    for port in range(preferred, preferred + 200) if preferred else (0,):
        with socket.socket() as probe:
            # Without this a port just left by our own last run would count as taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return int(probe.getsockname()[1])
    raise StartFailed(f"no port from {preferred} to {preferred + 199} is free")


def accepts_connections(port: int) -> Callable[[], bool]:
    """Return a readiness check: somebody listens on this port of the loopback."""

    def check() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return True
        except OSError:
            return False

    return check


@dataclass
class Child:
    """One process we start, with all it takes to start it again."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str]
    folder: Path
    user: tuple[int, int] | None
    death_signal: int
    stop_signal: int
    restarts: bool
    last_to_stop: bool
    started_at: list[float] = field(default_factory=list)

    def launch(self) -> None:
        """Start the process in a group of its own, its output added to the log."""
        self.started_at.append(time.monotonic())
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                list(self.command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=dict(self.environment),
                process_group=0,
                preexec_fn=dies_with_parent(self.death_signal, user=self.user),  # noqa: PLW1509
            )

    def signal_group(self, number: int) -> None:
        """Send a signal to the process and all it started in its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def last_words(self, lines: int = 12) -> str:
        """Return the end of what the process wrote."""
        text = self.log.read_text(errors="replace").splitlines()
        return "\n".join(f"  {self.name} | {line}" for line in text[-lines:])


class Supervisor:
    """Starts children, restarts the ones that should be, and stops all of them, last one first."""

    def __init__(self, logs: Path, *, restart_pause: float = 1.0) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self.restart_pause = restart_pause
        self.logs = logs
        self.children: list[Child] = []
        self._handlers: dict[int, Any] = {}

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        user: tuple[int, int] | None = None,
        death_signal: int = signal.SIGTERM,
        stop_signal: int = signal.SIGTERM,
        restarts: bool = False,
        last_to_stop: bool = False,
        ready: Callable[[], bool] | None = None,
        timeout: float = 30.0,
    ) -> Child:
        """Start a process in a group of its own, its output in a log, and wait until `ready`."""
        child = Child(
            name=name,
            command=list(command),
            log=self.logs / f"{name}.log",
            environment=dict(os.environ if environment is None else environment),
            folder=folder or Path.cwd(),
            user=user,
            death_signal=death_signal,
            stop_signal=stop_signal,
            restarts=restarts,
            last_to_stop=last_to_stop,
        )
        child.log.unlink(missing_ok=True)
        child.launch()
        self.children.append(child)
        if ready is not None:
            self.wait_until(child, ready, timeout)
        return child

    def wait_until(self, child: Child, ready: Callable[[], bool], timeout: float) -> None:
        """Wait for a child's readiness, but not longer than it lives."""
        deadline = time.monotonic() + timeout
        while not ready():
            if child.process.poll() is not None:
                raise StartFailed(
                    f"{child.name} ended with {child.process.returncode}:\n{child.last_words()}"
                )
            if time.monotonic() > deadline:
                raise StartFailed(
                    f"{child.name} was not ready after {timeout:.0f} s:\n{child.last_words()}"
                )
            time.sleep(0.05)

    def check(self) -> None:
        """Restart what ended and may be restarted; raise StartFailed for anything else."""
        for child in self.children:
            code = child.process.poll()
            if code is None:
                continue
            recent = [at for at in child.started_at if at > time.monotonic() - 60]
            if not child.restarts or len(recent) > _RESTARTS_ALLOWED:
                raise StartFailed(f"{child.name} ended with {code}:\n{child.last_words()}")
            time.sleep(self.restart_pause)
            child.started_at = recent
            child.launch()

    def stop(self, child: Child, *, patience: float = 10.0) -> None:
        """Ask a child's whole group to end, then make it."""
        if child in self.children:
            self.children.remove(child)
        child.signal_group(child.stop_signal)
        try:
            child.process.wait(patience)
        except subprocess.TimeoutExpired:
            child.signal_group(signal.SIGKILL)
            child.process.wait()
        # A group may outlive its leader; nothing of it may outlive us.
        child.signal_group(signal.SIGKILL)

    def stop_all(self) -> None:
        """Stop everything: what stands on the servers at once, then the servers themselves."""
        for child in self.children:
            if not child.last_to_stop:
                child.signal_group(child.stop_signal)
        for last in (False, True):
            for child in reversed(list(self.children)):
                if child.last_to_stop is last:
                    self.stop(child)

    def __enter__(self) -> Self:
        """Hand out itself; from here on Ctrl-C and SIGTERM both end in `__exit__`.

        A shell starts what it puts in the background with SIGINT ignored, and Python keeps it so.
        """
        for number in _ENDING:
            self._handlers[number] = signal.signal(number, signal.default_int_handler)
        return self

    def __exit__(self, *details: object) -> None:
        """Stop everything, whatever happened; a second Ctrl-C must not leave half of it behind."""
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        try:
            self.stop_all()
        finally:
            for number in _ENDING:
                signal.signal(number, self._handlers[number])
