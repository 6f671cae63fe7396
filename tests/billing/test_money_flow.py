"""Money from a wallet to the provider's earnings: each verb, and what it refuses."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from billing.domain.lines import Rate
from billing.domain.states import AgreementState, UsageState
from billing.models import Account, Agreement, Reservation, Terms, Transfer, UsageRecord
from billing.selectors import ledger_lines
from billing.services import (
    agreements,
    disputes,
    earnings,
    escrow,
    ledger,
    settlement,
    usage,
    wallet,
)
from billing.services.escrow import EscrowExhausted
from billing.services.ledger import InsufficientFunds, KeyReused, MoreThanReserved
from fabric.lib.errors import InvalidInput, WrongState
from tests.billing.money import (
    after_disputes,
    agree,
    assert_books_balance,
    earned_micros,
    escrow_of,
    fees_micros,
    first_window,
    funded,
    give,
    record,
)
from tests.world import World


def _reserve(
    agreement: Agreement, terms: Terms, window: int, seconds: int, now: datetime
) -> Transfer | None:
    return escrow.reserve_window(
        agreement=agreement,
        terms=terms,
        window_index=window,
        max_ready_seconds=seconds,
        now=now,
    )


def _reserved_micros(pending: Transfer | None) -> int:
    return pending.amount_micros if pending else 0


def test_an_agreement_pins_parties_price_and_parameters(world: World, now: datetime) -> None:
    """R-C3 (api): the fee policy in force at signing is part of the terms, by digest."""
    agreement, terms = agree(world, now)
    assert bytes(terms.parameters_digest) == bytes(world.commercial.digest)
    assert terms.body["parameters_digest"] == bytes(world.commercial.digest).hex()
    assert terms.body["agreement"] == agreement.public_id
    assert terms.body["price"]["amount_micros"] == "3600000"
    assert (terms.window_seconds, terms.dispute_window_seconds) == (5, 10)
    for field, value in (("price_micros", 1), ("digest", b"x"), ("body", {})):
        with pytest.raises(DatabaseError), transaction.atomic():
            type(terms).objects.filter(pk=terms.pk).update(**{field: value})


@pytest.mark.parametrize("field", ["buyer", "provider", "escrow"])
def test_the_parties_and_the_escrow_never_change(world: World, now: datetime, field: str) -> None:
    """R-C2 (api): one buyer, one provider, one escrow; the database refuses another."""
    agreement, _ = agree(world, now)
    other, _ = agree(world, now)
    value = other.escrow if field == "escrow" else world.strangers
    with pytest.raises(DatabaseError), transaction.atomic():
        Agreement.objects.filter(pk=agreement.pk).update(**{field: value})
    with pytest.raises(DatabaseError), transaction.atomic():
        Agreement.objects.filter(pk=agreement.pk).update(**{field: None})


def test_two_agreements_never_share_an_escrow(world: World, now: datetime) -> None:
    """R-C2 (api): an escrow account belongs to exactly one agreement."""
    agreement, _ = agree(world, now)
    with pytest.raises(IntegrityError), transaction.atomic():
        Agreement.objects.create(
            buyer=world.strangers, provider=world.northwind, escrow=agreement.escrow, created_at=now
        )


def test_nobody_buys_from_themselves(world: World, now: datetime) -> None:
    with pytest.raises(InvalidInput):
        agreements.open_agreement(
            buyer=world.northwind,
            provider=world.northwind,
            body={},
            price_micros=1,
            per_quantity=1,
            meter_unit="accelerator_second",
            units=1,
            now=now,
        )
    assert not Agreement.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("price_micros", -1),
        ("price_micros", float("nan")),
        ("price_micros", "1e3"),
        ("price_micros", 2**63),
        ("per_quantity", 0),
        ("units", 0),
        ("units", True),
        ("body", {"ratio": float("nan")}),
        ("body", {"big": 2**60}),
    ],
)
def test_strange_terms_are_refused_by_field(
    world: World, now: datetime, field: str, value: object
) -> None:
    arguments: dict[str, object] = {
        "body": {},
        "price_micros": 1,
        "per_quantity": 1,
        "units": 1,
        field: value,
    }
    with pytest.raises(InvalidInput) as refusal:
        agreements.open_agreement(
            buyer=world.meridian,
            provider=world.northwind,
            meter_unit="accelerator_second",
            now=now,
            **arguments,  # type: ignore[arg-type]
        )
    assert refusal.value.errors[0].field == field


def test_funding_moves_from_wallet_to_escrow_once_per_key(world: World, now: datetime) -> None:
    """R-C1 (api): an order's money leaves the balance once, however often it is asked for."""
    give(world.meridian, 1_000_000, key="t", now=now)
    agreement, _ = agree(world, now)
    first = escrow.fund(agreement=agreement, amount_micros=400_000, key="order", now=now)
    again = escrow.fund(agreement=agreement, amount_micros=400_000, key="order", now=now)
    assert first.pk == again.pk
    assert wallet.available_micros(world.meridian) == 600_000
    assert escrow_of(agreement).available_micros == 400_000
    with pytest.raises(KeyReused):
        escrow.fund(agreement=agreement, amount_micros=400_001, key="order", now=now)


