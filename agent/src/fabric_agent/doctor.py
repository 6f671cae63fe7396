"""What would pass and what would fail, found out offline, with the cause and the remedy."""

import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from fabric_agent import hostfacts
from fabric_agent.assemble import work_folder
from fabric_agent.config import Config
from fabric_agent.problems import AgentProblem, ConfigProblem
from fabric_agent.state import StateFolder
from fabric_agent.workloads.podman import PodmanUnusable, try_podman

PASS, WARN, FAIL = "pass", "warn", "fail"
_LEAST_DISK_GIB = 1.0
_YEAR_OF_RELEASE = 2026


@dataclass(frozen=True)
class Check:
    """One thing looked at. `code` is stable; a pass has no cause and no remedy."""

    code: str
    result: str
    what: str
    cause: str = ""
    remedy: str = ""

    def as_document(self) -> dict[str, Any]:
        """Return the form that `--json` prints."""
        return asdict(self)


def examine(state: StateFolder) -> list[Check]:
    """Run every check; none of them needs the network or changes anything."""
    config = Config()
    checks = list(_enrolment(state))
    try:
        if state.config_path.exists():
            config = state.config()
            checks.append(Check("CONFIG", PASS, f"configuration with driver {config.driver}"))
        else:
            checks.append(
                Check(
                    "CONFIG_MISSING",
                    WARN,
                    "no configuration yet",
                    f"{state.config_path} does not exist",
                    "Enrolment writes it; then set unit_memory_mib to what you offer.",
                )
            )
    except ConfigProblem as problem:
        cause = "; ".join([problem.message, *problem.fields])
        checks.append(Check(problem.code, FAIL, "configuration", cause, problem.remedy))
    for part in (_cpu, _memory, _address_space, _disk, _containers, _clock):
        checks += _guarded(part, state, config)
    return checks


def _guarded(
    part: Callable[[StateFolder, Config], Iterator[Check]], state: StateFolder, config: Config
) -> list[Check]:
    try:
        return list(part(state, config))
    except OSError as error:
        name = part.__name__.strip("_").upper()
        return [
            Check(f"{name}_UNREADABLE", FAIL, name.lower(), str(error), "Run as root, or fix this.")
        ]


def _enrolment(state: StateFolder) -> Iterator[Check]:
    if not state.is_enrolled:
        yield Check(
            "NOT_ENROLLED",
            WARN,
            "not enrolled",
            "no identity in the state folder",
            "Run: fabric-agent enroll --url … --token …",
        )
        return
    try:
        identity = state.identity()
        state.key()
    except AgentProblem as problem:
        yield Check(problem.code, FAIL, "identity and key", problem.message, problem.remedy)
        return
    yield Check("ENROLLED", PASS, f"{identity.node_id} at {identity.url}")


def _cpu(state: StateFolder, config: Config) -> Iterator[Check]:  # noqa: ARG001
    cpu = hostfacts.read_cpu()
    what = f"{cpu.model}: {cpu.cores} of {cpu.cores_present} cores usable, {cpu.instruction_set}"
    if config.driver == "host-cpu" and cpu.cores < cpu.cores_present:
        yield Check(
            "CPU_PARTLY_USABLE",
            WARN,
            what,
            "this process may not use every core",
            "Give the agent all cores you want to offer; only usable ones are offered.",
        )
    else:
        yield Check("CPU", PASS, what)


def _memory(state: StateFolder, config: Config) -> Iterator[Check]:  # noqa: ARG001
    if config.driver == "simulated":
        return
    available, promised = hostfacts.available_memory_mib(), config.unit_memory_mib
    what = f"{available} MiB available, {promised} MiB promised"
    if available < promised:
        yield Check(
            "MEMORY_SHORT",
            FAIL,
            what,
            "the test fills 95 % of the promise and would fail",
            f"Free memory, or set unit_memory_mib to at most {available * 9 // 10}.",
        )
    else:
        yield Check("MEMORY", PASS, what)


def _address_space(state: StateFolder, config: Config) -> Iterator[Check]:  # noqa: ARG001
    soft = resource.getrlimit(resource.RLIMIT_AS)[1]
    if soft != resource.RLIM_INFINITY and soft >> 20 < config.unit_memory_mib + 1024:
        yield Check(
            "ADDRESS_SPACE_LIMITED",
            FAIL,
            f"hard limit of {soft >> 20} MiB on addresses",
            "the promised memory cannot be mapped",
            "Raise LimitAS of the service, or ulimit -v.",
        )


def _disk(state: StateFolder, config: Config) -> Iterator[Check]:
    folder = work_folder(state, config)
    while not folder.exists():
        folder = folder.parent
    disk = hostfacts.read_disk(folder)
    what = f"{disk.free_gib} GiB free ({disk.kind}) under {folder}"
    if not os.access(folder, os.W_OK):
        yield Check(
            "STATE_FOLDER",
            FAIL,
            what,
            f"{folder} cannot be written",
            "Run as root, or use --state.",
        )
    elif disk.free_gib < _LEAST_DISK_GIB:
        yield Check(
            "DISK_FULL",
            FAIL,
            what,
            f"the outbox needs {_LEAST_DISK_GIB} GiB",
            "Free space; nothing metered may be lost.",
        )
    else:
        yield Check("DISK", PASS, what)


def _containers(state: StateFolder, config: Config) -> Iterator[Check]:
    if config.driver == "simulated":
        return
    why, remedy = "switched off in the configuration", "Set containers: auto."
    if config.containers == "auto":
        try:
            podman = try_podman()
        except PodmanUnusable as problem:
            why, remedy = problem.message, problem.remedy
        else:
            yield Check("CONTAINERS", PASS, f"a container ran in {podman}")
            return
    consent = state.is_enrolled and state.identity().accepts_unisolated
    yield Check(
        "NO_CONTAINERS",
        WARN if consent or not state.is_enrolled else FAIL,
        "workloads would run without isolation",
        why,
        f"{remedy} Without containers only buyers who accept that can lease, if you consented.",
    )


def _clock(state: StateFolder, config: Config) -> Iterator[Check]:  # noqa: ARG001
    now = datetime.now(tz=UTC)
    if now.year < _YEAR_OF_RELEASE:
        yield Check(
            "CLOCK_WRONG",
            FAIL,
            f"the clock says {now:%Y-%m-%d}",
            "signatures older than a minute are refused",
            "Set the clock; use chrony or systemd-timesyncd.",
        )
    else:
        yield Check("CLOCK", PASS, f"the clock says {now:%Y-%m-%d %H:%M} UTC")
