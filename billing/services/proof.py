"""The nightly proof that the books are right, from the rows and without trusting any counter."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from fabric.accounts.domain.actors import EXCHANGE
from fabric.journal.services.events import record_event

# Each statement returns what contradicts it; nothing returned is the proof.
_STATEMENTS = {
    "entries of every transfer sum to zero": """
        SELECT transfer_id::text, sum(amount_micros) FROM billing_entry
          GROUP BY transfer_id HAVING sum(amount_micros) <> 0""",
    "every booked transfer has entries worth its amount": """
        SELECT t.id::text, t.amount_micros FROM billing_transfer t
          LEFT JOIN billing_entry e ON e.transfer_id = t.id AND e.amount_micros > 0
          GROUP BY t.id HAVING coalesce(sum(e.amount_micros), 0)
            <> CASE WHEN t.phase IN ('single', 'post') THEN t.amount_micros ELSE 0 END""",
    "every entry belongs to a transfer and an account": """
        SELECT e.id::text, e.amount_micros FROM billing_entry e
          WHERE NOT EXISTS (SELECT 1 FROM billing_transfer t WHERE t.id = e.transfer_id)
            OR NOT EXISTS (SELECT 1 FROM billing_account a WHERE a.id = e.account_id)""",
    "posted counters are the sums of entries": """
        SELECT a.code, a.credits_posted - a.debits_posted FROM billing_account a
          LEFT JOIN billing_entry e ON e.account_id = a.id
          GROUP BY a.id HAVING
            a.debits_posted <> coalesce(sum(e.amount_micros) FILTER (WHERE e.amount_micros > 0), 0)
            OR a.credits_posted <> coalesce(-sum(e.amount_micros) FILTER (WHERE e.amount_micros < 0), 0)
        """,
    "pending counters are the sums of open reservations": """
        SELECT a.code, a.debits_pending - a.credits_pending FROM billing_account a
          LEFT JOIN (
            SELECT p.debit_account_id, p.credit_account_id, p.amount_micros
              FROM billing_transfer p WHERE p.phase = 'pending'
                AND NOT EXISTS (SELECT 1 FROM billing_transfer r WHERE r.pending_id = p.id)
          ) open ON a.id IN (open.debit_account_id, open.credit_account_id)
          GROUP BY a.id HAVING
            a.debits_pending <> coalesce(
              sum(open.amount_micros) FILTER (WHERE open.debit_account_id = a.id), 0)
            OR a.credits_pending <> coalesce(
              sum(open.amount_micros) FILTER (WHERE open.credit_account_id = a.id), 0)""",
    "no post exceeds its reservation": """
        SELECT r.id::text, r.amount_micros FROM billing_transfer r
          JOIN billing_transfer p ON p.id = r.pending_id WHERE r.amount_micros > p.amount_micros""",
    "every line follows from its terms and its place on the counter": """
        SELECT u.id::text, u.amount_micros FROM billing_usagerecord u
          JOIN billing_terms t ON t.id = u.terms_id
          WHERE u.amount_micros
            <> floor(t.price_micros::numeric * t.units * u.counter_end / t.per_quantity)
             - floor(t.price_micros::numeric * t.units * u.counter_start / t.per_quantity)""",
    "every settled line was booked at what stands": """
        SELECT u.id::text, u.amount_micros FROM billing_usagerecord u
          LEFT JOIN billing_transfer t ON t.record_id = u.id
          WHERE u.state = 'settled' AND u.pending_id IS NOT NULL
          GROUP BY u.id HAVING count(t.id) <> 1 OR sum(t.amount_micros)
            <> floor(u.amount_micros::numeric * u.stands_bps / 10000)""",
    "what a line takes from the escrow is what provider and fees receive": """
        SELECT t.record_id::text, sum(e.amount_micros) FROM billing_transfer t
          JOIN billing_usagerecord u ON u.id = t.record_id
          JOIN billing_agreement g ON g.id = u.agreement_id
          JOIN billing_entry e ON e.transfer_id = t.id
          JOIN billing_account a ON a.id = e.account_id
          GROUP BY t.record_id, g.escrow_id HAVING
            sum(e.amount_micros) FILTER (WHERE a.id = g.escrow_id)
            <> -sum(e.amount_micros) FILTER (WHERE a.kind IN ('earned', 'fee'))
            OR count(*) FILTER (WHERE a.id <> g.escrow_id AND a.kind NOT IN ('earned', 'fee')) > 0""",
}
_EXAMPLES = 20


@dataclass(frozen=True)
class Contradiction:
    """A statement about the books that does not hold, with the first rows that show it."""

    statement: str
    rows: tuple[str, ...]


@transaction.atomic
def prove_books(*, now: datetime) -> list[Contradiction]:
    """Check the books from their rows in one snapshot; record the outcome, as an alert if bad."""
    with connection.cursor() as cursor:
        if not connection.savepoint_ids:  # the outermost block may still choose its snapshot
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        found = find_contradictions(cursor)
    record_event(
        kind="alert.books_disproved" if found else "books.proved",
        subject="ledger",
        actor=EXCHANGE.id,
        data={item.statement: list(item.rows) for item in found},
        now=now,
    )
    return found


def find_contradictions(cursor: Any) -> list[Contradiction]:
    """Return every statement that the rows contradict, through any cursor on the database."""
    found = []
    for statement, query in _STATEMENTS.items():
        cursor.execute(f"{query} LIMIT {_EXAMPLES}")
        rows = tuple(f"{name}: {value}" for name, value in cursor.fetchall())
        if rows:
            found.append(Contradiction(statement, rows))
    return found
