"""Silence: when it fences, when it does not, and how a node comes back."""

from datetime import datetime, timedelta

import pytest
from django.db import connection

from fabric.journal.models import Event
from fabric.lib.clock import utc_now
from providers.domain.liveness import Liveness, read_liveness
from providers.domain.nodes import NodeState
from providers.models import Challenge, Hold, Node, NodeBeat, NodeTransition, Observation
from providers.services import capacity
from providers.services.beats import record_beat
from providers.services.liveness import sweep_liveness
from providers.services.nodes import retire_node
from tests.fleet import admit_node
from tests.providers.agents import TestAgent, host_report
from tests.world import World

SECOND = timedelta(seconds=1)


def sweep_until(start: datetime, end: datetime) -> tuple[int, int]:
    """Sweep every second, as beat does, and add up what was done."""
    fenced = challenged = 0
    while start <= end:
        new = sweep_liveness(now=start)
        fenced, challenged = fenced + new[0], challenged + new[1]
        start += SECOND
    return fenced, challenged


def test_a_silent_node_is_fenced_and_takes_nothing_new(world: World, now: datetime) -> None:
    """R-B6 (agent): sixteen seconds of silence fence under limits of fifteen; holds stay."""
    node = admit_node(world.provider, now=now, device_count=2)
    first, second = capacity.list_free_units(node=node, now=now)
    hour = timedelta(hours=1)
    capacity.place_holds(
        units=[first], until=now + hour, kind=Hold.Kind.LEASE, holder="lse_1", now=now
    )

    assert sweep_until(now, now + 15 * SECOND) == (0, 0)
    assert sweep_until(now + 16 * SECOND, now + 30 * SECOND) == (1, 0)

    node.refresh_from_db()
    assert node.state == NodeState.FENCED
    assert capacity.list_free_units(node=node, now=now + 30 * SECOND) == []
    with pytest.raises(capacity.NodeNotPlaceable):
        capacity.place_holds(
            units=[second], until=now + hour, kind=Hold.Kind.LEASE, holder="lse_2", now=now
        )
    assert Hold.objects.get().live
    assert NodeTransition.objects.get(to_state="fenced").reason == "silent for 16 s"
    assert Observation.objects.get(kind="fenced").value == 16.0
    assert Event.objects.get(kind="node.fenced").organisations == [world.northwind.public_id]


def test_a_beating_node_is_left_alone(world: World, now: datetime) -> None:
    """R-B6 (agent): a node that beats is not fenced, however long it stands there."""
    node = admit_node(world.provider, now=now)
    for step in range(60):
        record_beat(node=node, seq=step, health={}, workloads=[], now=now + step * SECOND)
        assert sweep_liveness(now=now + step * SECOND) == (0, 0)


def test_our_own_outage_fences_nobody(world: World, now: datetime) -> None:
    """R-B6 (agent): after an hour in which the exchange was down nodes get their full grace."""
    node = admit_node(world.provider, now=now)
    back = now + timedelta(hours=1)

    assert sweep_until(back, back + 15 * SECOND) == (0, 0)
    record_beat(node=node, seq=1, health={}, workloads=[], now=back + 15 * SECOND)
    assert sweep_until(back + 16 * SECOND, back + 25 * SECOND) == (0, 0)
    assert Node.objects.get().state == NodeState.ADMITTED


def test_a_fenced_node_comes_back_only_by_proof(
    world: World, now: datetime, agent: TestAgent
) -> None:
    """R-B6 (agent): a beat alone does not unfence; a new challenge is issued and decides."""
    agent.report(host_report())
    node = Node.objects.get()
    Challenge.objects.update(state="expired")
    silent_since = utc_now() - timedelta(minutes=5)
    Node.objects.update(state=NodeState.ADMITTED, tier="community", admitted_at=silent_since)
    NodeBeat.objects.create(node=node, last_beat_at=silent_since)
    start = utc_now() - 20 * SECOND
    assert sweep_until(start, start + 20 * SECOND)[0] == 1
    assert Node.objects.get().state == NodeState.FENCED

    assert agent.post("beats/", {"seq": 9, "health": {}, "workloads": []}).status == 200
    assert Node.objects.get().state == NodeState.FENCED
    assert sweep_liveness(now=utc_now()) == (0, 1)
    assert sweep_liveness(now=utc_now()) == (0, 0)

    node.refresh_from_db()
    assert node.state == NodeState.PROVING
    assert Challenge.objects.open().get().purpose == "recheck"
    beat = agent.post("beats/", {"seq": 10, "health": {}, "workloads": []})
    assert beat.body["generation"] == node.desired_generation


def test_nodes_that_never_beat_or_are_retired_are_not_swept(world: World, now: datetime) -> None:
    """R-B6 (agent): only nodes that could be placed on are fenced."""
    node = admit_node(world.provider, now=now)
    retire_node(actor=world.actor(world.carol), node=node, now=now)
    assert sweep_until(now, now + 40 * SECOND) == (0, 0)
    assert Node.objects.get().state == NodeState.RETIRED


@pytest.mark.parametrize(
    ("silence", "verdict"),
    [
        (0, "alive"),
        (5, "alive"),
        (6, "suspect"),
        (15, "suspect"),
        (16, "dead"),
        (None, "never_heard"),
    ],
)
def test_how_silence_is_read(now: datetime, silence: int | None, verdict: str) -> None:
    """R-B6 (agent): suspect after five seconds, dead after fifteen, under these limits."""
    last = None if silence is None else now - silence * SECOND
    found = read_liveness(last, now=now, suspect_after_seconds=5, dead_after_seconds=15)
    assert found == Liveness(verdict)


def test_a_beat_rewrites_its_row_in_place(committed_db: None, world: World, now: datetime) -> None:
    """R-B9 (agent): beats are heap-only updates: no index is touched however many come."""
    node = admit_node(world.provider, now=now)
    for step in range(50):
        record_beat(
            node=node, seq=step, health={"load": step}, workloads=[], now=now + step * SECOND
        )
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables"
            " WHERE relname = 'providers_nodebeat'"
        )
        updated, in_place = cursor.fetchone()
    assert updated >= 50
    assert in_place == updated


def test_a_beat_that_was_overtaken_changes_nothing(world: World, now: datetime) -> None:
    """R-B6 (agent): a delayed beat does not make a node look older, nor its workloads."""
    node = admit_node(world.provider, now=now)
    running = [{"lease": "lse_1", "state": "running", "access": None, "detail": ""}]
    record_beat(node=node, seq=2, health={}, workloads=running, now=now + 2 * SECOND)
    record_beat(node=node, seq=1, health={}, workloads=[], now=now + SECOND)
    beat = NodeBeat.objects.get()
    assert (beat.seq, beat.workloads) == (2, running)
