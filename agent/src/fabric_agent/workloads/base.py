"""What the agent asks of a way to run workloads."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from fabric_agent.problems import AgentProblem


class StartFailed(AgentProblem):
    """The workload could not be started; the detail is shown to buyer and provider."""


@dataclass(frozen=True)
class Spec:
    """What to start: never written to a disk, since it carries the lease's token."""

    lease: str
    token: str
    memory_mib: int
    folder: Path
    listen_host: str
    cores: int

    def __repr__(self) -> str:
        return f"Spec({self.lease})"


@dataclass(frozen=True)
class Handle:
    """How to find a started workload again, also after the agent was killed."""

    runtime: str
    pid: int
    start_ticks: int
    port: int
    instance: str
    base_bytes: int = 0
    container: str = ""

    def as_document(self) -> dict[str, Any]:
        """Return the form that is kept in the outbox database."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "Handle":
        """Read the kept form."""
        return cls(**document)


class Runtime(Protocol):
    """A way to run workloads."""

    name: str
    isolation: str
    description: str

    def start(self, spec: Spec) -> Handle:
        """Start a workload; StartFailed when it did not come up."""
        ...

    def is_alive(self, handle: Handle) -> bool:
        """Return whether this very workload still runs."""
        ...

    def stop(self, handle: Handle) -> None:
        """End it, also when it does not listen; safe to call twice."""
        ...

    def memory_mib(self, handle: Handle) -> int | None:
        """Return what the tenant can allocate, read back from the kernel; None if unreadable."""
        ...
