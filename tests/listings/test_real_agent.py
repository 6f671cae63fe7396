"""A real agent on this machine publishes what it is, from a file."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.local.processes import Child, Supervisor
from fabric.lib.clock import utc_now
from listings.domain.kinds import find_kind
from listings.models import Listing
from providers.models import HardwareClass, Node
from providers.services.enrolment import create_token
from tests.world import World

pytestmark = pytest.mark.slow
MEMORY_MIB = 256


def run_agent(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fabric_agent", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def forgive_a_busy_machine() -> None:
    """Lower the lower ends of the class's ranges: other tests may be taking this machine's time."""
    here = HardwareClass.objects.get(slug="host-cpu")
    for rows in here.bands.values():
        for row in rows:
            row["low"] = row["low"] / 1000
    here.save(update_fields=["bands"])


@pytest.fixture
def state(world: World, live_server_url: str, tmp_path: Path) -> str:
    """The folder of an agent that is enrolled as a node of Carol's."""
    forgive_a_busy_machine()
    token, _ = create_token(
        provider=world.provider,
        actor=world.actor(world.carol),
        now=utc_now(),
        accepts_unisolated=True,
    )
    folder = str(tmp_path / "agent")
    enrolled = run_agent(
        *("enroll", "--url", live_server_url, "--allow-http", "--token", token),
        *("--name", "here", "--memory-mib", str(MEMORY_MIB), "--state", folder),
    )
    assert enrolled.returncode == 0, enrolled.stderr
    return folder


@pytest.fixture
def running(state: str, tmp_path: Path) -> Iterator[Child]:
    """That agent at work."""
    with Supervisor(tmp_path) as supervisor:
        yield supervisor.start(
            "agent", [sys.executable, "-m", "fabric_agent", "run", "--state", state]
        )


def wait_until(what: Any, seconds: float, log: Path) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return
        time.sleep(0.2)
    pytest.fail(log.read_text()[-3000:])


def write_listing(path: Path, node: Node, **changes: Any) -> str:
    """Write a file that promises the facts that the machine itself prints."""
    read = run_agent("read", "--state", str(path.parent / "agent"))
    facts = json.loads(read.stdout)["facts"]
    known = {spec.name for spec in find_kind("accelerator").fields}
    promise = {
        name: fact["value"]
        for name, fact in facts.items()
        if name in known and fact["value"] is not None and not name.endswith("_mb_s")
    }
    report = node.reports.all()[0].body["facts"]
    promise |= {
        "memory_mib": MEMORY_MIB,
        "isolation": node.isolation,
        "runtime": report["runtime"]["value"],
        "disk_gib": int(promise["disk_gib"] * 0.9) or 1,
    }
    body = {
        "title": "This very machine",
        "region": "eu-north",
        "country": "NO",
        "depth": "container",
        "max_hours": 1,
        "interruptible": False,
        "promise": promise | changes,
        "price": {
            "amount_micros": 50_000,
            "per_quantity": 3600,
            "meter_unit": "accelerator_second",
        },
    }
    path.write_text(yaml.safe_dump(body))
    return str(path)


def test_an_agent_publishes_its_own_machine_from_a_file(
    state: str, celery_worker_process: Child, running: Child, tmp_path: Path
) -> None:
    """R-A11, R-B1 (agent): installed, proved, admitted and on sale, with no hand in between."""
    node = Node.objects.get(name="here")

    def admitted() -> bool:
        node.refresh_from_db()
        assert node.state != "held_back", str(node.held_back_reasons)
        return node.state == "admitted"

    wait_until(admitted, 240, running.log)

    wrong = write_listing(tmp_path / "wrong.yaml", node, memory_gib=1, cpu_cores=0)
    refused = run_agent("publish", wrong, "--state", state)
    assert refused.returncode != 0
    for shown in ("memory_gib", "there is no such field", "cpu_cores", "0 is below 1"):
        assert shown in refused.stdout + refused.stderr
    assert Listing.objects.count() == 0

    published = run_agent(
        "publish", write_listing(tmp_path / "listing.yaml", node), "--state", state
    )
    assert published.returncode == 0, published.stderr
    listing = Listing.objects.get()

    def on_sale() -> bool:
        listing.refresh_from_db()
        check = listing.revisions.all()[0].checks.first()
        assert listing.state != "refused", [row["reason"] for row in check.fields]  # type: ignore[union-attr]
        return listing.state == "published"

    wait_until(on_sale, 30, running.log)
    assert listing.class_slug == "host-cpu"
    assert len(listing.current_revision.body["promise"]) >= 12  # type: ignore[union-attr]
    node.refresh_from_db()
    assert node.listed_at is not None
