"""Real agents for end-to-end tests: the command itself, in processes that the test owns."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from fabric.lib.clock import utc_now
from providers.models import Node
from providers.services.enrolment import create_token
from tests.world import World

PATIENCE_SECONDS = 180.0


@dataclass
class Machine:
    """A machine with an agent: a state folder, and the process while it runs."""

    folder: Path
    url: str
    process: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        """The agent's state folder."""
        return self.folder / "state"

    @property
    def log(self) -> str:
        """What the agent said so far."""
        path = self.folder / "agent.log"
        return path.read_text() if path.exists() else ""

    def command(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run one command of the agent to its end."""
        return subprocess.run(
            [sys.executable, "-m", "fabric_agent", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            env={**os.environ, "FABRIC_AGENT_STATE": str(self.state), **self.environment},
            check=False,
        )

    def enrol(self, token: str, *, name: str = "test-node", memory_mib: int = 256) -> str:
        """Enrol; returns what the command printed."""
        done = self.command(
            *("enroll", "--url", self.url, "--token", token),
            *("--name", name, "--memory-mib", str(memory_mib)),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *arguments: str) -> None:
        """Start `fabric-agent run`, or another command that goes on."""
        with (self.folder / "agent.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fabric_agent", *(arguments or ("run",))],
                stdout=log,
                stderr=log,
                env={**os.environ, "FABRIC_AGENT_STATE": str(self.state), **self.environment},
            )

    def kill(self) -> None:
        """Kill the agent where it stands, as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask the agent to end."""
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(timeout=20)
        self.process = None


def new_token(world: World, *, simulated: bool = False, unisolated: bool = True) -> str:
    """Return an enrolment token of Carol's provider; Olga makes those for simulation."""
    person = world.olga if simulated else world.carol
    text, _ = create_token(
        provider=world.provider,
        actor=world.actor(person),
        now=utc_now(),
        accepts_unisolated=unisolated,
        simulated=simulated,
    )
    return text


T = TypeVar("T")


def wait_for(
    look: Callable[[], T | None],
    *,
    what: str,
    machine: Machine | None = None,
    seconds: float = PATIENCE_SECONDS,
) -> T:
    """Return what `look` finds, or fail naming what did not come, with the agent's log."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            log = machine.log if machine else ""
            raise AssertionError(f"{what} did not come within {seconds:.0f} s\n{log[-4000:]}")
        time.sleep(0.1)


def node_in(state: str, name: str = "test-node") -> Callable[[], Node | None]:
    """Return a look that finds the named node once it is in `state`."""
    return lambda: Node.objects.filter(name=name, state=state).first()
