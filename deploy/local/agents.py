"""The agents of a local exchange: a real one on this machine, and one process of simulated ones."""

import os
import time
from pathlib import Path
from typing import Any

import httpx
import yaml

from deploy.local.deployment import Deployment
from deploy.local.processes import StartFailed, run_to_end
from deploy.local.venv import PYTHON, ROOT
from fabric_agent.client import ControlPlane
from fabric_agent.listing_files import fetch_draft, publish_listing
from fabric_agent.problems import AgentProblem
from fabric_agent.state import StateFolder

MEMORY_MIB = 1024
_ADMISSION_SECONDS = 300
# Speeds vary from run to run; what is promised should still be kept on a busy day.
_MARGIN = {
    **dict.fromkeys(("compute_gops", "memory_bandwidth_gb_s"), 0.9),
    **dict.fromkeys(("peer_bandwidth_gb_s", "disk_gib"), 0.9),
    # A disk shared with others is read at a third of its speed one minute and whole the next.
    **dict.fromkeys(("disk_read_mb_s", "disk_write_mb_s"), 0.2),
    **dict.fromkeys(("network_down_mbit_s", "network_up_mbit_s"), 0.5),
}


_ROUND_FROM = 100  # above it nobody reads the decimals


def agent_command(*arguments: str) -> list[str]:
    """Return how to call the agent's command line."""
    return [str(PYTHON), "-m", "fabric_agent", *arguments]


def call_agent(deployment: Deployment, *arguments: str) -> str:
    """Run one command of the agent to its end and return what it printed."""
    done = run_to_end(agent_command(*arguments), environment=deployment.environment, folder=ROOT)
    if done.returncode != 0:
        told = (done.stderr or done.stdout).strip()
        raise StartFailed(f"fabric-agent {arguments[0]} failed:\n{told}")
    return done.stdout


def host_folder(deployment: Deployment) -> Path:
    """Return the state folder of the agent on this machine."""
    return deployment.folder / "agent"


def enrol_host(deployment: Deployment, token: str, name: str) -> str:
    """Enrol this machine and return what the agent said."""
    return call_agent(
        deployment,
        *("enroll", "--url", deployment.url, "--token", token, "--name", name),
        *("--memory-mib", str(MEMORY_MIB), "--state", str(host_folder(deployment))),
    )


def run_host(deployment: Deployment) -> None:
    """Start the agent of this machine; its workloads end with us, not with the agent."""
    deployment.start_agent(
        "agent",
        agent_command("run", "--state", str(host_folder(deployment))),
        {"FABRIC_AGENT_SUPERVISOR_PID": str(os.getpid())},
    )


def start_host(deployment: Deployment) -> None:
    """Enrol this machine unless it is enrolled, and run its agent."""
    host = deployment.cast["host"]
    if host["token"]:
        enrol_host(deployment, host["token"], host["name"])
    run_host(deployment)


def start_fleet(deployment: Deployment) -> None:
    """Run all simulated nodes in one process; those enrolled before carry on."""
    nodes = deployment.cast["simulated"]
    folder = deployment.folder / "fleet"
    folder.mkdir(mode=0o700, exist_ok=True)
    tokens = deployment.folder / "fleet-tokens"
    tokens.touch(mode=0o600)
    # A line for every node, so that numbers and classes stay the same; a known one needs no token.
    tokens.write_text("".join(f"{node['token'] or 'enrolled'}\n" for node in nodes))
    deployment.start_agent(
        "fleet",
        agent_command(
            *("simulate", "--url", deployment.url, "--token-file", str(tokens)),
            *(part for node in nodes for part in ("--profile", node["class"])),
            *("--prefix", "sim-", "--state", str(folder)),
        ),
        {},
    )


