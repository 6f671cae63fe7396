"""One lease on a real machine: published, ordered, provided, metered through a kill, and ended."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
from typing import Any

import pytest

from billing.models import UsageRecord
from billing.services import wallet
from fabric.lib.clock import utc_now
from fabric_agent.hostfacts import process_start_ticks
from leases.domain.states import LeaseState
from leases.models import Batch, Lease, Reading, WitnessReading
from leases.services import lifecycle, ordering
from listings.models import Listing, RevisionCheck
from providers.models import Node
from tests.agent.containers import podman_that_cannot_run, why_no_podman
from tests.agent.machines import Machine, new_token, node_in, wait_for
from tests.world import World

pytestmark = pytest.mark.usefixtures("committed_db", "celery_worker_process")
PRICE = 3_600_000  # 1,000 micro-units a second, so that sums are read at a glance.


def listing_yaml(facts: dict[str, Any], **changes: Any) -> str:
    """Return a listing file that promises what the machine's own inventory shows."""
    promised = [
        *("device_class", "unit_count", "unit_kind", "memory_mib", "cpu_model", "cpu_cores"),
        *("instruction_set", "system_memory_mib", "disk_kind", "interconnect", "driver_version"),
        *("interface", "isolation", "runtime"),
    ]
    promise = {name: facts[name] for name in promised} | {"disk_gib": 1} | changes
    lines = "\n".join(f"  {name}: {json.dumps(value)}" for name, value in promise.items())
    return f"""# Written by hand, as a provider would.
title: Two quiet cores
region: eu-central
country: DE
depth: container
max_hours: 2
interruptible: false
promise:
{lines}
price:
  amount_micros: {PRICE}
  per_quantity: 3600
  meter_unit: accelerator_second
"""


@pytest.fixture
def admitted(machine: Machine, world: World) -> Node:
    """A node with a running agent, admitted."""
    machine.enrol(new_token(world))
    machine.start()
    return wait_for(node_in("admitted"), what="admission", machine=machine)


def facts_of(node: Node) -> dict[str, Any]:
    report = node.reports.latest("received_at")
    return {name: stated["value"] for name, stated in report.body["facts"].items()}


def refuse_what_promises_more(machine: Machine, node: Node) -> None:
    """Publish what nobody may promise, then more than the machine has shown."""
    path = machine.folder / "listing.yaml"
    path.write_text(listing_yaml(facts_of(node), unit_kind="some", cpu_cores=0))
    refused = machine.command("publish", str(path))
    assert refused.returncode == 1
    assert "promise.unit_kind" in refused.stderr
    assert "promise.cpu_cores" in refused.stderr
    assert "whole" in refused.stderr
    path.write_text(listing_yaml(facts_of(node), system_memory_mib=16_000_000))
    assert machine.command("publish", str(path)).returncode == 0
    listing = wait_for(
        lambda: Listing.objects.filter(state="refused").first(), what="the check's refusal"
    )
    check = RevisionCheck.objects.get(revision__listing=listing)
    short = [row for row in check.fields if row["verdict"] not in {"match", "better"}]
    assert [row["field"] for row in short] == ["system_memory_mib"]


def publish(machine: Machine) -> Listing:
    """Publish what the agent drafts from the evidence, as the how-to says."""
    drafted = machine.command("draft", "--price-micros", str(PRICE))
    assert drafted.returncode == 0, drafted.stderr
    path = machine.folder / "listing.yaml"
    path.write_text(drafted.stdout)
    done = machine.command("publish", str(path))
    assert done.returncode == 0, done.stderr
    return wait_for(
        lambda: Listing.objects.filter(state="published").first(), what="a published listing"
    )


def order(world: World, listing: Listing, *, budget: int = 600_000) -> Lease:
    wallet.credit_cash(
        organisation=world.meridian, amount_micros=10_000_000, key="top-up", now=utc_now()
    )
    placed = ordering.place_order(
        actor=world.actor(world.alice),
        project=world.project,
        listing=listing,
        unit_count=1,
        budget_micros=budget,
        accepts_interruption=True,
        accepts_unisolated=True,
        price_cap_micros_per_hour=PRICE,
        max_seconds=3600,
        now=utc_now(),
        key="order-1",
    )
    return placed.lease


def lease_in(lease: Lease, *states: LeaseState) -> Any:
    return lambda: Lease.objects.filter(pk=lease.pk, state__in=states).first()


def readings(lease: Lease) -> list[Reading]:
    return list(Reading.objects.filter(lease=lease).order_by("window_index"))


def workload_pid(machine: Machine, lease: Lease) -> int:
    """Return the process that serves a lease, in a container or not, as the agent noted it."""
    uri = f"file:{machine.state / 'outbox.sqlite3'}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as outbox:
        (handle,) = outbox.execute(
            "select handle from workloads where lease = ?", (lease.public_id,)
        ).fetchone()
    return int(json.loads(handle)["pid"]) if handle else 0