def test_a_key_of_one_agreement_is_another_in_the_next(world: World, now: datetime) -> None:
    """The same caller's key for two agreements funds both."""
    give(world.meridian, 1_000_000, key="t", now=now)
    for _ in range(2):
        agreement, _ = agree(world, now)
        escrow.fund(agreement=agreement, amount_micros=400_000, key="k" * 255, now=now)
    assert wallet.available_micros(world.meridian) == 200_000


def test_one_micro_unit_short_funds_nothing(world: World, now: datetime) -> None:
    """R-C1 (api): what the balance does not cover to the last unit does not happen."""
    give(world.meridian, 999_999, key="t", now=now)
    agreement, _ = agree(world, now)
    with pytest.raises(InsufficientFunds) as refusal:
        escrow.fund(agreement=agreement, amount_micros=1_000_000, key="order", now=now)
    assert refusal.value.status == 402
    assert wallet.available_micros(world.meridian) == 999_999
    assert escrow_of(agreement).credits_posted == 0


def test_a_window_is_reserved_recorded_and_settled(world: World, now: datetime) -> None:
    """R-C9 (api): one usage record is the buyer's debit and the provider's and fees' credits."""
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    pending = _reserve(agreement, terms, window, 5, now)
    assert pending is not None
    assert pending.amount_micros == 5_000

    usage_record = record(agreement, terms, window, 4)
    assert usage_record.amount_micros == 4_000
    assert usage_record.pending == pending
    assert agreement.counter == 4
    assert settlement.settle_due(now=usage_record.disputable_until - timedelta(seconds=1)) == 0

    assert settlement.settle_due(now=after_disputes(usage_record)) == 1

    usage_record.refresh_from_db()
    assert usage_record.state == UsageState.SETTLED
    post = Transfer.objects.get(record=usage_record)
    assert post.pending == pending
    legs = sorted((leg.account.kind, leg.amount_micros) for leg in post.entries.all())
    assert legs == [
        ("earned", -3_400),
        ("escrow", 4_000),
        ("fee", -200),
        ("fee", -160),
        ("fee", -120),
        ("fee", -120),
    ]
    assert earned_micros(world.northwind) == 3_400
    assert fees_micros() == {
        "verification": 120,
        "network": 120,
        "infrastructure": 160,
        "margin": 200,
    }
    assert escrow_of(agreement).available_micros == 96_000
    assert settlement.settle_due(now=after_disputes(usage_record)) == 0
    assert_books_balance()


def test_a_zero_window_is_an_explicit_line_whose_reservation_returns(
    world: World, now: datetime
) -> None:
    """R-C8 (api): downtime is a line of zero, and its money is free again."""
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    _reserve(agreement, terms, window, 5, now)
    usage_record = record(agreement, terms, window, 0)
    assert (usage_record.counter_start, usage_record.counter_end) == (0, 0)
    settlement.settle_due(now=after_disputes(usage_record))
    assert Transfer.objects.get(record=usage_record).phase == "void"
    assert escrow_of(agreement).available_micros == 100_000
    assert_books_balance()


