"""Meter batches through the agent's door, and what the node is told."""

import json

import pytest

from fabric.lib.clock import utc_now
from fabric.lib.secrets import access_token
from fabric.lib.signing import server_key
from fabric_protocol import canonical, dsse, keys, payloads
from leases.models import Batch, Reading
from providers.models import DesiredItem, NodeKey
from tests.leases.scene import Scene, build_scene, second
from tests.listings.machines import admitted_node
from tests.providers.agents import TestAgent
from tests.world import World


@pytest.fixture
def scene(world: World) -> Scene:
    """The scene at the clock's own time, since the door reads the clock."""
    now = utc_now()
    aligned = now.fromtimestamp(int(now.timestamp()) // 5 * 5 - 20, tz=now.tzinfo)
    return build_scene(world, aligned)


def test_a_batch_is_taken_and_receipted_at_the_door(scene: Scene) -> None:
    """R-C4 (agent): 201 for a new batch, 200 for the same bytes, one reading in both cases."""
    lease = scene.running()
    agent = TestAgent(key=scene.key)
    envelope = scene.meter(lease).next(scene.now)
    path = f"streams/{lease.public_id}/batches/"
    first = agent.call("POST", path, envelope)
    assert (first.status, first.body["state"]) == (201, "accepted")
    again = agent.call("POST", path, envelope)
    assert (again.status, again.body) == (200, first.body)
    assert Reading.objects.get(lease=lease).ready_seconds == 5


def test_a_far_too_large_batch_never_gets_in(scene: Scene) -> None:
    """R-C4 (agent): what announces more than is read is refused at the door."""
    lease = scene.running()
    agent = TestAgent(key=scene.key)
    reply = agent.call("POST", f"streams/{lease.public_id}/batches/", b"x" * 70_000)
    assert (reply.status, reply.code) == (413, "BODY_TOO_LARGE")
    assert not Batch.objects.exists()


def test_another_nodes_lease_does_not_exist_at_the_door(scene: Scene) -> None:
    """R-C4 (agent): a node with a good key of its own reaches its own leases only."""
    lease = scene.running()
    other = admitted_node(scene.world, now=scene.now, name="reykjavik-2")
    agent = TestAgent(key=keys.SigningKey.generate())
    NodeKey.objects.create(
        node=other,
        key_id=agent.key.key_id,
        public_key=agent.key.public_bytes,
        active_from=scene.now,
    )
    reply = agent.call(
        "POST", f"streams/{lease.public_id}/batches/", scene.meter(lease).next(scene.now)
    )
    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert not Batch.objects.exists()


def test_the_node_is_told_the_token_and_no_table_holds_it(scene: Scene) -> None:
    """R-E1 (agent): the secret is derived where it is served, under the exchange's signature."""
    lease = scene.order(now=scene.now).lease
    agent = TestAgent(key=scene.key)
    reply = agent.call("GET", "desired-state/")
    payload = dsse.open(reply.raw, payloads.DESIRED_STATE, server_key().public_bytes)
    [item] = canonical.loads(payload)["items"]
    assert item["key"] == lease.public_id
    assert item["access_token"] == access_token(lease.public_id)
    assert payloads.read_instant(item["paid_until"]) == second(scene.now, 15)
    stored = json.dumps(list(DesiredItem.objects.values_list("body", flat=True)))
    assert access_token(lease.public_id) not in stored