def test_a_lease_is_provided_metered_through_a_kill_and_ended(
    machine: Machine, world: World, admitted: Node
):
    """R-A11 (agent): the machine publishes YAML, and a bad field is refused with its reason.

    R-C4 (agent): an agent killed in mid-window and restarted loses no second and counts none twice.
    R-C5 (agent): every window's reading is compared with the promise, field by field.
    R-C6 (agent): readiness is confirmed, and every window witnessed, from outside the agent's word.
    R-C11 (agent): what is unused returns when the lease ends.
    """
    refuse_what_promises_more(machine, admitted)
    listing = publish(machine)
    lease = wait_for(
        lease_in(order(world, listing), LeaseState.ACTIVE), what="readiness", machine=machine
    )
    assert lease.access["host"] == "127.0.0.1"
    assert lease.isolation == ("none" if why_no_podman() else "container")
    wait_for(lambda: len(readings(lease)) >= 2, what="two windows", machine=machine)

    pid = workload_pid(machine, lease)
    before = len(readings(lease))
    machine.kill()
    assert process_start_ticks(pid) is not None
    machine.start()
    wait_for(lambda: len(readings(lease)) >= before + 2, what="more windows", machine=machine)
    assert workload_pid(machine, lease) == pid

    # Late in a window the last batch may begin after the end, and is rightly refused.
    wait_for(lambda: utc_now().timestamp() % 5 < 1, what="a window's first second", machine=machine)
    lifecycle.end_lease(actor=world.actor(world.alice), lease=lease, now=utc_now())
    ended = wait_for(lease_in(lease, LeaseState.ENDED), what="the end", machine=machine)
    assert process_start_ticks(pid) is None

    told = readings(lease)
    indices = [reading.window_index for reading in told]
    assert indices == list(range(indices[0], indices[0] + len(indices)))
    whole = told[1:-1]
    assert [reading.ready_seconds for reading in whole] == [5] * len(whole)
    verdicts = [row["verdict"] for reading in whole for row in reading.conformity]
    assert set(verdicts) <= {"match", "better", "not_measured"}
    for reading in whole:
        measured = [row for row in reading.conformity if row["verdict"] != "not_measured"]
        assert len(measured) >= 12
    batches = Batch.objects.filter(stream__lease=lease)
    assert set(batches.values_list("state", "reason")) == {("accepted", "")}, list(batches.values())
    seen = WitnessReading.objects.filter(lease=lease, observed__reachable=True)
    assert {row.window_index for row in seen} >= set(indices[1:-1])
    records = UsageRecord.objects.filter(agreement=ended.agreement)
    assert sum(record.amount_micros for record in records) == 1_000 * sum(
        record.quantity for record in records
    )
    wait_for(
        lambda: not (machine.state / "leases" / lease.public_id).exists(),
        what="the lease's folder gone",
        machine=machine,
    )


def test_a_machine_whose_podman_fails_leases_without_it(machine: Machine, world: World) -> None:
    """R-B2 (agent): where no container runs, the node says so and its leases say `none`."""
    path = f"{podman_that_cannot_run(machine.folder)}{os.pathsep}{os.environ['PATH']}"
    machine.environment["PATH"] = path
    machine.enrol(new_token(world))
    machine.start()
    node = wait_for(node_in("admitted"), what="admission", machine=machine)
    lease = order(world, publish(machine))
    lease = wait_for(lease_in(lease, LeaseState.ACTIVE), what="readiness", machine=machine)
    assert (node.isolation, lease.isolation) == ("none", "none")
    assert "no containers: PODMAN_" in machine.log


@pytest.mark.slow
def test_a_workload_that_dies_shows_in_its_window(machine: Machine, world: World, admitted: Node):
    """R-C4 (agent): seconds in which the workload was gone are not metered."""
    lease = order(world, publish(machine))
    lease = wait_for(lease_in(lease, LeaseState.ACTIVE), what="readiness", machine=machine)
    wait_for(lambda: len(readings(lease)) >= 1, what="a window", machine=machine)
    pid = workload_pid(machine, lease)
    os.kill(pid, signal.SIGKILL)
    before = len(readings(lease))
    wait_for(lambda: len(readings(lease)) >= before + 2, what="more windows", machine=machine)
    assert workload_pid(machine, lease) != pid
    assert min(reading.ready_seconds for reading in readings(lease)[1:]) < 5


@pytest.mark.slow
def test_money_that_runs_out_ends_the_workload(machine: Machine, world: World, admitted: Node):
    """R-C11 (agent): no money, no window: the workload stops where the money stops."""
    lease = order(world, publish(machine), budget=18_000)
    wait_for(lease_in(lease, LeaseState.ACTIVE), what="readiness", machine=machine)
    pid = workload_pid(machine, lease)
    ended = wait_for(lease_in(lease, LeaseState.ENDED), what="the end", machine=machine)
    assert ended.end_reason == "funds_exhausted"
    assert process_start_ticks(pid) is None
    assert sum(reading.ready_seconds for reading in readings(lease)) <= 18
    with socket.socket() as probe:
        assert probe.connect_ex((ended.access["host"], ended.access["port"])) != 0
