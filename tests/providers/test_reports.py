"""What a node says it is: kept as signed, checked, and never taken for proof."""

import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest

from fabric.journal.models import Event
from fabric.lib.clock import utc_now
from fabric_protocol import dsse, keys, payloads
from providers.domain.nodes import NodeState
from providers.models import Challenge, Device, HardwareReport, Node, Unit
from providers.services.enrolment import create_token
from providers.services.nodes import measured_facts, retire_node
from tests.providers.agents import TestAgent, host_report
from tests.world import World


def gpu(ordinal: int = 0, **changes: Any) -> dict[str, Any]:
    """Return an H100 as an honest agent would report it."""
    return {
        "ordinal": ordinal,
        "identity": f"GPU-{ordinal:08d}-5e88-4898-da28-047151d0e56f",
        "name": "NVIDIA H100 80GB HBM3",
        "kind": "gpu",
        "class": "nvidia-h100-80gb-sxm",
        "memory_mib": 81_559,
        "slots": 1,
        "instruction_set": "",
        "pci_device_id": "10de:2330",
        **changes,
    }


def another_agent(world: World, name: str = "is-r9-01") -> TestAgent:
    text, _ = create_token(
        provider=world.strangers_provider,
        actor=world.actor(world.dave),
        now=utc_now(),
        accepts_unisolated=True,
    )
    return TestAgent().enrol(text, name=name)


def reasons_of(node: Node) -> list[str]:
    node.refresh_from_db()
    return [reason["code"] for reason in node.held_back_reasons]


def test_a_report_is_kept_as_signed_and_asks_for_proof(agent: TestAgent) -> None:
    """R-B2 (agent): the exact bytes are kept, the inventory is applied, and a challenge follows."""
    reply = agent.report(host_report())

    assert reply.status == 201
    row, node = HardwareReport.objects.get(), Node.objects.get()
    payload = dsse.open(bytes(row.envelope), payloads.REPORT, agent.key.public_bytes, 1 << 20)
    assert json.loads(payload) == row.body == host_report()
    assert reply.body == {
        "report_id": row.public_id,
        "digest": hashlib.sha256(payload).hexdigest(),
    }
    assert (node.state, node.hardware_class_id, node.tier) == ("proving", "host-cpu", "")
    unit = Unit.objects.get()
    assert (unit.kind, unit.memory_mib, unit.memory_mib_measured) == ("whole", 1024, None)
    challenge = Challenge.objects.get()
    assert (challenge.state, challenge.purpose, bytes(challenge.nonce)) == (
        "issued",
        "admission",
        b"",
    )
    assert challenge.parameters["report"] == reply.body["digest"]


def test_the_same_report_again_changes_nothing(agent: TestAgent) -> None:
    """R-B2 (agent): a report sent twice is one report and one challenge."""
    first, again = agent.report(host_report()), agent.report(host_report())
    assert (first.status, again.status, again.body) == (201, 200, first.body)
    assert HardwareReport.objects.count() == Challenge.objects.count() == 1


def test_what_is_said_is_shown_with_where_it_comes_from(agent: TestAgent) -> None:
    """R-A3 (agent): host resources are facts with method, instant and the record behind them."""
    agent.report(host_report())
    node, row = Node.objects.get(), HardwareReport.objects.get()

    facts = measured_facts(node=node)

    assert facts["disk_read_mb_s"] == {
        "value": 812.5,
        "unit": "MB/s",
        "method": "timed reads",
        "at": row.received_at.isoformat(),
        "source": row.public_id,
    }
    assert facts["unit_count"]["value"] == 1
    assert facts["unit_kind"]["value"] == "whole"
    assert facts["device_class"]["value"] == "host-cpu"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"devices": [], "units": []}, "NO_DEVICES"),
        ({"units": []}, "NO_UNITS"),
        ({"devices": [{**host_report()["devices"][0], "class": "host-tpu"}]}, "UNKNOWN_CLASS"),
        ({"devices": [{**host_report()["devices"][0], "kind": "gpu"}]}, "KIND_MISMATCH"),
        ({"devices": [gpu(memory_mib=49_140)]}, "MEMORY_OUTSIDE_CLASS"),
        ({"devices": [gpu(memory_mib=98_304)]}, "MEMORY_OUTSIDE_CLASS"),
        ({"devices": [gpu(pci_device_id="10de:2331")]}, "PCI_ID_MISMATCH"),
        ({"devices": [gpu(pci_device_id=None)]}, "PCI_ID_MISMATCH"),
        ({"devices": [gpu(), {**host_report()["devices"][0], "ordinal": 1}]}, "MIXED_CLASSES"),
    ],
)
def test_an_inventory_that_cannot_be_true_holds_the_node_back(
    agent: TestAgent, changes: dict[str, Any], code: str
) -> None:
    """R-B3 (agent): what the report itself gives away holds back, with reason and remedy."""
    assert agent.report(host_report(**changes)).status == 201

    node = Node.objects.get()
    assert node.state == NodeState.HELD_BACK
    assert reasons_of(node) == [code]
    assert node.held_back_reasons[0]["remedy"]
    assert not Challenge.objects.exists()
    assert not Unit.objects.exists()


