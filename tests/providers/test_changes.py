"""Hardware that changes after it was proved: asked again, and not under a tenant's feet."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from fabric.lib.clock import utc_now
from fabric.lib.errors import WrongState
from providers.domain import questions
from providers.domain.nodes import NodeState
from providers.models import Challenge, HardwareClass, Hold, Node, Unit
from providers.services import capacity
from providers.services.challenges import retest_node
from providers.services.judging import judge_challenge
from providers.services.reports import sweep_changed
from tests.providers.agents import TestAgent, host_report
from tests.providers.proving import prove
from tests.world import World

UNITS = [{"device": 0, "slots": [0, 1], "memory_mib": 16}]
MORE_MEMORY = [{"device": 0, "slots": [0, 1], "memory_mib": 32}]


def report_of(*, cores: int = 2, units: Any = UNITS, **device: Any) -> dict[str, Any]:
    """Return the small host's report with these cores, units and members of its device."""
    facts = host_report()["facts"]
    facts["cpu_cores"] = {**facts["cpu_cores"], "value": cores}
    devices = [{**host_report()["devices"][0], **device}]
    return host_report(facts=facts, units=units, devices=devices)


def pass_challenge(agent: TestAgent) -> None:
    """Answer the open challenge as the machine would, and judge the answer."""
    prove(agent)
    judged = judge_challenge(challenge_id=Challenge.objects.answered().get().pk, now=utc_now())
    assert judged is not None
    assert judged.verdict == "passed", judged.reasons


@pytest.fixture
def admitted(agent: TestAgent, monkeypatch: pytest.MonkeyPatch) -> TestAgent:
    """A real CPU node of two cores that has proved itself."""
    monkeypatch.setattr(questions, "SECONDS", 0.00001)
    wide = {"low": 0.000001, "high": 10_000.0, "unit": "", "source": "this test", "sample_size": 1}
    HardwareClass.objects.filter(slug="host-cpu").update(
        bands={"compute_gops": [wide], "memory_bandwidth_gb_s": [wide]}
    )
    agent.report(report_of())
    pass_challenge(agent)
    assert Node.objects.get().state == NodeState.ADMITTED
    return agent


def lease_the_unit() -> None:
    now = utc_now()
    units = capacity.list_free_units(node=Node.objects.get(), now=now)
    until = now + timedelta(hours=1)
    capacity.place_holds(units=units, until=until, kind="lease", holder="lse_one", now=now)


@pytest.mark.parametrize(
    "changed",
    [
        report_of(cores=1),
        report_of(units=MORE_MEMORY),
        report_of(memory_mib=12_000),
        report_of(instruction_set="avx2"),
        report_of(name="AMD Ryzen"),
        report_of(identity="9f86d081884c7d659a2feaa0c55ad015"),
    ],
    ids=["cores", "units", "memory", "instructions", "model", "identity"],
)
def test_a_change_asks_for_proof_and_stops_placement(
    admitted: TestAgent, changed: dict[str, Any]
) -> None:
    """R-B3 (agent): another machine than the proved one is let to nobody until it proves itself."""
    assert len(capacity.list_free_units(node=Node.objects.get(), now=utc_now())) == 1

    assert admitted.report(changed).status == 201

    node = Node.objects.get()
    assert node.state == NodeState.PROVING
    assert Challenge.objects.open().get().purpose == "recheck"
    assert capacity.list_free_units(node=node, now=utc_now()) == []
    with pytest.raises(capacity.NodeNotPlaceable):
        capacity.place_holds(
            units=list(Unit.objects.offered()),
            until=utc_now() + timedelta(hours=1),
            kind="lease",
            holder="lse_late",
            now=utc_now(),
        )

    pass_challenge(admitted)
    assert len(capacity.list_free_units(node=Node.objects.get(), now=utc_now())) == 1


def test_no_test_runs_beside_a_lease(world: World, admitted: TestAgent) -> None:
    """R-B3 (api): a test would take the memory a buyer pays for; it waits for the lease's end."""
    lease_the_unit()
    node = Node.objects.get()
    with pytest.raises(WrongState, match="is leased"):
        retest_node(actor=world.actor(world.carol), node=node, now=utc_now())
    assert Node.objects.get().state == NodeState.ADMITTED
    capacity.release_holds(holder="lse_one", now=utc_now())
    retest_node(actor=world.actor(world.carol), node=node, now=utc_now())
    assert Node.objects.get().state == NodeState.PROVING


def test_a_leased_unit_is_left_alone_until_its_lease_ends(
    world: World, admitted: TestAgent
) -> None:
    """R-B3 (agent, page): a change under a lease is marked at once, and tested after the lease."""
    lease_the_unit()
    before = Unit.objects.values().get()

    assert admitted.report(report_of(cores=1, units=MORE_MEMORY)).status == 201

    node = Node.objects.get()
    assert node.state == NodeState.HELD_BACK
    found = [(row["field"], row["promised"], row["measured"]) for row in node.held_back_reasons]
    assert found == [("cpu_cores", 2, 1), ("units", "[0, [0, 1], 16]", "[0, [0, 1], 32]")]
    assert {row["code"] for row in node.held_back_reasons} == {"INVENTORY_CHANGED"}
    assert Unit.objects.values().get() == before
    assert not Challenge.objects.open().exists()
    assert Hold.objects.get().live
    client = Client()
    client.force_login(world.carol)
    page = client.get(f"/provider/nodes/{node.public_id}/").content.decode()
    assert "left as it was proved; tested when its lease ends" in page
    assert sweep_changed(now=utc_now()) == 0
    with pytest.raises(WrongState):
        retest_node(actor=world.actor(world.carol), node=node, now=utc_now())

    capacity.release_holds(holder="lse_one", now=utc_now())
    assert sweep_changed(now=utc_now()) == 1

    node.refresh_from_db()
    assert (node.state, node.held_back_reasons) == (NodeState.PROVING, [])
    assert Unit.objects.get().memory_mib == 32
    pass_challenge(admitted)
    assert Node.objects.get().state == NodeState.ADMITTED
    assert sweep_changed(now=utc_now()) == 0


def test_a_change_that_is_taken_back_is_tested_after_the_lease_too(admitted: TestAgent) -> None:
    """R-B3 (agent): cores that come and go under a lease are seen, and no test disturbs it."""
    lease_the_unit()
    admitted.report(report_of(cores=1))
    facts = report_of()["facts"] | {"disk_read_mb_s": {"value": 900}}
    admitted.report(report_of() | {"facts": facts})

    assert Node.objects.get().state == NodeState.HELD_BACK
    assert not Challenge.objects.open().exists()

    capacity.release_holds(holder="lse_one", now=utc_now())
    assert sweep_changed(now=utc_now()) == 1
    pass_challenge(admitted)
    assert Node.objects.get().state == NodeState.ADMITTED


def test_another_disk_speed_under_a_lease_is_no_change(admitted: TestAgent) -> None:
    """R-B3 (agent): an agent that restarts under a lease measures anew and stays admitted."""
    lease_the_unit()
    facts = report_of()["facts"] | {"disk_read_mb_s": {"value": 900}}
    assert admitted.report(report_of() | {"facts": facts}).status == 201
    assert Node.objects.get().state == NodeState.ADMITTED
