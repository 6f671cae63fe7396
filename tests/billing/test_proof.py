"""The nightly proof: silent on good books, loud about each way of being wrong."""

from datetime import datetime

import psycopg
from django.db import connection

from billing.models import UsageRecord
from billing.services import disputes, escrow, proof, settlement
from billing.tasks import prove_books_task
from fabric.journal.models import Event
from tests import databases
from tests.billing.money import after_disputes, first_window, funded, record
from tests.world import World


def _history(world: World, now: datetime) -> UsageRecord:
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
        records.append(record(agreement, terms, window + ahead, 4))
    disputes.hold_record(record=records[1], now=now)
    disputes.resolve_record(record=records[1], stands_bps=3_333, now=now)
    settlement.settle_due(now=after_disputes(records[0]))
    return records[0]


def test_good_books_prove_themselves(world: World, now: datetime) -> None:
    """R-C13 (api): every statement about the books holds after a lease's whole history."""
    _history(world, now)
    assert proof.prove_books(now=now) == []
    assert Event.objects.filter(kind="books.proved").count() == 1
    assert prove_books_task() == 0


TAMPERINGS = {
    "posted counters are the sums of entries": """
        UPDATE billing_account SET credits_posted = credits_posted + 1 WHERE kind = 'wallet'""",
    "pending counters are the sums of open reservations": """
        UPDATE billing_account SET debits_pending = debits_pending + 1 WHERE kind = 'escrow'""",
    "entries of every transfer sum to zero": """
        UPDATE billing_entry SET amount_micros = amount_micros - 1
          WHERE id = (SELECT max(id) FROM billing_entry)""",
    "every booked transfer has entries worth its amount": """
        DELETE FROM billing_entry WHERE transfer_id = (SELECT min(id) FROM billing_transfer)""",
    "every entry belongs to a transfer and an account": """
        UPDATE billing_entry SET transfer_id = 0
          WHERE transfer_id = (SELECT min(id) FROM billing_transfer)""",
    "no post exceeds its reservation": """
        UPDATE billing_transfer SET amount_micros = 1 WHERE phase = 'pending'""",
    "every line follows from its terms and its place on the counter": """
        UPDATE billing_usagerecord SET amount_micros = amount_micros - 1""",
    "every settled line was booked at what stands": """
        UPDATE billing_usagerecord SET stands_bps = 9999 WHERE state = 'settled'""",
    "what a line takes from the escrow is what provider and fees receive": """
        UPDATE billing_entry SET account_id = (SELECT id FROM billing_account WHERE kind = 'cash')
          WHERE account_id IN (SELECT id FROM billing_account WHERE kind = 'earned')""",
}


def test_tampered_books_are_found_out(
    committed_db: None, database_server: databases.Server, world: World, now: datetime
) -> None:
    """R-C13 (api): even the tables' owner, with the triggers off, cannot falsify unnoticed."""
    _history(world, now)
    assert set(TAMPERINGS) == set(proof._STATEMENTS)
    name = connection.settings_dict["NAME"]
    with psycopg.connect(database_server.url(name, owner=True)) as owner:
        for table in ("account", "transfer", "entry", "usagerecord"):
            owner.execute(f"ALTER TABLE billing_{table} DISABLE TRIGGER USER")
        for statement, tampering in TAMPERINGS.items():
            with owner.transaction(force_rollback=True), owner.cursor() as cursor:
                cursor.execute(tampering)
                assert cursor.rowcount > 0, statement
                found = proof.find_contradictions(cursor)
            assert statement in [item.statement for item in found]
        owner.execute(TAMPERINGS["posted counters are the sums of entries"])
    assert len(proof.prove_books(now=now)) == 1
    assert Event.objects.filter(kind="alert.books_disproved").count() == 1