def test_a_zero_window_needs_no_reservation_and_another_does(world: World, now: datetime) -> None:
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    usage_record = record(agreement, terms, window, 0)
    with pytest.raises(MoreThanReserved):
        record(agreement, terms, window + 1, 1)
    assert agreement.counter == 0
    settlement.settle_due(now=after_disputes(usage_record))
    usage_record.refresh_from_db()
    assert usage_record.state == UsageState.SETTLED
    assert not Transfer.objects.filter(record=usage_record).exists()


def test_the_same_window_twice_is_one_charge(world: World, now: datetime) -> None:
    """R-C9 (api): the same evidence again changes nothing, other evidence is refused."""
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    _reserve(agreement, terms, window, 5, now)
    first = record(agreement, terms, window, 5)
    assert record(agreement, terms, window, 5) == first
    with pytest.raises(usage.WindowAlreadyRecorded):
        record(agreement, terms, window, 5, evidence="cd" * 32)
    assert (UsageRecord.objects.count(), agreement.counter) == (1, 5)


def test_windows_are_recorded_in_order(world: World, now: datetime) -> None:
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    for ahead in range(2):
        _reserve(agreement, terms, window + ahead, 5, now)
    with pytest.raises(WrongState):
        record(agreement, terms, window + 1, 5)
    assert escrow.void_reservation(agreement=agreement, window_index=window, now=now)
    assert not escrow.void_reservation(agreement=agreement, window_index=window, now=now)
    assert record(agreement, terms, window + 1, 5).counter_start == 0
    with pytest.raises(WrongState):
        record(agreement, terms, window, 0)


@pytest.mark.parametrize("seconds", [-1, 6, True, 1.5, "5"])
def test_a_reading_beyond_its_window_is_refused(world: World, now: datetime, seconds: int) -> None:
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    _reserve(agreement, terms, window, 5, now)
    with pytest.raises(InvalidInput) as refusal:
        record(agreement, terms, window, seconds)
    assert refusal.value.errors[0].field == "ready_seconds"
    assert not UsageRecord.objects.exists()


def test_a_reading_of_another_window_is_refused(world: World, now: datetime) -> None:
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    _reserve(agreement, terms, window, 5, now)
    with pytest.raises(InvalidInput):
        usage.record_usage(
            agreement=agreement,
            terms=terms,
            window_index=window,
            starts_at=now + timedelta(seconds=1),
            ends_at=now + timedelta(seconds=6),
            ready_seconds=5,
            evidence="ab",
            meter_party="org",
            now=now,
        )


def test_no_money_no_window(world: World, now: datetime) -> None:
    """R-C11 (api): with one micro-unit too little the window is not reserved at all."""
    agreement, terms = funded(world, now, 9_999)
    window = first_window(terms, now)
    _reserve(agreement, terms, window, 5, now)
    with pytest.raises(EscrowExhausted) as refusal:
        _reserve(agreement, terms, window + 1, 5, now)
    assert refusal.value.metadata == {"needed_micros": "5000"}
    assert escrow.seconds_affordable(agreement=agreement, terms=terms) == 4
    assert _reserved_micros(_reserve(agreement, terms, window + 1, 4, now)) == 4_000
    assert escrow_of(agreement).available_micros == 999


def test_a_part_window_grows_when_money_arrives(world: World, now: datetime) -> None:
    """R-C11 (api): a top-up while the last seconds run pays for the rest of the window."""
    agreement, terms = funded(world, now, 3_000)
    window = first_window(terms, now)
    small = _reserve(agreement, terms, window, 3, now)
    with pytest.raises(EscrowExhausted):
        _reserve(agreement, terms, window, 5, now)
    assert escrow_of(agreement).debits_pending == 3_000
    give(world.meridian, 2_000, key="more", now=now)
    escrow.fund(agreement=agreement, amount_micros=2_000, key="more", now=now)
    whole = _reserve(agreement, terms, window, 5, now)
    assert _reserved_micros(whole) == 5_000
    assert Transfer.objects.get(pending=small).phase == "void"
    assert _reserve(agreement, terms, window, 2, now) == whole
    assert record(agreement, terms, window, 5).amount_micros == 5_000
    assert_books_balance()


