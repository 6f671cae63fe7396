"""The life of a lease from its order to its end."""

from datetime import datetime

import pytest

from billing.domain.states import AgreementState
from billing.models import Agreement, UsageRecord
from billing.services import settlement
from fabric.journal.models import Event
from fabric.lib.errors import NotAllowed, WrongState
from leases.domain.states import EndReason, LeaseState, StreamState, WindowState
from leases.models import Lease, LeaseTransition, Stream
from leases.services import lifecycle
from leases.services.budgets import ProjectBudgetExceeded
from providers.models import DesiredItem, Hold, Node, NodeBeat, Observation
from providers.services.liveness import sweep_liveness
from tests.leases.scene import ACCESS, BUDGET, MONEY, Scene, books_balance, second
from tests.listings.machines import published_listing


def states_of(lease: Lease) -> list[str]:
    return list(LeaseTransition.objects.filter(lease=lease).values_list("to_state", flat=True))


def windows_of(lease: Lease, state: WindowState) -> int:
    return lease.windows.filter(state=state).count()


def is_held(lease: Lease) -> bool:
    return Hold.objects.filter(holder=lease.public_id, live=True).exists()


def test_a_workload_that_is_reached_from_outside_starts_charging(scene: Scene) -> None:
    """R-C4 (agent): the agent's word starts nothing; the look from outside does."""
    lease = scene.order().lease
    scene.sweep(second(scene.now, 1))
    scene.beat(second(scene.now, 1), {"lease": lease.public_id, "state": "running"})
    assert not scene.again(lease).is_charging

    assert lifecycle.confirm_ready(lease=lease, access=ACCESS, now=second(scene.now, 2))

    lease = scene.again(lease)
    assert lease.is_charging
    assert lease.ready_at == second(scene.now, 2)
    assert lease.access == ACCESS
    assert states_of(lease) == ["provisioning", "active"]
    assert Observation.objects.get(kind="seconds_to_ready").value == 2.0
    assert not lifecycle.confirm_ready(lease=lease, access=ACCESS, now=second(scene.now, 3))


def test_windows_that_pass_before_it_is_ready_cost_nothing(scene: Scene) -> None:
    """R-C4 (agent): five pods that never booted were once charged; here each window goes back."""
    lease = scene.order().lease
    for at in range(1, 21):
        scene.sweep(second(scene.now, at))
    assert windows_of(lease, WindowState.VOID) == 4
    assert windows_of(lease, WindowState.RESERVED) == 3
    assert scene.escrow_micros(lease) == BUDGET
    assert not UsageRecord.objects.exists()
    assert scene.again(lease).paid_until == second(scene.now, 35)
    assert books_balance()


def test_a_lease_that_is_never_ready_fails_and_returns_everything(scene: Scene) -> None:
    """R-C11 (agent): not ready in time: all money back, the unit free, nothing billed."""
    lease = scene.order().lease
    scene.sweep(second(scene.now, 59))
    assert scene.again(lease).state == LeaseState.PROVISIONING
    scene.sweep(second(scene.now, 60))
    lease = scene.again(lease)
    assert lease.state == LeaseState.FAILED
    assert lease.end_reason == EndReason.NOT_READY_IN_TIME
    assert scene.wallet_micros() == MONEY
    assert lease.agreement.state == AgreementState.CLOSED
    assert not is_held(lease)
    assert not DesiredItem.objects.filter(key=lease.public_id).exists()
    assert lease.due_at is None
    assert not lifecycle.confirm_ready(lease=lease, access=ACCESS, now=second(scene.now, 61))
    assert books_balance()


def test_a_workload_that_fails_on_the_node_fails_the_lease_with_its_words(scene: Scene) -> None:
    """R-B6 (agent): the buyer learns why at once, not after the timeout."""
    lease = scene.order().lease
    at = second(scene.now, 3)
    scene.beat(at, {"lease": lease.public_id, "state": "failed", "detail": "no container runtime"})
    Lease.objects.update(due_at=at)
    lifecycle.sweep(now=at)
    assert scene.again(lease).state == LeaseState.FAILED
    assert lease.transitions.get(to_state="failed").reason == "no container runtime"
    assert scene.wallet_micros() == MONEY


def test_windows_are_reserved_ahead_while_it_runs(scene: Scene) -> None:
    """R-C11 (agent): the next windows are paid before they run, and holds follow the money."""
    lease = scene.running()
    scene.sweep(second(scene.now, 6))
    lease = scene.again(lease)
    assert lease.paid_until == second(scene.now, 20)
    assert Hold.objects.get(holder=lease.public_id).period.upper == second(scene.now, 20)
    item = DesiredItem.objects.get(key=lease.public_id)
    assert item.body["paid_until"] == "2026-12-01T12:00:20Z"
    generation = item.generation
    scene.sweep(second(scene.now, 7))
    item.refresh_from_db()
    assert item.generation == generation, "nothing moved, so the node is not disturbed"