def test_a_machine_without_containers_needs_the_consent(world: World) -> None:
    """R-E1 (agent): without a container runtime and without the consent nothing is offered."""
    text, _ = create_token(provider=world.provider, actor=world.actor(world.carol), now=utc_now())
    agent = TestAgent().enrol(text)
    agent.report(host_report())
    assert reasons_of(Node.objects.get()) == ["NO_ISOLATION"]

    agent.report(host_report(isolation="container"))
    node = Node.objects.get()
    assert (node.state, node.isolation, node.held_back_reasons) == ("proving", "container", [])


def test_a_device_claimed_twice_freezes_both(world: World, agent: TestAgent) -> None:
    """R-B3 (agent): the same device offered by two providers is let by neither."""
    agent.report(host_report())
    first = Node.objects.get()
    second = another_agent(world)

    assert second.report(host_report()).status == 201

    claimant = Node.objects.exclude(pk=first.pk).get()
    assert reasons_of(first) == reasons_of(claimant) == ["DEVICE_CLAIMED_TWICE"]
    assert {first.state, claimant.state} == {NodeState.HELD_BACK}
    assert Device.objects.get().node_id == first.pk
    assert Event.objects.get(kind="device.claimed_twice").data["claimant"] == claimant.public_id
    assert not Challenge.objects.open().exists()


def test_a_device_of_a_retired_node_may_move(world: World, agent: TestAgent) -> None:
    """R-B3 (agent): after the old node is retired its device proves itself at the new one."""
    agent.report(host_report())
    old = Node.objects.get()
    retire_node(actor=world.actor(world.carol), node=old, now=utc_now())
    mover = another_agent(world)

    mover.report(host_report())

    node = Node.objects.exclude(pk=old.pk).get()
    assert (node.state, Device.objects.get().node_id) == (NodeState.PROVING, node.pk)
    assert Challenge.objects.open().count() == 1


def test_a_change_of_what_is_offered_asks_for_proof_again(agent: TestAgent) -> None:
    """R-B3 (agent): more promised memory is another promise; other facts are not."""
    agent.report(host_report())
    first = Challenge.objects.get()

    faster = {**host_report()["facts"], "disk_read_mb_s": {"value": 900}}
    agent.report(host_report(facts=faster))
    assert list(Challenge.objects.open()) == [first]

    agent.report(host_report(units=[{"device": 0, "slots": [0, 1], "memory_mib": 2048}]))
    first.refresh_from_db()
    assert first.state == "expired"
    (second,) = Challenge.objects.open()
    assert second.report.body["units"][0]["memory_mib"] == 2048
    assert Unit.objects.get().memory_mib == 2048


