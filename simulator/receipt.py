"""The last act: what the API says a lease cost, held against the rows of the ledger.

Reads the database directly and computes every line again from its terms, so that the receipt
rests on nothing that printed it.
"""

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from fabric.lib.ids import from_public
from fabric.lib.money import format_amount
from simulator.program import Program

WHOLE_BPS = 10_000
SHARES = ("verification", "network", "infrastructure", "margin")
_LINES = """
    SELECT u.id, u.window_index, u.counter_start, u.counter_end, u.amount_micros, u.state,
           u.stands_bps, encode(t.digest, 'hex') AS terms, t.price_micros, t.per_quantity, t.units,
           p.body AS parameters, x.amount_micros AS booked, x.id AS transfer
      FROM billing_usagerecord u
      JOIN billing_terms t ON t.id = u.terms_id
      JOIN journal_protocolparameters p ON p.digest = t.parameters_digest
      LEFT JOIN billing_transfer x ON x.record_id = u.id
     WHERE u.agreement_id = %s ORDER BY u.counter_start, u.window_index"""
_LEGS = """
    SELECT e.transfer_id, a.kind, a.code, e.amount_micros
      FROM billing_entry e JOIN billing_account a ON a.id = e.account_id
     WHERE e.transfer_id = ANY(%s)"""
_ESCROW = """
    SELECT a.code, a.debits_posted, a.credits_posted, a.debits_pending
      FROM billing_agreement g JOIN billing_account a ON a.id = g.escrow_id WHERE g.id = %s"""
_MOVES = """
    SELECT x.kind, sum(e.amount_micros)::bigint AS micros
      FROM billing_entry e JOIN billing_transfer x ON x.id = e.transfer_id
      JOIN billing_agreement g ON g.escrow_id = e.account_id
     WHERE g.id = %s GROUP BY x.kind"""


@dataclass
class Receipt:
    """The sums of one lease and every disagreement that was found."""

    text: str
    disagreements: list[str]


def check_receipt(buyer: Program, lease_id: str, database_url: str) -> Receipt:
    """Compare the API's account of a lease with the ledger's rows and with arithmetic."""
    lease = buyer.get(f"leases/{lease_id}/")
    records = {row["id"]: row for row in buyer.list("usage-records/", agreement=lease["agreement"])}
    agreement = from_public("agr", lease["agreement"])
    with psycopg.connect(database_url, row_factory=dict_row) as connection:
        lines = connection.execute(_LINES, [agreement]).fetchall()
        transfers = [line["transfer"] for line in lines if line["transfer"]]
        legs = connection.execute(_LEGS, [transfers]).fetchall()
        escrow = connection.execute(_ESCROW, [agreement]).fetchone() or {}
        moves = {
            row["kind"]: row["micros"] for row in connection.execute(_MOVES, [agreement]).fetchall()
        }
    checker = Checker()
    rows = [checker.check_line(line, legs, records) for line in lines]
    settled = sum(line["booked"] or 0 for line in lines)
    funded = -sum(micros for micros in moves.values() if micros < 0)
    left = escrow["credits_posted"] - escrow["debits_posted"]
    returned = funded - settled - left
    checker.same("lines of the API and of the ledger", len(records), len(lines))
    checker.same("settled, by the API", int(lease["money"]["settled_micros"]), settled)
    checker.same("funded, by the API", int(lease["money"]["funded_micros"]), funded)
    checker.same("returned, by the API", int(lease["money"]["returned_micros"]), returned)
    checker.same("left in the escrow", left, 0)
    checker.same("still reserved", escrow["debits_pending"], 0)
    totals = _totals(legs)
    checker.same("what left for settlement and what arrived", sum(totals.values()), settled)
    sums = {
        "moved from the balance to escrow": funded,
        "settled": settled,
        **{f"  to {name}": micros for name, micros in sorted(totals.items())},
        "returned to the balance": returned,
    }
    return Receipt(_write(lease, rows, sums), checker.disagreements)


class Checker:
    """Collects what does not agree."""

    def __init__(self) -> None:
        """Begin with nothing to complain of."""
        self.disagreements: list[str] = []

    def same(self, what: str, left: object, right: object) -> None:
        """Note when two values that must be equal are not."""
        if left != right:
            self.disagreements.append(f"{what}: {left} is not {right}")

    def check_line(
        self,
        line: dict[str, Any],
        legs: list[dict[str, Any]],
        records: dict[str, dict[str, Any]],
    ) -> str:
        """Compute a line again from its terms and compare it everywhere it is written."""
        name = f"window {line['window_index']}"
        rate = line["price_micros"] * line["units"]
        amount = (
            rate * line["counter_end"] // line["per_quantity"]
            - rate * line["counter_start"] // line["per_quantity"]
        )
        stands = amount * line["stands_bps"] // WHOLE_BPS
        self.same(f"{name}, its line", line["amount_micros"], amount)
        self.same(f"{name}, its state", line["state"], "settled")
        self.same(f"{name}, what was booked", line["booked"] or 0, stands)
        shown = next(
            (row for row in records.values() if row["window_index"] == line["window_index"]), {}
        )
        self.same(f"{name}, its line by the API", shown.get("amount_micros"), str(amount))
        self.same(f"{name}, what stands by the API", shown.get("ruled_micros"), str(stands))
        own = [leg for leg in legs if leg["transfer_id"] == line["transfer"]]
        self.same(f"{name}, sum of its legs", sum(leg["amount_micros"] for leg in own), 0)
        shares = {
            share: stands * line["parameters"][f"{share}_bps"] // WHOLE_BPS for share in SHARES
        }
        earned = -sum(leg["amount_micros"] for leg in own if leg["kind"] == "earned")
        self.same(f"{name}, the provider's share", earned, stands - sum(shares.values()))
        ready = line["counter_end"] - line["counter_start"]
        part = f"{line['stands_bps'] / 100:g} %"
        return (
            f"    {line['window_index']:>12} {ready:>4} s {format_amount(amount, decimals=6):>12}"
            f" {part:>6} {format_amount(stands, decimals=6):>12}"
        )


def _totals(legs: list[dict[str, Any]]) -> dict[str, int]:
    """Return what each kind of account received, fee accounts by their name."""
    totals: dict[str, int] = {}
    for leg in legs:
        if leg["kind"] in {"earned", "fee"}:
            name = "provider" if leg["kind"] == "earned" else leg["code"].split(":")[1]
            totals[name] = totals.get(name, 0) - leg["amount_micros"]
    return totals


def _write(lease: dict[str, Any], rows: list[str], sums: dict[str, int]) -> str:
    return "\n".join(
        [
            f"  RECEIPT  {lease['id']}",
            f"  agreement {lease['agreement']}",
            f"  terms     {lease['terms_digest']}",
            f"  promise   {lease['revision']['digest']}",
            "",
            f"    {'window':>12} {'ready':>6} {'line':>12} {'stands':>6} {'settled':>12}",
            *rows,
            "",
            *(
                f"  {label:<36} {format_amount(sum_, decimals=6):>14}"
                for label, sum_ in sums.items()
            ),
        ]
    )