def test_a_window_is_reserved_for_wherever_the_counter_may_stand(
    world: World, now: datetime
) -> None:
    """R-C11 (api): five seconds cost one micro-unit more from some places than from others."""
    agreement, terms = funded(world, now, 100_000, price=2_000_000)
    window = first_window(terms, now)
    reserved = [
        _reserved_micros(_reserve(agreement, terms, window + ahead, 5, now)) for ahead in range(2)
    ]
    assert reserved == [2_777, 2_778]
    charged = [record(agreement, terms, window + ahead, 5).amount_micros for ahead in range(2)]
    assert charged == [2_777, 2_778]


def test_windows_are_reserved_in_order(world: World, now: datetime) -> None:
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    _reserve(agreement, terms, window + 1, 5, now)
    with pytest.raises(WrongState):
        _reserve(agreement, terms, window, 5, now)


def test_a_free_lease_reserves_nothing_and_counts_all_the_same(world: World, now: datetime) -> None:
    agreement, terms = agree(world, now, price=0)
    window = first_window(terms, now)
    assert _reserve(agreement, terms, window, 5, now) is None
    usage_record = record(agreement, terms, window, 5)
    assert (usage_record.amount_micros, agreement.counter) == (0, 5)
    assert agreements.close_if_done(agreement=agreement, now=now) is False
    settlement.settle_due(now=after_disputes(usage_record))
    assert agreements.close_due(now=after_disputes(usage_record)) == 1


def _disputed(world: World, now: datetime) -> tuple[Agreement, UsageRecord]:
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    for ahead in range(2):
        _reserve(agreement, terms, window + ahead, 5, now)
    first, second = (record(agreement, terms, window + ahead, 5) for ahead in range(2))
    assert disputes.hold_record(record=first, now=first.disputable_until - timedelta(seconds=1))
    assert second.state == UsageState.PENDING
    return agreement, first


def test_a_dispute_holds_its_line_and_no_other(world: World, now: datetime) -> None:
    """R-C8 (api): every other line settles while one waits for its ruling."""
    agreement, held = _disputed(world, now)
    later = now + timedelta(hours=1)
    assert settlement.settle_due(now=later) == 1
    assert earned_micros(world.northwind) == 4_250
    assert earnings.by_state(world.northwind) == earnings.Earnings(
        pending=0, disputed=4_250, earned=4_250
    )
    assert escrow_of(agreement).debits_pending == 5_000
    assert not agreements.close_if_done(agreement=agreement, now=later)
    held.refresh_from_db()
    assert held.state == UsageState.DISPUTED


@pytest.mark.parametrize(
    ("stands_bps", "ruled", "provider"),
    [(0, 0, 0), (1, 0, 0), (5_000, 2_500, 2_125), (7_037, 3_518, 2_993), (10_000, 5_000, 4_250)],
)
def test_a_ruling_posts_what_stands_and_returns_the_rest(
    world: World, now: datetime, stands_bps: int, ruled: int, provider: int
) -> None:
    """R-C8 (api): the ruled part is floored, the parts add up, the rest is the buyer's again."""
    agreement, held = _disputed(world, now)
    disputes.resolve_record(record=held, stands_bps=stands_bps, now=now)
    assert (held.state, held.stands_bps) == (UsageState.SETTLED, stands_bps)
    post = Transfer.objects.get(record=held)
    assert (post.phase, post.amount_micros) == ("post" if ruled else "void", ruled)
    assert earned_micros(world.northwind) == provider
    assert escrow_of(agreement).debits_posted == ruled
    with pytest.raises(WrongState):
        disputes.resolve_record(record=held, stands_bps=10_000, now=now)
    assert_books_balance()


@pytest.mark.parametrize("stands_bps", [-1, 10_001, True, 0.5])
def test_a_ruling_outside_nothing_and_all_is_refused(
    world: World, now: datetime, stands_bps: int
) -> None:
    _, held = _disputed(world, now)
    with pytest.raises(InvalidInput):
        disputes.resolve_record(record=held, stands_bps=stands_bps, now=now)
    held.refresh_from_db()
    assert held.state == UsageState.DISPUTED