def count_admitted(deployment: Deployment) -> str:
    """Say how many of the simulated nodes are admitted by now."""
    nodes = deployment.cast["simulated"]
    states = [standing_of(_folder_of(deployment, node)).get("state") for node in nodes]
    return f"{states.count('admitted')} of {len(nodes)} admitted meanwhile"


def publish_all(deployment: Deployment) -> None:
    """Publish a listing for every node as it is admitted, and see each of them on sale.

    A node that is held back is named with the reasons, and the others go on.
    """
    waiting = [
        node
        for node in [deployment.cast["host"], *deployment.cast["simulated"]]
        if not _offer_file(deployment, node).exists()
    ]
    published: set[str] = set()
    deadline = time.monotonic() + _ADMISSION_SECONDS
    while waiting or published:
        for node in list(waiting):
            standing = standing_of(_folder_of(deployment, node))
            if standing.get("state") == "held_back":
                waiting.remove(node)
                deployment.progress.say(f"{node['name']} is held back:{_reasons_of(standing)}")
            elif standing.get("state") == "admitted":
                waiting.remove(node)
                published.add(_publish(deployment, node))
        published -= {listing for listing in published if _is_on_sale(deployment, listing)}
        deployment.supervisor.check()
        if time.monotonic() > deadline:
            names = ", ".join([*(node["name"] for node in waiting), *sorted(published)])
            raise StartFailed(f"not on sale after {_ADMISSION_SECONDS} s: {names}")
        time.sleep(0.3)


def _publish(deployment: Deployment, node: dict[str, Any]) -> str:
    """Publish an admitted node's listing and return the listing's id."""
    state = _folder_of(deployment, node)
    offer = make_offer(state, title=node["title"], price_micros=node["price_micros"], place=node)
    path = _offer_file(deployment, node)
    path.write_text(yaml.safe_dump(offer, sort_keys=False))
    return str(publish_listing(state, path)["id"])


def _reasons_of(standing: dict[str, Any]) -> str:
    """Return a line for each reason, and what helps."""
    reasons = standing.get("held_back_reasons") or []
    return "".join(f"\n         {reason['detail']} {reason['remedy']}" for reason in reasons)


def _is_on_sale(deployment: Deployment, listing: str) -> bool:
    """Tell whether a stranger can see a listing's page."""
    answer = httpx.get(f"{deployment.url}/listings/{listing}/", timeout=20)
    return answer.status_code == httpx.codes.OK


def standing_of(state: StateFolder) -> dict[str, Any]:
    """Return how the exchange sees a node, asked with the node's own key; empty if it cannot say."""
    if not state.is_enrolled:
        return {}
    identity = state.identity()
    plane = ControlPlane(identity.url, key=state.key(), server_key=identity.server_key, tries=1)
    try:
        return dict(plane.get("nodes/self/").document())
    except AgentProblem:
        return {}
    finally:
        plane.close()


def make_offer(
    state: StateFolder, *, title: str, price_micros: int, place: dict[str, Any]
) -> dict[str, Any]:
    """Return a listing that promises a little less than the node has shown."""
    draft = fetch_draft(state)
    return {
        **draft,
        "title": title,
        "region": place["region"],
        "country": place["country"],
        "max_hours": 72,
        "promise": {name: _promised(name, value) for name, value in draft["promise"].items()},
        "price": {
            "amount_micros": str(price_micros),
            "per_quantity": 3600,
            "meter_unit": "accelerator_second",
        },
    }


def _promised(name: str, value: Any) -> Any:
    if name not in _MARGIN:
        return value
    less = value * _MARGIN[name]
    return int(less) if less >= _ROUND_FROM else round(less, 3)


def _folder_of(deployment: Deployment, node: dict[str, Any]) -> StateFolder:
    if node["simulated"]:
        return StateFolder(deployment.folder / "fleet" / node["name"])
    return StateFolder(host_folder(deployment))


def _offer_file(deployment: Deployment, node: dict[str, Any]) -> Path:
    return _folder_of(deployment, node).path / "listing.yaml"