def test_a_lease_ends_where_its_money_ends(scene: Scene) -> None:
    """R-C11 (agent): the last window is reserved only as far as the money reaches, then it ends."""
    lease = scene.running(budget_micros=100)  # 13.888… micro-units a second: 7 seconds
    lease = scene.again(lease)
    assert lease.paid_until == second(scene.now, 7)
    scene.sweep(second(scene.now, 1))
    assert Event.objects.filter(kind="lease.ran_low", subject=lease.public_id).count() == 1
    scene.sweep(second(scene.now, 2))
    assert Event.objects.filter(kind="lease.ran_low", subject=lease.public_id).count() == 1
    scene.sweep(second(scene.now, 6))
    assert scene.again(lease).state == LeaseState.ACTIVE
    scene.sweep(second(scene.now, 7))
    lease = scene.again(lease)
    assert lease.state == LeaseState.ENDING
    assert lease.end_reason == EndReason.FUNDS_EXHAUSTED
    assert lease.stop_requested_at == second(scene.now, 7)
    assert DesiredItem.objects.get(key=lease.public_id).body["stop"] is True
    assert is_held(lease), "the unit is held until the node has said its last word"


def test_a_top_up_enlarges_the_short_window_and_goes_on(scene: Scene) -> None:
    """R-C11 (api): money that comes in time keeps the lease running without a gap."""
    lease = scene.running(budget_micros=100)
    scene.sweep(second(scene.now, 1))
    topped = lifecycle.top_up_lease(
        actor=scene.alice, lease=lease, amount_micros=1000, key="more", now=second(scene.now, 2)
    )
    assert topped.funded_micros == 1100
    again = lifecycle.top_up_lease(
        actor=scene.alice, lease=lease, amount_micros=1000, key="more", now=second(scene.now, 3)
    )
    assert again.funded_micros == 1100
    assert scene.wallet_micros() == MONEY - 1100
    scene.sweep(second(scene.now, 3))
    lease = scene.again(lease)
    assert lease.paid_until == second(scene.now, 15)
    assert lease.low_funds_at is None
    assert [window.coverage.seconds for window in lease.windows.all()] == [5, 5, 5]
    assert books_balance()


def test_a_top_up_respects_the_projects_budget_and_the_state(scene: Scene) -> None:
    """R-C19 (api): a top-up is held to the same budget as an order."""
    scene.world.project.budget_micros = BUDGET + 10
    scene.world.project.save()
    lease = scene.running()
    with pytest.raises(ProjectBudgetExceeded):
        lifecycle.top_up_lease(
            actor=scene.alice, lease=lease, amount_micros=11, key="k", now=scene.now
        )
    with pytest.raises(NotAllowed):
        lifecycle.top_up_lease(
            actor=scene.carol, lease=lease, amount_micros=1, key="k", now=scene.now
        )
    scene.end(lease, second(scene.now, 1))
    with pytest.raises(WrongState):
        lifecycle.top_up_lease(
            actor=scene.alice, lease=lease, amount_micros=1, key="k", now=scene.now
        )
    assert scene.again(lease).funded_micros == BUDGET


def test_the_term_ends_the_lease(scene: Scene) -> None:
    """R-C4 (agent): nothing is reserved or billed beyond the term."""
    lease = scene.running(max_seconds=12)
    scene.sweep(second(scene.now, 6))
    assert scene.again(lease).paid_until == second(scene.now, 12)
    scene.sweep(second(scene.now, 12))
    lease = scene.again(lease)
    assert lease.end_reason == EndReason.TERM_REACHED
    assert lease.stop_requested_at == second(scene.now, 12)


