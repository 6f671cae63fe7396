"""Many simulated nodes in one process, each with its own key, folder and clock."""

import logging
import threading
from dataclasses import dataclass
from pathlib import Path

from fabric_agent.agent import Agent
from fabric_agent.assemble import assemble
from fabric_agent.config import Config
from fabric_agent.drivers.simulated import find_profile, load_profiles
from fabric_agent.enrolment import enrol
from fabric_agent.problems import AgentProblem, ConfigProblem
from fabric_agent.state import StateFolder

log = logging.getLogger("fabric_agent.simulation")


@dataclass(frozen=True)
class SimulatedNode:
    """One node to simulate."""

    name: str
    profile: str
    devices: int
    token: str


def plan_nodes(
    tokens: list[str], *, profiles: list[str], devices: int, prefix: str
) -> list[SimulatedNode]:
    """Return one node per token, going round the profiles; all of them when none are named."""
    names = profiles or list(load_profiles())
    for name in names:
        find_profile(name)
    return [
        SimulatedNode(
            name=f"{prefix}{place + 1:02d}",
            profile=names[place % len(names)],
            devices=devices,
            token=token,
        )
        for place, token in enumerate(tokens)
    ]


def prepare_node(node: SimulatedNode, *, url: str, folder: Path, allow_http: bool) -> StateFolder:
    """Enrol a node unless its folder already is; returns the folder."""
    state = StateFolder(folder / node.name)
    if not state.is_enrolled:
        profile = find_profile(node.profile)
        identity = enrol(
            state,
            url=url,
            token=node.token,
            name=node.name,
            allow_http=allow_http,
            config=Config(
                driver="simulated",
                profile=node.profile,
                devices=node.devices,
                unit_memory_mib=profile.unit_memory_mib,
            ),
        )
        log.info("%s enrolled as %s (%s)", node.name, identity.node_id, node.profile)
    return state


def enrolled_folders(folder: Path) -> list[StateFolder]:
    """Return the folders of nodes that were enrolled here before."""
    folders = [StateFolder(path) for path in sorted(folder.glob("*")) if path.is_dir()]
    return [state for state in folders if state.is_enrolled]


def run_nodes(states: list[StateFolder], stop: threading.Event) -> None:
    """Run all agents until `stop`; one that cannot start is named and the others go on."""
    if not states:
        raise ConfigProblem("NO_NODES", "there is no node to simulate: give tokens, one per node")
    agents: list[Agent] = []
    for state in states:
        try:
            agents.append(assemble(state))
        except AgentProblem as problem:
            log.warning("%s: %s: %s", state.path.name, problem.code, problem.message)
    threads = [
        threading.Thread(target=agent.run, name=f"node-{number}", daemon=True)
        for number, agent in enumerate(agents)
    ]
    for thread in threads:
        thread.start()
    stop.wait()
    for agent in agents:
        agent.stop()
    for thread in threads:
        thread.join(timeout=10)