def test_a_device_that_vanished_is_taken_off_offer(agent: TestAgent) -> None:
    """R-B3 (agent): a card that fell off the bus is no longer there to be let."""
    both = [gpu(0), gpu(1)]
    units = [{"device": place, "slots": [0, 1], "memory_mib": 81_000} for place in (0, 1)]
    agent.report(host_report(devices=both, units=units))
    assert Unit.objects.offered().count() == 2

    agent.report(host_report(devices=both[1:], units=units[1:]))

    assert [unit.device.ordinal for unit in Unit.objects.offered()] == [1]
    assert Device.objects.get(ordinal=0).present is False


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"v": 2}, "/v"),
        ({"surprise": 1}, "/surprise"),
        ({"driver": "nvidia"}, "/driver"),
        ({"host": None}, "/host"),
        ({"isolation": "vm"}, "/isolation"),
        ({"agent_version": ""}, "/agent_version"),
        ({"facts": []}, "/facts"),
        ({"facts": {"cpu_cores": 2}}, "/facts/cpu_cores"),
        ({"devices": {}}, "/devices"),
        ({"devices": [gpu()] * 65}, "/devices"),
        ({"devices": [gpu(), gpu()]}, "/devices"),
        ({"devices": [gpu(memory_mib=-1)]}, "/devices/0/memory_mib"),
        ({"devices": [gpu(memory_mib=1.5)]}, "/devices/0/memory_mib"),
        ({"devices": [gpu(memory_mib=True)]}, "/devices/0/memory_mib"),
        ({"devices": [gpu(identity="x")]}, "/devices/0/identity"),
        ({"devices": [gpu(slots=0)]}, "/devices/0/slots"),
        ({"units": [{"device": 5, "slots": [0, 1], "memory_mib": 1}]}, "/units/0/device"),
        ({"units": [{"device": 0, "slots": [1, 0], "memory_mib": 1}]}, "/units/0/slots"),
        ({"units": [{"device": 0, "slots": [0, 2], "memory_mib": 1}]}, "/units/0/slots"),
        ({"units": [{"device": 0, "slots": [0, 1], "memory_mib": 24_001}]}, "/units/0/memory_mib"),
        ({"units": [{"device": 0, "slots": [0, 1], "memory_mib": 1}] * 2}, "/units"),
    ],
)
def test_a_malformed_report_names_the_field(
    agent: TestAgent, changes: dict[str, Any], pointer: str
) -> None:
    """R-B2 (agent): a report whose shape is wrong is refused field by field and not kept."""
    reply = agent.report(host_report(**changes))
    assert reply.status == 400
    assert pointer in [error["pointer"] for error in reply.body["errors"]]
    assert not HardwareReport.objects.exists()
    assert Node.objects.get().state == NodeState.ENROLLED


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b'{"v": 1, "v": 1}', "DUPLICATE_KEY"),
        (b'{"v": NaN}', "NOT_A_NUMBER"),
        (b'{"v": 1', "NOT_JSON"),
        (b"[" * 200 + b"]" * 200, "TOO_DEEP"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "TOO_DEEP"),
        (b'{"v": "\xff"}', "NOT_UTF8"),
        (b'{"v": "' + b"x" * 130_000 + b'"}', "TOO_LARGE"),
    ],
)
def test_a_payload_that_two_readers_could_take_differently_is_refused(
    agent: TestAgent, payload: bytes, code: str
) -> None:
    """R-B2 (agent): duplicate keys, NaN, truncated, deep and huge payloads are refused by name."""
    reply = agent.post("reports/", dsse.seal(payloads.REPORT, payload, agent.key))
    assert (reply.status, reply.code) == (400, "ENVELOPE_REFUSED")
    assert reply.body["errors"][0]["code"] == code
    assert not HardwareReport.objects.exists()


def test_an_envelope_of_another_key_type_or_shape_is_refused(agent: TestAgent) -> None:
    """R-B2 (agent): a report signed by another node's key is nobody's report."""
    stolen = agent.report(host_report(), key=keys.SigningKey.generate())
    assert stolen.body["code"] == "ENVELOPE_REFUSED"

    other_type = dsse.seal(payloads.LISTING, b"{}", agent.key)
    assert agent.post("reports/", other_type).code == "ENVELOPE_REFUSED"
    whole = dsse.seal(payloads.REPORT, b"{}", agent.key)
    assert agent.post("reports/", whole[:-20]).code == "ENVELOPE_REFUSED"
    assert not HardwareReport.objects.exists()


def test_simulated_hardware_is_taken_only_from_nodes_enrolled_so(
    world: World, agent: TestAgent
) -> None:
    """R-B4 (agent): a simulated driver on a real node is refused, and the other way round."""
    refused = agent.report(host_report(driver="simulated"))
    assert (refused.status, refused.code) == (403, "SIMULATION_REFUSED")

    text, _ = create_token(
        provider=world.provider,
        actor=world.actor(world.olga),
        now=utc_now() - timedelta(minutes=1),
        simulated=True,
        accepts_unisolated=True,
    )
    simulated = TestAgent().enrol(text, name="sim-1")
    assert simulated.report(host_report()).code == "SIMULATION_REFUSED"
    assert simulated.report(host_report(driver="simulated")).status == 201
    assert Node.objects.get(name="sim-1").simulated
