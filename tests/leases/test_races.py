"""What happens at the same time happens once: orders, sweeps, batches, disputes, and deaths."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial

import pytest
from django.db import OperationalError, connection, connections, transaction

from billing.domain.states import UsageState
from billing.models import Account, Transfer, UsageRecord
from billing.services import ledger, settlement
from fabric.lib.errors import DomainError
from leases.domain.states import LeaseState
from leases.models import Batch, Dispute, Lease, LeaseTransition, LeaseWindow, Order, Reading
from leases.services import disputes, lifecycle, ordering
from providers.models import Hold, NodeBeat
from tests.leases.scene import BUDGET, MONEY, Scene, books_balance, build_scene, second
from tests.world import World

AT_ONCE = 10


@pytest.fixture
def scene(committed_db: None, world: World, now: datetime) -> Scene:
    """The scene, committed, so that every thread sees it on a connection of its own."""
    return build_scene(world, now)


def at_once(acts: list[Callable[[], object]]) -> list[object]:
    """Run all acts, ten at a time, and return their results or exceptions in order."""

    def run(act: Callable[[], object]) -> object:
        try:
            return act()
        except (DomainError, OperationalError) as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, acts))


def test_the_same_order_fifty_times_at_once_is_one_order(scene: Scene) -> None:
    """R-C1, R-C15 (api): fifty posts under one key: one order, one lease, one transfer."""
    results = at_once([scene.order] * 50)
    assert {getattr(result, "pk", result) for result in results} == {Order.objects.get().pk}
    assert Lease.objects.count() == 1
    assert Hold.objects.filter(live=True).count() == 1
    assert Transfer.objects.filter(kind="order").count() == 1
    assert scene.wallet_micros() == MONEY - BUDGET
    assert books_balance()


def test_buyers_racing_for_one_unit_get_one_lease(scene: Scene) -> None:
    """R-C2 (api): one wins; each loser is told so, and nothing of its order exists."""
    results = at_once([partial(scene.order, key=f"order-{place}") for place in range(12)])
    won = [result for result in results if isinstance(result, Order)]
    lost = [result for result in results if isinstance(result, ordering.UnitsNotFree)]
    assert (len(won), len(lost)) == (1, 11), results
    assert Order.objects.count() == Lease.objects.count() == 1
    assert Hold.objects.filter(live=True).count() == 1
    assert Account.objects.filter(kind="escrow").count() == 1
    assert scene.wallet_micros() == MONEY - BUDGET
    assert books_balance()


def test_sweeps_beside_each_other_share_the_work(scene: Scene) -> None:
    """R-C13 (agent): eight sweeps at once reserve each window once and move nothing twice."""
    lease = scene.running()
    at = second(scene.now, 6)
    scene.beat(at)
    Lease.objects.update(due_at=at)
    results = at_once([partial(lifecycle.sweep, now=at)] * 8)
    assert sum(result for result in results if isinstance(result, int)) == 1, results
    assert LeaseWindow.objects.filter(lease=lease).count() == 4
    assert Transfer.objects.filter(kind="reserve").count() == 4
    assert books_balance()


def test_the_same_batch_at_once_is_one_reading(scene: Scene) -> None:
    """R-C4 (agent): an impatient agent sends it on every connection it has."""
    lease = scene.running()
    envelope = scene.meter(lease).next(scene.now)
    deliver = partial(scene.deliver, lease, envelope, second(scene.now, 5))
    results = at_once([deliver] * 12)
    bodies = [getattr(result, "body", result) for result in results]
    assert all(body == bodies[0] for body in bodies), bodies
    assert sum(getattr(result, "created", False) for result in results) == 1
    assert Batch.objects.count() == Reading.objects.count() == UsageRecord.objects.count() == 1


def test_a_buyer_who_stops_while_a_batch_arrives_pays_once(scene: Scene) -> None:
    """R-C11 (api): stop, sweep and batch at once: whichever is first, the money adds up."""
    lease = scene.running()
    meter = scene.meter(lease)
    at = second(scene.now, 5)
    scene.beat(at)
    Lease.objects.update(due_at=at)
    at_once(
        [
            partial(scene.deliver, lease, meter.next(scene.now), at),
            partial(scene.end, lease, at),
            partial(lifecycle.sweep, now=at),
            partial(scene.end, lease, at),
        ]
    )
    assert scene.again(lease).state == LeaseState.ENDING
    assert LeaseTransition.objects.filter(lease=lease, to_state="ending").count() == 1
    assert UsageRecord.objects.get().amount_micros == 69
    assert scene.wallet_micros() == MONEY - 69
    assert books_balance()


@pytest.mark.parametrize("first", ["dispute", "settlement"])
def test_dispute_and_settlement_of_one_line_have_one_winner(scene: Scene, first: str) -> None:
    """R-C7 (api): both at the last instant: the row is changed once, by whoever comes first."""
    lease = scene.running()
    scene.deliver(lease, scene.meter(lease).next(scene.now), second(scene.now, 5))
    reading = Reading.objects.get()
    last_instant = second(scene.now, 14.999)

    def dispute() -> object:
        return disputes.open_dispute(
            actor=scene.alice, reading=reading, statement="Slow.", now=last_instant
        )

    def settle() -> object:
        return settlement.settle_due(now=second(scene.now, 15))

    acts = [dispute, settle] if first == "dispute" else [settle, dispute]
    results = dict(zip([act.__name__ for act in acts], at_once(acts), strict=True))
    record = UsageRecord.objects.get()
    if isinstance(results["dispute"], Dispute):
        assert record.state == UsageState.DISPUTED
        assert results["settle"] == 0
        assert not Transfer.objects.filter(kind="settle").exists()
    else:
        assert isinstance(results["dispute"], disputes.DisputeWindowClosed)
        assert record.state == UsageState.SETTLED
        assert not Dispute.objects.exists()
    assert books_balance()


def test_disputes_of_one_reading_at_once_are_one(scene: Scene) -> None:
    """R-C7 (api): whoever is second is told that it is disputed, not that it is too late."""
    lease = scene.running()
    scene.deliver(lease, scene.meter(lease).next(scene.now), second(scene.now, 5))
    reading = Reading.objects.get()
    dispute = partial(
        disputes.open_dispute,
        actor=scene.alice,
        reading=reading,
        statement="Slow.",
        now=second(scene.now, 6),
    )
    results = at_once([dispute] * 8)
    assert sum(isinstance(result, Dispute) for result in results) == 1, results
    assert sum(isinstance(result, disputes.AlreadyDisputed) for result in results) == 7, results
    assert UsageRecord.objects.get().state == UsageState.DISPUTED


def test_two_rulings_at_once_book_one(scene: Scene) -> None:
    """R-C7 (api): the second operator finds the dispute closed."""
    lease = scene.running()
    scene.deliver(lease, scene.meter(lease).next(scene.now), second(scene.now, 5))
    dispute = disputes.open_dispute(
        actor=scene.alice,
        reading=Reading.objects.get(),
        statement="Slow.",
        now=second(scene.now, 6),
    )

    def rule(stands_bps: int) -> object:
        return disputes.rule(
            actor=scene.olga,
            dispute=Dispute.objects.get(pk=dispute.pk),
            stands_bps=stands_bps,
            ruling="So.",
            now=second(scene.now, 7),
        )

    results = at_once([partial(rule, 0), partial(rule, 10_000), partial(rule, 5000)])
    assert sum(isinstance(result, Dispute) for result in results) == 1, results
    record = UsageRecord.objects.get()
    dispute.refresh_from_db()
    assert record.stands_bps == dispute.stands_bps
    assert Transfer.objects.filter(kind="settle").count() == 1
    assert books_balance()


def test_a_sweep_whose_database_session_dies_leaves_the_lease_before_the_step(
    scene: Scene,
) -> None:
    """R-C13 (agent): killed between reserving and committing, it has done nothing; run again, all."""
    lease = scene.running()
    at = second(scene.now, 6)
    NodeBeat.objects.update(last_beat_at=at)
    Lease.objects.update(due_at=at)

    def sweep() -> object:
        try:
            return lifecycle.sweep(now=at)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            # Holding the escrow stops the sweep right where it moves money.
            ledger.lock_accounts([lease.agreement.escrow_id])
            died = pool.submit(sweep)
            assert kill_who_waits_for_us() == 1
        assert died.result(timeout=20) == 0
    assert LeaseWindow.objects.filter(lease=lease).count() == 3
    assert scene.again(lease).due_at == at, "it is still due"
    assert lifecycle.sweep(now=at) == 1
    assert LeaseWindow.objects.filter(lease=lease).count() == 4
    assert Transfer.objects.filter(kind="reserve").count() == 4
    assert books_balance()


def kill_who_waits_for_us() -> int:
    """End every session that waits for a lock of this one; return how many there were."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
            )
            killed: int = cursor.fetchone()[0]
        if killed:
            return killed
        time.sleep(0.05)
    return 0