def test_ending_returns_what_is_unreserved_at_once_and_the_rest_when_settled(
    scene: Scene,
) -> None:
    """R-C11 (api): the whole end: stop, last batch, unit free, last line settled, money back."""
    lease = scene.running()
    meter = scene.meter(lease)
    scene.deliver(lease, meter.next(scene.now), second(scene.now, 5))
    ended = scene.end(lease, second(scene.now, 7))
    assert ended.state == LeaseState.ENDING
    assert ended.end_reason == EndReason.BUYER_ENDED
    # Five seconds at 13.888… each cost 69 or 70, by where on the counter they fall.
    assert scene.wallet_micros() == MONEY - 69 - 70
    assert scene.end(lease, second(scene.now, 8)).state == LeaseState.ENDING

    final = meter.next(second(scene.now, 5), ends_at=second(scene.now, 7), final=True)
    scene.deliver(lease, final, second(scene.now, 8))
    scene.sweep(second(scene.now, 9))
    lease = scene.again(lease)
    assert lease.stopped_at == second(scene.now, 9)
    assert not is_held(lease)
    assert not DesiredItem.objects.filter(key=lease.public_id).exists()
    assert lease.state == LeaseState.ENDING, "the last line can still be disputed"

    settlement.settle_due(now=second(scene.now, 30))
    scene.sweep(second(scene.now, 30))
    lease = scene.again(lease)
    assert lease.state == LeaseState.ENDED
    assert lease.agreement.state == AgreementState.CLOSED
    charged = sum(UsageRecord.objects.values_list("amount_micros", flat=True))
    assert charged == 7 * 50_000 // 3600 == 97
    assert scene.wallet_micros() == MONEY - charged
    assert states_of(lease) == ["provisioning", "active", "ending", "ended"]
    assert books_balance()


def test_a_lease_ended_before_it_is_ready_costs_nothing(scene: Scene) -> None:
    """R-C11 (api): a buyer who changes their mind gets all of it back at once."""
    lease = scene.order().lease
    scene.end(lease, second(scene.now, 2))
    assert scene.wallet_micros() == MONEY
    assert not is_held(lease)
    scene.sweep(second(scene.now, 3))
    assert scene.again(lease).state == LeaseState.ENDED


def test_only_the_buyer_and_an_operator_end_a_lease(scene: Scene) -> None:
    """R-C15 (api): the provider has no such verb; the operator's is named as theirs."""
    lease = scene.running()
    with pytest.raises(NotAllowed):
        lifecycle.end_lease(actor=scene.carol, lease=lease, now=scene.now)
    assert scene.again(lease).state == LeaseState.ACTIVE
    ended = lifecycle.end_lease(actor=scene.olga, lease=lease, now=second(scene.now, 1))
    assert ended.end_reason == EndReason.OPERATOR_ENDED


def silent_sweep(now: datetime) -> None:
    Lease.objects.filter(due_at__isnull=False).update(due_at=now)
    lifecycle.sweep(now=now)


def fence(scene: Scene, state: str = "fenced") -> None:
    Node.objects.filter(pk=scene.node.pk).update(state=state)


def test_a_node_that_goes_silent_interrupts_the_lease_unbilled(scene: Scene) -> None:
    """R-B6 (agent): nothing is billed after the last second anybody saw it."""
    lease = scene.running()
    scene.sweep(second(scene.now, 4))
    silent_sweep(second(scene.now, 19))
    assert scene.again(lease).state == LeaseState.ACTIVE
    fence(scene)
    silent_sweep(second(scene.now, 20))
    lease = scene.again(lease)
    assert lease.state == LeaseState.INTERRUPTED
    assert lease.interrupted_at == second(scene.now, 4)
    assert not lease.is_charging
    assert scene.wallet_micros() == MONEY - BUDGET, "the money waits in escrow"
    assert windows_of(lease, WindowState.RESERVED) == 1, "only the window it was last seen in"

    silent_sweep(second(scene.now, 64))
    lease = scene.again(lease)
    assert lease.state == LeaseState.ENDING
    assert lease.end_reason == EndReason.NODE_FAILED
    assert lease.stop_requested_at == second(scene.now, 4)
    silent_sweep(second(scene.now, 81))
    lease = scene.again(lease)
    assert lease.stopped_at is not None
    settlement.settle_due(now=second(scene.now, 200))
    silent_sweep(second(scene.now, 200))
    assert scene.again(lease).state == LeaseState.ENDED
    reading = lease.readings.get()
    assert (reading.batch, reading.ready_seconds) == (None, 0)
    assert scene.wallet_micros() == MONEY
    assert books_balance()


