"""Any sequence of what can be done to the ledger keeps every promise it makes."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from billing.domain.accounts import AccountKind
from billing.domain.lines import split_amount
from billing.models import Account, Transfer
from billing.services import ledger, proof
from billing.services.ledger import Resolution

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
SHARES = {"verification": 300, "network": 300, "infrastructure": 400, "margin": 500}
AMOUNTS = st.integers(1, 1_000_000)
KEYS = st.integers(0, 12)


class LedgerMachine(RuleBasedStateMachine):
    """Wallets, escrows and a provider against a model of plain integers."""

    pendings = Bundle("pendings")

    @initialize()
    def begin(self) -> None:
        """Start from empty accounts; everything is rolled back when the example ends."""
        self.block = transaction.atomic()
        self.block.__enter__()
        self.ids = {
            name: ledger.open_account(code=f"{kind}:{name}", kind=kind, owner=name).pk
            for name, kind in (
                ("cash", AccountKind.CASH),
                ("wallet", AccountKind.WALLET),
                ("escrow", AccountKind.ESCROW),
                ("provider", AccountKind.EARNED),
            )
        }
        self.ids["unsettled"] = Account.objects.get(code="unsettled:1").pk
        for share in SHARES:
            self.ids[share] = Account.objects.get(code=f"fee:{share}:1").pk
        self.free = {"wallet": 0, "escrow": 0}
        self.held: dict[int, int] = {}
        self.received = 0
        self.moved: dict[int, tuple[str, str, int]] = {}
        self.count = 0

    def teardown(self) -> None:
        """Undo the example."""
        if hasattr(self, "block"):
            transaction.set_rollback(True)
            self.block.__exit__(None, None, None)

    @rule(amount=AMOUNTS, key=KEYS, route=st.sampled_from(["in", "order", "return"]))
    def move(self, amount: int, key: int, route: str) -> None:
        """Move money under a key that may have been used before, for this or another request."""
        debit, credit = {
            "in": ("cash", "wallet"),
            "order": ("wallet", "escrow"),
            "return": ("escrow", "wallet"),
        }[route]
        request = (debit, credit, amount)
        known = self.moved.get(key)
        enough = debit == "cash" or self.free[debit] >= amount
        with self.expecting(
            ledger.KeyReused if known and known != request else None,
            ledger.InsufficientFunds if not known and not enough else None,
        ):
            ledger.move(
                key=f"move:{key}",
                kind=route,
                debit=self.ids[debit],
                credit=self.ids[credit],
                amount_micros=amount,
                now=NOW,
            )
        if known is None and enough:
            self.moved[key] = request
            self.free[credit] += amount
            if debit != "cash":
                self.free[debit] -= amount

    @rule(target=pendings, part=st.integers(0, 12))
    def reserve(self, part: int) -> int:
        """Reserve a part of the free escrow, all of it, or one micro-unit more than there is."""
        free = self.free["escrow"]
        amount = free + 1 if part == 12 else max(1, free * part // 11)
        self.count += 1
        made: list[int] = []
        with self.expecting(None if amount <= free else ledger.InsufficientFunds):
            pending = ledger.reserve(
                key=f"reserve:{self.count}",
                kind="reserve",
                debit=self.ids["escrow"],
                credit=self.ids["unsettled"],
                amount_micros=amount,
                now=NOW,
            )
            made.append(pending.pk)
            self.free["escrow"] -= amount
            self.held[pending.pk] = amount
        return made[0] if made else 0

    @rule(pending=consumes(pendings), stands=st.integers(0, 10_001))
    def resolve(self, pending: int, stands: int) -> None:
        """Post part, all, nothing, or too much of a pending; then again, and under another key."""
        if pending == 0:
            return
        held = self.held[pending]
        amount = held + 1 if stands > 10_000 else held * stands // 10_000
        parts = split_amount(amount, fee_shares_bps=SHARES)
        request = Resolution(
            key=f"settle:{pending}",
            kind="settle",
            pending_id=pending,
            amount_micros=amount,
            legs=[(self.ids[name], part) for name, part in parts.items() if part],
        )
        with self.expecting(ledger.MoreThanReserved if amount > held else None):
            assert ledger.resolve([request], now=NOW) == 1
            assert ledger.resolve([request], now=NOW) == 0
            del self.held[pending]
            self.free["escrow"] += held - amount
            self.received += amount
            with self.expecting(ledger.AlreadyResolved):
                ledger.void(key=f"void:{pending}", kind="void", pending_id=pending, now=NOW)

    @invariant()
    def the_accounts_are_what_the_model_says(self) -> None:
        """Balances, reservations and receipts agree with plain arithmetic."""
        if not hasattr(self, "ids"):
            return
        accounts = {account.pk: account for account in Account.objects.all()}
        for name, free in self.free.items():
            assert accounts[self.ids[name]].available_micros == free
        escrow = accounts[self.ids["escrow"]]
        assert escrow.debits_pending == sum(self.held.values())
        assert accounts[self.ids["unsettled"]].credits_pending == sum(self.held.values())
        receivers = ("provider", *SHARES)
        assert sum(accounts[self.ids[name]].balance_micros for name in receivers) == self.received
        assert Transfer.objects.filter(phase="single").count() == len(self.moved)

    @invariant()
    def the_books_prove_themselves(self) -> None:
        """No statement of the nightly proof finds anything."""
        if hasattr(self, "ids"):
            assert proof.prove_books(now=NOW) == []

    @contextmanager
    def expecting(self, *refusals: type[Exception] | None) -> Iterator[None]:
        """Pass when exactly the expected refusal, or none, is raised."""
        expected = next((refusal for refusal in refusals if refusal), None)
        if expected is None:
            yield
            return
        with pytest.raises(expected):
            yield


def test_some_histories_keep_the_books_balanced(db: None) -> None:
    """R-C13 (api): random histories of moves, reserves, posts and voids against the database."""
    _run(examples=8, steps=20)


@pytest.mark.slow
def test_many_histories_keep_the_books_balanced(db: None) -> None:
    """R-C13 (api): the same, for as long as a patient machine has time."""
    _run(examples=150, steps=40)


def _run(*, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        LedgerMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
