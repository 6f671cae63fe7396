"""Many at once: the books come out as if they had taken turns."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

from django.db import connection, transaction

from billing.domain.states import UsageState
from billing.models import Agreement, Transfer, UsageRecord
from billing.services import agreements, disputes, escrow, settlement, wallet
from billing.services.ledger import InsufficientFunds
from tests.billing.money import (
    after_disputes,
    agree,
    assert_books_balance,
    earned_micros,
    escrow_of,
    first_window,
    funded,
    give,
    record,
)
from tests.world import World

ROOT = Path(__file__).resolve().parents[2]


def _at_once(works: list[Callable[[], object]], *, workers: int = 10) -> list[object]:
    """Run all in threads that start together; return results or the refusals they raised."""
    gate = threading.Barrier(min(workers, len(works)))

    def run(work: Callable[[], object]) -> object:
        gate.wait(timeout=30)
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - refusals are results here
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(run, works))


def test_fifty_orders_with_money_for_one(committed_db: None, world: World, now: datetime) -> None:
    """R-C1 (api): fifty orders race for one order's money; one exists, the others never did."""
    give(world.meridian, 1_999_999, key="t", now=now)

    def order() -> Agreement:
        with transaction.atomic():
            agreement, _ = agree(world, now)
            escrow.fund(agreement=agreement, amount_micros=1_000_000, key="order", now=now)
            return agreement

    results = _at_once([order] * 50)
    placed = [result for result in results if isinstance(result, Agreement)]
    assert len(placed) == 1
    assert sum(isinstance(result, InsufficientFunds) for result in results) == 49
    assert list(Agreement.objects.all()) == placed
    assert wallet.available_micros(world.meridian) == 999_999
    assert_books_balance()


def test_the_same_key_fifty_times_funds_once(
    committed_db: None, world: World, now: datetime
) -> None:
    """R-C1 (api): the same order sent fifty times at once moves the money once."""
    give(world.meridian, 50_000_000, key="t", now=now)
    agreement, _ = agree(world, now)

    def fund() -> int:
        copy = Agreement.objects.get(pk=agreement.pk)
        return escrow.fund(agreement=copy, amount_micros=1_000_000, key="k", now=now).pk

    results = _at_once([fund] * 50)
    assert len(set(results)) == 1
    assert isinstance(results[0], int)
    assert wallet.available_micros(world.meridian) == 49_000_000
    assert_books_balance()


def test_settling_and_disputing_at_once_has_one_winner(
    committed_db: None, world: World, now: datetime
) -> None:
    """R-C8 (api): for each line either the dispute or the settlement happens, never both."""
    agreement, terms = funded(world, now, 1_000_000)
    window = first_window(terms, now)
    records = []
    for ahead in range(20):
        escrow.reserve_window(
            agreement=agreement,
            terms=terms,
            window_index=window + ahead,
            max_ready_seconds=5,
            now=now,
        )
        records.append(record(agreement, terms, window + ahead, 5))
    just_before = records[0].disputable_until - timedelta(seconds=1)
    just_after = records[-1].disputable_until + timedelta(seconds=1)
    works: list[Callable[[], object]] = [
        lambda: settlement.settle_due(now=just_after),
        lambda: settlement.settle_due(now=just_after),
        *(
            (lambda held=held: disputes.hold_record(record=held, now=just_before))
            for held in records
        ),
    ]
    results = _at_once(works, workers=11)
    assert not [result for result in results if isinstance(result, Exception)]
    disputed = UsageRecord.objects.filter(state=UsageState.DISPUTED).count()
    assert sum(result is True for result in results[2:]) == disputed
    settlement.settle_due(now=just_after)
    settled = UsageRecord.objects.filter(state=UsageState.SETTLED).count()
    assert settled + disputed == 20
    assert Transfer.objects.filter(kind="settle").count() == settled
    assert earned_micros(world.northwind) == settled * 4_250
    assert escrow_of(agreement).debits_pending == disputed * 5_000
    assert_books_balance()


def test_orders_reserves_settlements_and_returns_never_deadlock(
    committed_db: None, world: World, now: datetime
) -> None:
    """R-C13 (api): every mix of verbs takes its locks in one order, so none is thrown out."""
    give(world.meridian, 100_000_000, key="t", now=now)
    later = now + timedelta(hours=1)

    def life() -> bool:
        with transaction.atomic():
            agreement, terms = agree(world, now)
            escrow.fund(agreement=agreement, amount_micros=50_000, key="order", now=now)
            window = first_window(terms, now)
            for ahead in range(2):
                escrow.reserve_window(
                    agreement=agreement,
                    terms=terms,
                    window_index=window + ahead,
                    max_ready_seconds=5,
                    now=now,
                )
        held = record(agreement, terms, window, 5)
        escrow.fund(agreement=agreement, amount_micros=1_000, key="more", now=now)
        if agreement.pk.int % 2:
            disputes.hold_record(record=held, now=now)
        settlement.settle_due(now=later)
        with transaction.atomic():
            escrow.void_reservation(agreement=agreement, window_index=window + 1, now=later)
            if UsageRecord.objects.get(pk=held.pk).state == UsageState.DISPUTED:
                disputes.resolve_record(record=held, stands_bps=5_000, now=later)
            return agreements.close_if_done(agreement=agreement, now=later)

    results = _at_once([life] * 60)
    assert not [result for result in results if isinstance(result, Exception)]
    settlement.settle_due(now=later)
    agreements.close_due(now=later)
    assert not Agreement.objects.exclude(state="closed").exists()
    spent = 100_000_000 - wallet.available_micros(world.meridian)
    assert spent == sum(record.ruled_micros for record in UsageRecord.objects.all())
    assert_books_balance()


_KILLED = """
import os, signal, sys, django
django.setup()
from datetime import datetime
from django.db import transaction
from billing.services import settlement
from billing.models import Transfer

with transaction.atomic():
    settlement.settle_due(now=datetime.fromisoformat(sys.argv[1]))
    assert Transfer.objects.filter(phase="post").count() == 3
    print("posted", flush=True)
    signal.pause()
"""


def test_a_worker_killed_between_pending_and_post_leaves_the_line_to_the_next(
    committed_db: None, world: World, now: datetime
) -> None:
    """R-C8 (api): kill -9 in the middle of settlement books nothing; the next run books it once."""
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    records = []
    for ahead in range(3):
        escrow.reserve_window(
            agreement=agreement,
            terms=terms,
            window_index=window + ahead,
            max_ready_seconds=5,
            now=now,
        )
        records.append(record(agreement, terms, window + ahead, 5))
    later = after_disputes(records[-1])
    worker = subprocess.Popen(
        [sys.executable, "-c", _KILLED, later.isoformat()],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "fabric.settings.test"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "posted\n"
    assert settlement.settle_due(now=later) == 0, "what another run holds is left to it"
    worker.send_signal(signal.SIGKILL)
    worker.wait(timeout=10)
    worker.stdout.close()
    assert earned_micros(world.northwind) == 0
    assert escrow_of(agreement).debits_pending == 15_000

    deadline = time.monotonic() + 10
    while settlement.settle_due(now=later) == 0:
        assert time.monotonic() < deadline
    assert earned_micros(world.northwind) == 3 * 4_250
    assert Transfer.objects.filter(phase="post").count() == 3
    assert_books_balance()
