"""What a node is told, and how it learns that there is news."""

from datetime import datetime

import pytest
from django.db import transaction

from fabric.lib.secrets import access_token
from providers.models import Node, Observation
from providers.services import desired_state
from providers.services.observations import record_observation
from tests.fleet import admit_node
from tests.world import World


def test_each_change_raises_the_generation_by_one(world: World, now: datetime) -> None:
    """R-B2 (agent): the agent fetches its desired state only when the generation moved."""
    node = admit_node(world.provider, now=now)

    desired_state.put_item(node=node, key="lse_1", kind="workload", body={"stop": False}, now=now)
    desired_state.put_item(node=node, key="lse_1", kind="workload", body={"stop": True}, now=now)
    assert desired_state.read_document(node=node, now=now) == {
        "v": 1,
        "node": node.public_id,
        "generation": 2,
        "issued_at": "2026-12-01T12:00:00Z",
        "items": [
            {
                "key": "lse_1",
                "kind": "workload",
                "stop": True,
                "access_token": access_token("lse_1"),
            }
        ],
    }

    assert desired_state.remove_item(node=node, key="lse_1", now=now) is True
    assert desired_state.remove_item(node=node, key="lse_1", now=now) is False
    assert Node.objects.get(pk=node.pk).desired_generation == 3
    assert desired_state.read_document(node=node, now=now)["items"] == []


def test_a_change_that_is_rolled_back_tells_nothing(world: World, now: datetime) -> None:
    """R-B2 (agent): an order that fails after it told the node leaves no workload behind."""
    node = admit_node(world.provider, now=now)

    with transaction.atomic():
        desired_state.put_item(node=node, key="lse_1", kind="workload", body={}, now=now)
        transaction.set_rollback(True)

    assert desired_state.read_document(node=node, now=now)["generation"] == 0
    assert desired_state.read_document(node=node, now=now)["items"] == []


def test_an_observation_is_written_once_and_never_changed(world: World, now: datetime) -> None:
    """R-D4 (api): what was observed about a node is kept, with the record behind it."""
    node = admit_node(world.provider, now=now)
    seen = record_observation(
        node=node, kind="admission", value=1.0, evidence="chl_x", counterparty="org_y", now=now
    )

    assert (seen.weight, seen.at, seen.counterparty) == (1.0, now, "org_y")
    with pytest.raises(Exception, match=r"append_only|permission denied"), transaction.atomic():
        Observation.objects.update(value=0.0)
    assert Observation.objects.get().value == 1.0
