"""Any life a lease can lead keeps every promise: to the buyer, the provider and the books."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.core.cache import cache
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from billing.models import Account, UsageRecord
from billing.services import settlement
from fabric.lib.errors import DomainError
from leases.domain.states import LIVE, LeaseState, WindowState, can_move
from leases.models import Dispute, Lease, LeaseTransition, Reading
from leases.services import disputes, lifecycle
from providers.models import DesiredItem, Hold, Node
from tests.leases.scene import ACCESS, MONEY, OVER, WINDOW, Meter, Scene, books_balance, build_scene
from tests.world import build_world

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
BUDGETS = st.integers(14, 4000)
STEPS = st.integers(1, 12)


class LeaseMachine(RuleBasedStateMachine):
    """One lease under a clock that only goes on, with everybody acting as they please."""

    @initialize(budget=BUDGETS, term=st.integers(1, 200))
    def begin(self, budget: int, term: int) -> None:
        """Order a lease; everything is rolled back when the example ends."""
        cache.clear()
        self.block = transaction.atomic()
        self.block.__enter__()
        self.scene: Scene = build_scene(build_world(), NOON)
        self.now = NOON
        self.topped = 0
        self.lease = self.scene.order(budget_micros=budget, max_seconds=term).lease
        self.funded = budget
        self.meter: Meter = self.scene.meter(self.lease)
        self.meter_at: datetime | None = None

    def teardown(self) -> None:
        """Undo the example."""
        if hasattr(self, "block"):
            transaction.set_rollback(True)
            self.block.__exit__(None, None, None)

    @rule(seconds=STEPS)
    def time_passes_with_beats(self, seconds: int) -> None:
        """The node beats and the sweep runs, at an interval that may be too long."""
        self.now += timedelta(seconds=seconds)
        self.scene.sweep(self.now)

    @rule(seconds=STEPS)
    def time_passes_unswept(self, seconds: int) -> None:
        """The exchange is busy."""
        self.now += timedelta(seconds=seconds)

    @rule(state=st.sampled_from(["fenced", "proving", "admitted"]))
    def the_node_goes_or_comes(self, state: str) -> None:
        """The node is fenced, comes back, and proves itself."""
        Node.objects.filter(pk=self.scene.node.pk).update(state=state)

    @rule()
    def the_workload_is_reached(self) -> None:
        """A look from outside succeeds."""
        lease = self.scene.again(self.lease)
        ready = lifecycle.confirm_ready(lease=lease, access=ACCESS, now=self.now)
        if ready and self.meter_at is None:
            self.meter_at = self._window_start(self.now)

    @precondition(lambda self: getattr(self, "meter_at", None) is not None)
    @rule(skip=st.integers(0, 2), claimed=st.integers(0, WINDOW), final=st.booleans())
    def a_batch_arrives(self, skip: int, claimed: int, final: bool) -> None:
        """The meter reports a window that is over, perhaps leaving some out, perhaps its last."""
        assert self.meter_at is not None
        start = self.meter_at + timedelta(seconds=WINDOW * skip)
        if start + timedelta(seconds=WINDOW) > self.now:
            return
        envelope = self.meter.next(start, ready_seconds=claimed, final=final)
        first = self.scene.deliver(self.lease, envelope, self.now)
        again = self.scene.deliver(self.lease, envelope, self.now)
        assert again.body == first.body
        self.meter_at = start + timedelta(seconds=WINDOW)

    @rule(amount=st.integers(1, 500))
    def the_buyer_tops_up(self, amount: int) -> None:
        """More money, where the lease still takes some."""
        self.topped += 1
        with self.perhaps_refused():
            lifecycle.top_up_lease(
                actor=self.scene.alice,
                lease=self.lease,
                amount_micros=amount,
                key=f"t{self.topped}",
                now=self.now,
            )
            self.funded += amount

    @rule()
    def the_buyer_stops(self) -> None:
        """The buyer has had enough."""
        with self.perhaps_refused():
            self.scene.end(self.lease, self.now)

    @rule()
    def somebody_disputes(self) -> None:
        """The newest line that can be."""
        reading = Reading.objects.filter(lease=self.lease).order_by("-window_index").first()
        if reading is not None:
            with self.perhaps_refused():
                disputes.open_dispute(
                    actor=self.scene.carol, reading=reading, statement="No.", now=self.now
                )

    @rule(stands_bps=st.integers(0, 10_000))
    def the_exchange_rules(self, stands_bps: int) -> None:
        """On the oldest open dispute."""
        dispute = Dispute.objects.open().order_by("opened_at").first()
        if dispute is not None:
            disputes.rule(
                actor=self.scene.olga,
                dispute=dispute,
                stands_bps=stands_bps,
                ruling="So.",
                now=self.now,
            )

    @rule()
    def lines_settle(self) -> None:
        """Those whose dispute window is over."""
        settlement.settle_due(now=self.now)

    @invariant()
    def the_books_balance_and_nothing_is_lost(self) -> None:
        """Every micro-unit is in the wallet, the escrow, or where a line put it."""
        if not hasattr(self, "lease"):
            return
        assert books_balance()
        escrow = Account.objects.get(pk=self.lease.agreement.escrow_id)
        assert escrow.available_micros >= 0
        stands = sum(
            record.amount_micros * record.stands_bps // 10_000
            for record in UsageRecord.objects.filter(state="settled")
        )
        held = escrow.credits_posted - escrow.debits_posted
        assert self.scene.wallet_micros() + held + stands == MONEY

    @invariant()
    def no_more_is_charged_than_was_ready_and_paid(self) -> None:
        """Lines never exceed the funds, the claims, or the time since it was ready."""
        if not hasattr(self, "lease"):
            return
        charged = sum(UsageRecord.objects.values_list("amount_micros", flat=True))
        seconds = sum(Reading.objects.values_list("ready_seconds", flat=True))
        assert charged <= self.funded
        assert charged == seconds * 50_000 // 3600
        lease = self.scene.again(self.lease)
        if lease.ready_at is None:
            assert seconds == 0
        else:
            assert seconds <= (min(self.now, lease.ends_at) - lease.ready_at).total_seconds()

    @invariant()
    def moves_are_allowed_and_written_down(self) -> None:
        """The transitions tell the whole life, and it is one the table allows."""
        if not hasattr(self, "lease"):
            return
        moves = list(
            LeaseTransition.objects.filter(lease=self.lease)
            .order_by("id")
            .values_list("from_state", "to_state")
        )
        assert moves[0] == ("", LeaseState.PROVISIONING)
        for (_, before), (said, after) in pairwise(moves):
            assert said == before
            assert can_move(LeaseState(before), LeaseState(after))
        assert moves[-1][1] == self.scene.again(self.lease).state

    @invariant()
    def a_lease_that_is_over_holds_nothing(self) -> None:
        """No unit, no money, no word to the node, nothing reserved."""
        if not hasattr(self, "lease"):
            return
        lease = self.scene.again(self.lease)
        held = Hold.objects.filter(holder=lease.public_id, live=True).exists()
        if lease.state in OVER:
            assert not held
            assert self.scene.escrow_micros(lease) == 0
            assert not DesiredItem.objects.filter(key=lease.public_id).exists()
            assert not lease.windows.filter(state=WindowState.RESERVED).exists()
            assert lease.due_at is None
        elif lease.stopped_at is None:
            assert held

    @contextmanager
    def perhaps_refused(self) -> Iterator[None]:
        """Let a refusal pass: the invariants say that it changed nothing it should not."""
        with suppress(DomainError):
            yield

    def _window_start(self, at: datetime) -> datetime:
        return datetime.fromtimestamp(int(at.timestamp()) // WINDOW * WINDOW, tz=UTC)

    def finish(self) -> None:
        """Let time run on: every lease comes to its end by itself and gives everything back."""
        for dispute in Dispute.objects.open():
            disputes.rule(
                actor=self.scene.olga, dispute=dispute, stands_bps=0, ruling="So.", now=self.now
            )
        for _ in range(12):
            self.now += timedelta(seconds=40)
            self.scene.sweep(self.now)
            settlement.settle_due(now=self.now)
        lease = Lease.objects.get(pk=self.lease.pk)
        assert lease.state not in LIVE, lease.state


class LeaseMachineToItsEnd(LeaseMachine):
    """The same, and then nobody acts any more."""

    def teardown(self) -> None:
        """See the lease to its end before undoing the example."""
        try:
            if hasattr(self, "lease"):
                self.finish()
                self.the_books_balance_and_nothing_is_lost()
                self.a_lease_that_is_over_holds_nothing()
        finally:
            super().teardown()


@pytest.mark.django_db
def test_any_life_of_a_lease_keeps_the_books_and_the_promises() -> None:
    """R-C1, R-C4, R-C7, R-C11, R-C13 (agent): whatever order things happen in, it adds up."""
    run_state_machine_as_test(
        LeaseMachineToItsEnd,
        settings=settings(
            max_examples=12,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
@pytest.mark.django_db
def test_many_lives_of_a_lease_keep_the_books_and_the_promises() -> None:
    """R-C13 (agent): the same for longer."""
    run_state_machine_as_test(
        LeaseMachineToItsEnd,
        settings=settings(
            max_examples=150,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
