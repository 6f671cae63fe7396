"""Disputes: one line is held, everything else goes on."""

from datetime import datetime

import pytest

from billing.domain.states import UsageState
from billing.models import Account, Entry, UsageRecord
from billing.services import settlement
from fabric.journal.models import AuditEntry
from fabric.lib.errors import InvalidInput, NotAllowed, WrongState
from leases.domain.states import DisputeState, LeaseState, Outcome
from leases.models import Dispute, Lease, Reading
from leases.services import disputes
from tests.leases.scene import MONEY, Scene, books_balance, second

WORDS = "The workload did not answer for two seconds."


@pytest.fixture
def lease(scene: Scene) -> Lease:
    """Two metered windows of 69 and 69 micro-units, both open to dispute until :15 and :20."""
    lease = scene.running()
    meter = scene.meter(lease)
    scene.deliver(lease, meter.next(scene.now), second(scene.now, 5))
    scene.deliver(lease, meter.next(second(scene.now, 5)), second(scene.now, 10))
    return lease


def first_reading() -> Reading:
    return Reading.objects.earliest("window_index")


def earned(scene: Scene) -> int:
    account = Account.objects.get(code=f"earned:{scene.world.northwind.public_id}")
    return account.credits_posted - account.debits_posted


def dispute_as(scene: Scene, now: datetime) -> Dispute:
    return disputes.open_dispute(
        actor=scene.alice, reading=first_reading(), statement=WORDS, now=now
    )


def test_only_the_disputed_line_is_held(scene: Scene, lease: Lease) -> None:
    """R-C7 (api): the other window settles on time."""
    dispute = dispute_as(scene, second(scene.now, 12))
    assert dispute.opened_side == "buyer"
    assert settlement.settle_due(now=second(scene.now, 60)) == 1
    states = UsageRecord.objects.order_by("window_index").values_list("state", flat=True)
    assert list(states) == [UsageState.DISPUTED, UsageState.SETTLED]
    assert AuditEntry.objects.get(subject=dispute.public_id).reason == WORDS
    assert books_balance()


@pytest.mark.parametrize(
    ("stands_bps", "outcome", "posted"),
    [
        (0, Outcome.UPHELD, 0),
        (3_333, Outcome.PARTLY_UPHELD, 22),
        (1, Outcome.PARTLY_UPHELD, 0),
        (10_000, Outcome.REJECTED, 69),
    ],
)
def test_a_ruling_lets_a_whole_number_of_basis_points_stand(
    scene: Scene, lease: Lease, stands_bps: int, outcome: Outcome, posted: int
) -> None:
    """R-C7 (api): what does not stand returns to the buyer, to the micro-unit."""
    dispute = dispute_as(scene, second(scene.now, 12))
    ruled = disputes.rule(
        actor=scene.olga,
        dispute=dispute,
        stands_bps=stands_bps,
        ruling="Two of three readings agree.",
        now=second(scene.now, 30),
    )
    assert ruled.outcome == outcome
    assert ruled.ruled_by == scene.world.olga.public_id
    record = first_reading().usage_record
    assert record is not None
    moved = Entry.objects.filter(transfer__record=record, amount_micros__gt=0)
    assert sum(moved.values_list("amount_micros", flat=True)) == posted
    settlement.settle_due(now=second(scene.now, 60))
    scene.end(lease, second(scene.now, 61))
    scene.sweep(second(scene.now, 100))
    settlement.settle_due(now=second(scene.now, 200))
    scene.sweep(second(scene.now, 200))
    assert scene.again(lease).state == LeaseState.ENDED
    assert scene.wallet_micros() == MONEY - posted - 69
    assert books_balance()


def test_the_page_divides_a_ruled_line_as_the_ledger_did(scene: Scene, lease: Lease) -> None:
    """R-C13 (page): the shares shown are those booked, and the rest went back to the buyer."""
    reading = Reading.objects.latest("window_index")
    dispute = disputes.open_dispute(
        actor=scene.alice, reading=reading, statement=WORDS, now=second(scene.now, 12)
    )
    disputes.rule(
        actor=scene.olga,
        dispute=dispute,
        stands_bps=5_000,
        ruling="Half of it.",
        now=second(scene.now, 13),
    )
    page = scene.world.client(scene.world.alice).get(f"/leases/{lease.public_id}/")
    line = page.context["line"]
    shown = {name: -micros for name, _, micros in line.legs if micros}
    posted = Entry.objects.filter(transfer__record=line.record, amount_micros__gt=0)
    assert shown.pop("the buyer's escrow, as ruled") == 35
    assert sum(posted.values_list("amount_micros", flat=True)) == sum(shown.values()) == 34
    assert line.total_micros == 0


def test_a_lease_stays_open_while_a_dispute_is(scene: Scene, lease: Lease) -> None:
    """R-C7 (api): the agreement closes only when every line is decided."""
    dispute = dispute_as(scene, second(scene.now, 12))
    scene.end(lease, second(scene.now, 13))
    scene.sweep(second(scene.now, 60))
    settlement.settle_due(now=second(scene.now, 100))
    scene.sweep(second(scene.now, 100))
    assert scene.again(lease).state == LeaseState.ENDING
    disputes.rule(
        actor=scene.olga, dispute=dispute, stands_bps=0, ruling="Void.", now=second(scene.now, 101)
    )
    scene.sweep(second(scene.now, 102))
    assert scene.again(lease).state == LeaseState.ENDED