def test_a_withdrawn_dispute_lets_the_line_stand(world: World, now: datetime) -> None:
    _, held = _disputed(world, now)
    disputes.release_record(record=held, now=held.disputable_until - timedelta(seconds=1))
    assert held.state == UsageState.PENDING
    assert settlement.settle_due(now=held.disputable_until + timedelta(minutes=1)) == 2
    assert earned_micros(world.northwind) == 8_500


def test_a_dispute_withdrawn_late_settles_at_once(world: World, now: datetime) -> None:
    _, held = _disputed(world, now)
    disputes.release_record(record=held, now=after_disputes(held))
    assert held.state == UsageState.SETTLED
    assert earned_micros(world.northwind) == 4_250
    with pytest.raises(WrongState):
        disputes.release_record(record=held, now=after_disputes(held))


def test_a_dispute_opens_only_inside_its_window(world: World, now: datetime) -> None:
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    _reserve(agreement, terms, window, 5, now)
    usage_record = record(agreement, terms, window, 5)
    assert not disputes.hold_record(record=usage_record, now=usage_record.disputable_until)
    settlement.settle_due(now=after_disputes(usage_record))
    assert not disputes.hold_record(record=usage_record, now=now)
    usage_record.refresh_from_db()
    assert usage_record.state == UsageState.SETTLED


def test_the_end_returns_what_is_unused_and_closes_the_escrow(world: World, now: datetime) -> None:
    """R-C11 (api): what no window used is the buyer's again, and the escrow is closed empty."""
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    for ahead in range(2):
        _reserve(agreement, terms, window + ahead, 5, now)
    usage_record = record(agreement, terms, window, 3)
    escrow.void_reservation(agreement=agreement, window_index=window + 1, now=now)
    assert not agreements.close_if_done(agreement=agreement, now=now)
    assert wallet.available_micros(world.meridian) == 95_000
    with pytest.raises(WrongState):
        _reserve(agreement, terms, window + 2, 5, now)
    with pytest.raises(WrongState):
        escrow.fund(agreement=agreement, amount_micros=1, key="late", now=now)

    later = after_disputes(usage_record)
    settlement.settle_due(now=later)
    assert agreements.close_due(now=later) == 1
    agreement.refresh_from_db()
    assert (agreement.state, agreement.closed_at) == (AgreementState.CLOSED, later)
    assert wallet.available_micros(world.meridian) == 97_000
    assert escrow_of(agreement).closed_at == later
    assert agreements.close_if_done(agreement=agreement, now=later)
    assert agreements.close_due(now=later) == 0
    assert_books_balance()


def test_an_agreement_with_a_live_reservation_does_not_close(world: World, now: datetime) -> None:
    agreement, terms = funded(world, now, 100_000)
    _reserve(agreement, terms, first_window(terms, now), 5, now)
    assert not agreements.close_if_done(agreement=agreement, now=now)
    assert agreements.close_due(now=now) == 0
    assert Reservation.objects.get().voided_at is None


