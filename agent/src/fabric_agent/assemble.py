"""Puts an agent together from its state folder."""

import logging
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

from fabric_agent.agent import Agent, Parts, now_instant
from fabric_agent.client import ControlPlane
from fabric_agent.config import Config
from fabric_agent.drivers.base import Driver
from fabric_agent.drivers.host_cpu import HostCpu
from fabric_agent.drivers.simulated import Simulated, find_profile
from fabric_agent.metering.outbox import Outbox
from fabric_agent.problems import StateProblem
from fabric_agent.state import DEFAULT_FOLDER, StateFolder
from fabric_agent.workloads.base import Runtime
from fabric_agent.workloads.manager import Workloads
from fabric_agent.workloads.podman import PodmanUnusable, find_podman
from fabric_agent.workloads.process import ProcessRuntime
from fabric_agent.workloads.threads import ThreadRuntime

log = logging.getLogger("fabric_agent")

SUPERVISOR_VARIABLE = "FABRIC_AGENT_SUPERVISOR_PID"


def assemble(state: StateFolder) -> Agent:
    """Return the agent of an enrolled folder; problems name what is missing or wrong."""
    identity, key, config = state.identity(), state.key(), state.config()
    if config.driver == "simulated" and not identity.simulated:
        raise StateProblem(
            "NOT_SIMULATED",
            "this node was not enrolled as simulated, so it cannot use the simulated driver",
            remedy="Set driver: host-cpu, or enrol with a token an operator made for simulation.",
        )
    driver = make_driver(config, node=identity.node_id, work_folder=work_folder(state, config))
    outbox = Outbox(state.outbox_path)
    runtimes = find_runtimes(
        config,
        accepts_unisolated=identity.accepts_unisolated,
        store=state.path / "containers",
    )
    workloads = Workloads(
        outbox,
        folder=state.leases_path,
        runtimes=runtimes,
        accepts_unisolated=identity.accepts_unisolated,
        listen_host=config.listen_host,
        advertise_host=config.advertise_host,
    )
    parts = Parts(
        state=state,
        identity=identity,
        key=key,
        plane=ControlPlane(identity.url, key=key, server_key=identity.server_key),
        driver=driver,
        runtimes=runtimes,
        outbox=outbox,
        workloads=workloads,
        unit_memory_mib=config.unit_memory_mib,
        clock=now_instant,
    )
    return Agent(parts)


def make_driver(config: Config, *, node: str, work_folder: Path) -> Driver:
    """Return the driver the configuration names."""
    if config.driver == "simulated":
        return Simulated(find_profile(config.profile), devices=config.devices, seed=node)
    return HostCpu(unit_memory_mib=config.unit_memory_mib, work_folder=work_folder)


def find_runtimes(
    config: Config, *, accepts_unisolated: bool, store: Path | None = None
) -> list[Runtime]:
    """Return the ways this node can run workloads, the best first.

    Where there are no containers, the log says why.
    """
    if config.driver == "simulated":
        return [ThreadRuntime(own_pid=os.getpid())]
    runtimes: list[Runtime] = []
    if config.containers == "auto":
        try:
            runtimes.append(find_podman(store=store or DEFAULT_FOLDER / "containers"))
        except PodmanUnusable as problem:
            log.warning("no containers: %s: %s", problem.code, problem.message)
    if accepts_unisolated:
        supervisor = os.environ.get(SUPERVISOR_VARIABLE, "")
        pid = int(supervisor) if supervisor.isdigit() else None
        runtimes.append(ProcessRuntime(supervisor_pid=pid))
    return runtimes


def work_folder(state: StateFolder, config: Config) -> Path:
    """Return where workloads keep their files: what disk facts are about."""
    return Path(config.work_folder) if config.work_folder else state.path


def local_address(url: str) -> str:
    """Return this machine's address on the way to the control plane."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        family, *_, place = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(place)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