def test_a_withdrawn_dispute_lets_the_line_go_its_way(scene: Scene, lease: Lease) -> None:
    """R-C7 (api): before its time the line waits on; after it, it settles whole."""
    dispute = dispute_as(scene, second(scene.now, 12))
    with pytest.raises(NotAllowed):
        disputes.withdraw(actor=scene.carol, dispute=dispute, now=second(scene.now, 13))
    withdrawn = disputes.withdraw(actor=scene.alice, dispute=dispute, now=second(scene.now, 40))
    assert withdrawn.outcome == Outcome.WITHDRAWN
    record = first_reading().usage_record
    assert record is not None
    assert (record.state, record.stands_bps) == (UsageState.SETTLED, 10_000)
    with pytest.raises(WrongState):
        disputes.withdraw(actor=scene.alice, dispute=dispute, now=second(scene.now, 41))
    actions = AuditEntry.objects.filter(subject=dispute.public_id).values_list("action", flat=True)
    assert sorted(actions) == ["dispute.was_opened", "dispute.was_withdrawn"]


def test_either_side_disputes_once_and_a_stranger_never(scene: Scene, lease: Lease) -> None:
    """R-C7 (api): the provider may claim too; one submission decides."""
    by_provider = disputes.open_dispute(
        actor=scene.carol, reading=first_reading(), statement=WORDS, now=second(scene.now, 12)
    )
    assert by_provider.opened_side == "provider"
    with pytest.raises(disputes.AlreadyDisputed):
        dispute_as(scene, second(scene.now, 12))
    last = Reading.objects.latest("window_index")
    for stranger in (scene.world.actor(scene.world.dave), scene.olga):
        with pytest.raises(NotAllowed):
            disputes.open_dispute(
                actor=stranger, reading=last, statement=WORDS, now=second(scene.now, 12)
            )
    assert Dispute.objects.count() == 1


def test_the_instant_of_settlement_belongs_to_settlement(scene: Scene, lease: Lease) -> None:
    """R-C7 (api): open until, not including, the end of the window; the line is stored with it."""
    reading = first_reading()
    record = reading.usage_record
    assert record is not None
    with pytest.raises(disputes.DisputeWindowClosed):
        dispute_as(scene, record.disputable_until)
    assert not Dispute.objects.exists()
    assert settlement.settle_due(now=record.disputable_until) == 1
    with pytest.raises(disputes.DisputeWindowClosed):
        dispute_as(scene, second(scene.now, 12))


def test_a_settled_line_cannot_be_disputed_whatever_the_clock(scene: Scene, lease: Lease) -> None:
    """R-C7 (api): whoever changes the one row first wins."""
    settlement.settle_due(now=second(scene.now, 60))
    with pytest.raises(disputes.DisputeWindowClosed):
        dispute_as(scene, second(scene.now, 12))
    assert not Dispute.objects.exists()


@pytest.mark.parametrize("stands_bps", [-1, 10_001, 50.0, True, "5000", None])
def test_a_ruling_is_a_whole_share(scene: Scene, lease: Lease, stands_bps: object) -> None:
    """R-C7 (api): a ruling that cannot be read decides nothing."""
    dispute = dispute_as(scene, second(scene.now, 12))
    with pytest.raises(InvalidInput):
        disputes.rule(
            actor=scene.olga,
            dispute=dispute,
            stands_bps=stands_bps,  # type: ignore[arg-type]
            ruling="Because.",
            now=second(scene.now, 13),
        )
    dispute.refresh_from_db()
    assert dispute.state == DisputeState.OPEN


def test_only_an_operator_rules_and_only_once(scene: Scene, lease: Lease) -> None:
    """R-C7 (api): neither side judges its own claim."""
    dispute = dispute_as(scene, second(scene.now, 12))
    for party in (scene.alice, scene.carol):
        with pytest.raises(NotAllowed):
            disputes.rule(actor=party, dispute=dispute, stands_bps=0, ruling="Mine.", now=scene.now)
    disputes.rule(actor=scene.olga, dispute=dispute, stands_bps=0, ruling="So.", now=scene.now)
    with pytest.raises(WrongState):
        disputes.rule(
            actor=scene.olga, dispute=dispute, stands_bps=10_000, ruling="No.", now=scene.now
        )


@pytest.mark.parametrize("words", ["", "   ", "x" * 4001, "a\x00b"])
def test_a_dispute_says_what_was_wrong(scene: Scene, lease: Lease, words: str) -> None:
    """R-C7 (api): a claim without words holds nobody's money."""
    with pytest.raises(InvalidInput):
        disputes.open_dispute(
            actor=scene.alice, reading=first_reading(), statement=words, now=second(scene.now, 12)
        )
    record = first_reading().usage_record
    assert record is not None
    assert record.state == UsageState.PENDING


def test_a_window_without_a_charge_has_nothing_to_hold(scene: Scene) -> None:
    """R-C7 (api): a zero line is nobody's money."""
    lease = scene.running()
    scene.deliver(lease, scene.meter(lease).next(scene.now, ready_seconds=0), second(scene.now, 5))
    with pytest.raises(disputes.NothingToHold):
        dispute_as(scene, second(scene.now, 6))