def test_what_was_metered_cannot_be_edited_or_removed(world: World, now: datetime) -> None:
    """R-C13 (api): a usage record's facts are as unchangeable as the entries they lead to."""
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    _reserve(agreement, terms, window, 5, now)
    usage_record = record(agreement, terms, window, 5)
    rows = UsageRecord.objects.filter(pk=usage_record.pk)
    for change in (
        {"amount_micros": 1},
        {"counter_end": 4},
        {"evidence": "00"},
        {"pending": None},
        {"disputable_until": now + timedelta(days=1)},
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.update(**change)
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.delete()
    settlement.settle_due(now=after_disputes(usage_record))
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.update(state=UsageState.PENDING, settled_at=None)


def test_a_line_at_fault_is_set_aside_and_the_rest_settle(world: World, now: datetime) -> None:
    """R-C8 (api): one line that cannot be booked does not stop the others."""
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    records = []
    for ahead in range(5):
        _reserve(agreement, terms, window + ahead, 5, now)
        records.append(record(agreement, terms, window + ahead, 5))
    broken = records[2]
    ledger.void(key="stray", kind="void", pending_id=int(broken.pending_id or 0), now=now)
    later = after_disputes(records[-1])
    assert settlement.settle_due(now=later) == 4
    broken.refresh_from_db()
    assert (broken.state, broken.quarantined_at) == (UsageState.PENDING, later)
    assert "resolved before" in broken.quarantine_reason
    assert settlement.settle_due(now=later) == 0
    assert earned_micros(world.northwind) == 4 * 4_250
    assert_books_balance()


def test_ledger_lines_tell_the_whole_story_of_an_agreement(world: World, now: datetime) -> None:
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    _reserve(agreement, terms, window, 5, now)
    usage_record = record(agreement, terms, window, 4)
    settlement.settle_due(now=after_disputes(usage_record))
    lines = ledger_lines(agreement)
    assert [(line.kind, line.state, line.amount_micros) for line in lines] == [
        ("order", "single", 100_000),
        ("reserve", "post", 5_000),
        ("settle", "post", 4_000),
    ]
    assert lines[-1].record == usage_record.public_id
    assert sum(amount for _, amount in lines[-1].legs) == 0


def test_what_an_organisation_sees(world: World, now: datetime) -> None:
    """Another tenant's accounts, agreements and records are not there."""
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    _reserve(agreement, terms, window, 5, now)
    record(agreement, terms, window, 4)
    alice, carol, dave = (world.actor(person) for person in (world.alice, world.carol, world.dave))
    assert UsageRecord.objects.visible_to(alice).count() == 1
    assert UsageRecord.objects.visible_to(carol).count() == 1
    assert UsageRecord.objects.visible_to(dave).count() == 0
    assert Agreement.objects.visible_to(dave).count() == 0
    kinds = {account.kind for account in Account.objects.visible_to(alice)}
    assert kinds == {"wallet", "escrow"}
    assert {account.kind for account in Account.objects.visible_to(carol)} == {"earned"}
    assert Account.objects.visible_to(dave).count() == 0


@pytest.mark.parametrize(
    ("units", "seconds", "amount"),
    [(1, 420, 280_000), (8, 420, 2_240_000), (8, 0, 0), (1, 3_600, 2_400_000), (1, 1, 666)],
)
def test_golden_amounts_of_one_and_eight_units(units: int, seconds: int, amount: int) -> None:
    """R-C8 (api): seven minutes are not an hour, eight units are eight, and none cost nothing."""
    rate = Rate(price_micros=2_400_000, per_quantity=3_600, units=units)
    assert rate.line_amount(0, seconds) == amount


def test_the_alarm_tells_how_long_the_oldest_line_waits(world: World, now: datetime) -> None:
    """R-C8 (api): settlement that stands still is noticed, not discovered months later."""
    assert settlement.longest_wait_seconds(now=now) == 0
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    _reserve(agreement, terms, window, 5, now)
    due = record(agreement, terms, window, 5).disputable_until
    assert settlement.longest_wait_seconds(now=due + timedelta(minutes=11)) == 660


def test_a_large_chunk_settles_in_one_go_with_few_queries(
    world: World, now: datetime, django_assert_max_num_queries: Any
) -> None:
    """R-C8 (api): the cost of a settlement run does not grow query by query with its lines."""
    agreement, terms = funded(world, now, 1_000_000)
    window = first_window(terms, now)
    records = []
    for ahead in range(60):
        _reserve(agreement, terms, window + ahead, 5, now)
        records.append(record(agreement, terms, window + ahead, 5))
    with django_assert_max_num_queries(16):
        assert settlement.settle_due(now=after_disputes(records[-1])) == 60
    assert earned_micros(world.northwind) == 60 * 4_250
    assert_books_balance()


def test_a_run_keeps_its_two_cut_offs(world: World, now: datetime) -> None:
    """R-C8 (api): which lines a run took can be found again from the run itself."""
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    _reserve(agreement, terms, window, 5, now)
    usage_record = record(agreement, terms, window, 5)
    later = after_disputes(usage_record)
    settlement.settle_due(now=later)
    usage_record.refresh_from_db()
    run = usage_record.settlement
    assert run is not None
    assert (run.event_cutoff, run.ingestion_cutoff, run.settled) == (later, later, 1)