def test_a_node_that_comes_back_goes_on_where_money_and_term_are_left(scene: Scene) -> None:
    """R-B6 (agent): recovery is verified from outside before a second is billed again."""
    lease = scene.running()
    scene.sweep(second(scene.now, 4))
    fence(scene)
    silent_sweep(second(scene.now, 22))
    assert scene.again(lease).state == LeaseState.INTERRUPTED
    fence(scene, "proving")
    scene.sweep(second(scene.now, 30))
    lease = scene.again(lease)
    assert lease.state == LeaseState.INTERRUPTED, "a beat alone proves nothing"
    assert lease.paid_until == second(scene.now, 45), "the agent may start it again"
    assert not lifecycle.confirm_ready(lease=lease, access=ACCESS, now=second(scene.now, 30))
    fence(scene, "admitted")
    assert lifecycle.confirm_ready(lease=lease, access=ACCESS, now=second(scene.now, 31))
    lease = scene.again(lease)
    assert lease.state == LeaseState.ACTIVE
    assert lease.ready_at == scene.now
    scene.sweep(second(scene.now, 33))
    meter = scene.meter(lease)
    late = scene.deliver(lease, meter.next(scene.now, ready_seconds=4), second(scene.now, 34))
    assert late.body["state"] == "accepted"
    gone = scene.deliver(lease, meter.next(second(scene.now, 10)), second(scene.now, 34))
    assert gone.body["state"] == "accepted"
    back = scene.deliver(lease, meter.next(second(scene.now, 30)), second(scene.now, 35))
    assert back.body["state"] == "accepted"
    billed = {
        int((reading.starts_at - scene.now).total_seconds()): reading.ready_seconds
        for reading in lease.readings.all()
    }
    assert billed == {0: 4, 10: 0, 30: 5}
    assert books_balance()


def test_a_silent_meter_interrupts_although_the_node_beats(scene: Scene) -> None:
    """R-C4 (agent): a heartbeat that says online is not a meter that meters."""
    lease = scene.running()
    for at in range(5, 26, 5):
        scene.sweep(second(scene.now, at))
    assert scene.again(lease).state == LeaseState.ACTIVE
    scene.sweep(second(scene.now, 26))
    lease = scene.again(lease)
    assert lease.state == LeaseState.INTERRUPTED
    assert lease.transitions.get(to_state="interrupted").reason == "the meter went silent"


def test_an_outage_of_ours_interrupts_nobody(scene: Scene) -> None:
    """R-B6 (agent): silence counts only while we listened; what we missed may still arrive."""
    lease = scene.running()
    sweep_liveness(now=second(scene.now, 300))
    scene.sweep(second(scene.now, 301))
    assert scene.again(lease).state == LeaseState.ACTIVE


def test_a_fenced_node_interrupts_at_once(scene: Scene) -> None:
    """R-B6 (agent): a fence counts before the silence does."""
    lease = scene.running()
    fence(scene)
    scene.sweep(second(scene.now, 1))
    assert scene.again(lease).state == LeaseState.INTERRUPTED


def test_a_node_that_closes_its_stream_ends_the_lease(scene: Scene) -> None:
    """R-B6 (agent): a final batch while the buyer still wants it is the provider's end of it."""
    lease = scene.running()
    scene.deliver(lease, scene.meter(lease).next(scene.now, final=True), second(scene.now, 5))
    assert Stream.objects.get(lease=lease).state == StreamState.FINAL
    scene.sweep(second(scene.now, 6))
    lease = scene.again(lease)
    assert lease.end_reason == EndReason.NODE_FAILED
    assert lease.stop_requested_at == second(scene.now, 5)


def test_sweeps_are_safe_beside_and_after_each_other(scene: Scene) -> None:
    """R-C13 (agent): a sweep that runs twice, or dies and runs again, moves nothing twice."""
    lease = scene.running()
    at = second(scene.now, 6)
    scene.sweep(at)
    before = (lease.windows.count(), scene.escrow_micros(lease), states_of(lease))
    for _ in range(3):
        scene.sweep(at)
    assert (lease.windows.count(), scene.escrow_micros(lease), states_of(lease)) == before
    assert lifecycle.sweep(now=at) == 0, "nothing is due any more"


def test_one_broken_lease_does_not_keep_the_others_waiting(scene: Scene) -> None:
    """R-C4 (agent): the sweep logs what it cannot advance and goes on to the next."""
    broken = scene.running()
    other = published_listing(scene.world, now=scene.now, name="reykjavik-2")
    Node.objects.filter(pk=other.node_id).update(accepts_unisolated=True)
    NodeBeat.objects.create(node=other.node, last_beat_at=second(scene.now, 6))
    sound = scene.order(listing=other, key="order-2").lease
    Agreement.objects.filter(pk=broken.agreement_id).update(state=AgreementState.CLOSING)

    scene.sweep(second(scene.now, 6))

    assert scene.again(broken).paid_until == second(scene.now, 15)
    assert scene.again(broken).due_at == second(scene.now, 6), "it stays due and is tried again"
    assert scene.again(sound).paid_until == second(scene.now, 20)
