"""The ledger's functions: what they book and what the database refuses."""

from datetime import datetime

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from billing.domain.accounts import AccountKind
from billing.models import Account, Entry, Transfer
from billing.services import ledger
from billing.services.ledger import Resolution
from fabric.lib.errors import InvalidInput
from tests import databases
from tests.billing.money import assert_books_balance


@pytest.fixture
def accounts(db: None) -> dict[str, int]:
    """A wallet, an escrow, a shard and an earned account, empty."""
    return _open_accounts()


def _open_accounts() -> dict[str, int]:
    kinds = (AccountKind.WALLET, AccountKind.ESCROW, AccountKind.EARNED, AccountKind.CASH)
    opened = {
        kind.value: ledger.open_account(code=f"{kind}:test", kind=kind, owner="test").pk
        for kind in kinds
    }
    opened["unsettled"] = Account.objects.get(code="unsettled:3").pk
    opened["fee"] = Account.objects.get(code="fee:margin:3").pk
    return opened


def _fill(accounts: dict[str, int], amount: int, now: datetime) -> None:
    ledger.move(
        key="fill",
        kind="top_up",
        debit=accounts["cash"],
        credit=accounts["escrow"],
        amount_micros=amount,
        now=now,
    )


def _reserve(accounts: dict[str, int], amount: int, now: datetime, key: str = "r") -> Transfer:
    return ledger.reserve(
        key=key,
        kind="reserve",
        debit=accounts["escrow"],
        credit=accounts["unsettled"],
        amount_micros=amount,
        now=now,
    )


def _post(accounts: dict[str, int], pending: Transfer, earned: int, fee: int) -> Resolution:
    return Resolution(
        key=f"post:{pending.pk}",
        kind="settle",
        pending_id=pending.pk,
        amount_micros=earned + fee,
        legs=[(accounts["earned"], earned), (accounts["fee"], fee)],
    )


def test_a_post_takes_the_ruled_part_and_frees_the_rest(
    accounts: dict[str, int], now: datetime
) -> None:
    """R-C13 (api): a post moves what was ruled; what was reserved beyond it is free again."""
    _fill(accounts, 1_000, now)
    pending = _reserve(accounts, 900, now)
    assert Account.objects.get(pk=accounts["escrow"]).available_micros == 100
    assert Entry.objects.filter(transfer=pending).count() == 0

    ledger.resolve([_post(accounts, pending, 600, 50)], now=now)

    escrow = Account.objects.get(pk=accounts["escrow"])
    assert (escrow.debits_posted, escrow.debits_pending) == (650, 0)
    assert escrow.available_micros == 350
    assert Account.objects.get(pk=accounts["earned"]).balance_micros == 600
    assert Account.objects.get(pk=accounts["fee"]).balance_micros == 50
    assert Account.objects.get(pk=accounts["unsettled"]).credits_pending == 0
    assert_books_balance()


def test_a_void_frees_everything(accounts: dict[str, int], now: datetime) -> None:
    _fill(accounts, 1_000, now)
    pending = _reserve(accounts, 900, now)
    ledger.void(key="v", kind="void", pending_id=pending.pk, now=now)
    assert Account.objects.get(pk=accounts["escrow"]).available_micros == 1_000
    assert Transfer.objects.get(pending=pending).phase == "void"
    assert_books_balance()


def test_one_micro_unit_more_than_there_is_cannot_be_promised(
    accounts: dict[str, int], now: datetime
) -> None:
    """R-C11 (api): escrow never goes below zero, not even by what is only promised."""
    _fill(accounts, 1_000, now)
    _reserve(accounts, 999, now)
    with pytest.raises(ledger.InsufficientFunds):
        _reserve(accounts, 2, now, "too much")
    _reserve(accounts, 1, now, "exactly")
    assert Account.objects.get(pk=accounts["escrow"]).available_micros == 0
    assert Transfer.objects.filter(phase="pending").count() == 2
    assert_books_balance()


def test_a_key_repeats_its_answer_and_refuses_another_request(
    accounts: dict[str, int], now: datetime
) -> None:
    """R-C13 (api): the same key and request give the first transfer; another is refused."""
    _fill(accounts, 1_000, now)
    first = _reserve(accounts, 400, now)
    assert _reserve(accounts, 400, now).pk == first.pk
    with pytest.raises(ledger.KeyReused):
        _reserve(accounts, 401, now)
    assert Account.objects.get(pk=accounts["escrow"]).debits_pending == 400


def test_a_resolution_repeats_its_answer_and_refuses_another(
    accounts: dict[str, int], now: datetime
) -> None:
    _fill(accounts, 1_000, now)
    pending = _reserve(accounts, 400, now)
    post = _post(accounts, pending, 300, 100)
    assert ledger.resolve([post], now=now) == 1
    assert ledger.resolve([post], now=now) == 0
    with pytest.raises(ledger.KeyReused):
        ledger.resolve([_post(accounts, pending, 299, 101)], now=now)
    with pytest.raises(ledger.AlreadyResolved):
        ledger.void(key="another key", kind="void", pending_id=pending.pk, now=now)
    assert Account.objects.get(pk=accounts["escrow"]).debits_posted == 400
    assert_books_balance()


def test_more_than_was_reserved_cannot_be_posted(accounts: dict[str, int], now: datetime) -> None:
    _fill(accounts, 1_000, now)
    pending = _reserve(accounts, 400, now)
    with pytest.raises(ledger.MoreThanReserved):
        ledger.resolve([_post(accounts, pending, 400, 1)], now=now)
    assert not Transfer.objects.filter(pending=pending).exists()


@pytest.mark.parametrize("legs", [[(0, 399)], [(0, 401)], [(0, 401), (1, -1)], []])
def test_legs_that_do_not_add_up_are_refused(
    accounts: dict[str, int], now: datetime, legs: list[tuple[int, int]]
) -> None:
    """R-C13 (api): a post whose parts are not its amount books nothing."""
    _fill(accounts, 1_000, now)
    pending = _reserve(accounts, 400, now)
    names = (accounts["earned"], accounts["fee"])
    resolution = Resolution(
        key="p",
        kind="settle",
        pending_id=pending.pk,
        amount_micros=400,
        legs=[(names[index], part) for index, part in legs],
    )
    with pytest.raises(ledger.MoreThanReserved):
        ledger.resolve([resolution], now=now)
    assert Entry.objects.filter(transfer__pending=pending).count() == 0


def test_one_bad_resolution_fails_the_whole_call(accounts: dict[str, int], now: datetime) -> None:
    _fill(accounts, 1_000, now)
    good, bad = _reserve(accounts, 100, now, "a"), _reserve(accounts, 100, now, "b")
    with pytest.raises(ledger.MoreThanReserved):
        ledger.resolve(
            [_post(accounts, good, 90, 10), _post(accounts, bad, 100, 10)],
            now=now,
        )
    assert Account.objects.get(pk=accounts["escrow"]).debits_pending == 200


@pytest.mark.parametrize("amount", [0, -1, True, 2**63])
def test_a_transfer_of_a_strange_amount_is_refused(
    accounts: dict[str, int], now: datetime, amount: int
) -> None:
    with pytest.raises(InvalidInput):
        _reserve(accounts, amount, now)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT ledger_transfer('k', 'single', 'x', %s, %s, %s, now())",
            [accounts["cash"], accounts["escrow"], int(amount) if amount is not True else None],
        )
    assert not Transfer.objects.exists()


def test_a_transfer_to_the_same_account_is_refused(accounts: dict[str, int], now: datetime) -> None:
    with pytest.raises(IntegrityError):
        ledger.move(
            key="k",
            kind="x",
            debit=accounts["cash"],
            credit=accounts["cash"],
            amount_micros=1,
            now=now,
        )


def test_a_closed_account_takes_nothing_and_a_full_one_stays_open(
    accounts: dict[str, int], now: datetime
) -> None:
    _fill(accounts, 10, now)
    with pytest.raises(ledger.AccountClosed):
        ledger.close_account(account_id=accounts["escrow"], now=now)
    ledger.close_account(account_id=accounts["wallet"], now=now)
    with pytest.raises(ledger.AccountClosed):
        ledger.move(
            key="k",
            kind="x",
            debit=accounts["escrow"],
            credit=accounts["wallet"],
            amount_micros=1,
            now=now,
        )
    assert Account.objects.get(pk=accounts["escrow"]).available_micros == 10


def test_an_account_is_opened_once_for_one_owner(db: None) -> None:
    """R-C13 (api): the same name never stands for two tenants' money."""
    first = ledger.open_account(code="wallet:a", kind=AccountKind.WALLET, owner="a")
    assert ledger.open_account(code="wallet:a", kind=AccountKind.WALLET, owner="a") == first
    with pytest.raises(IntegrityError):
        ledger.open_account(code="wallet:a", kind=AccountKind.WALLET, owner="b")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE billing_account SET credits_posted = credits_posted + 1",
        (
            "INSERT INTO billing_account (code, kind, owner, never_negative, debits_posted,"
            " credits_posted, debits_pending, credits_pending)"
            " VALUES ('wallet:mine', 'wallet', 'me', true, 0, 1000000, 0, 0)"
        ),
        "DELETE FROM billing_account",
        "TRUNCATE billing_account CASCADE",
        (
            "INSERT INTO billing_transfer (idempotency_key, request_hash, phase, kind, amount_micros,"
            " effective_at) VALUES ('k', '', 'single', 'x', 1, now())"
        ),
        "UPDATE billing_transfer SET amount_micros = 0",
        "DELETE FROM billing_transfer",
        "TRUNCATE billing_transfer CASCADE",
        "INSERT INTO billing_entry (transfer_id, account_id, amount_micros) VALUES (1, 1, 5)",
        (
            "INSERT INTO billing_entry (transfer_id, account_id, amount_micros)"
            " VALUES (1, 1, 5), (1, 2, -5)"
        ),
        "UPDATE billing_entry SET amount_micros = amount_micros + 1",
        "DELETE FROM billing_entry",
        "TRUNCATE billing_entry",
        "ALTER TABLE billing_entry DISABLE TRIGGER ALL",
        "DROP FUNCTION ledger_entries_balance() CASCADE",
        "SELECT ledger_first_answer('k', '')",
        "CREATE OR REPLACE FUNCTION ledger_lock(ids bigint[]) RETURNS void LANGUAGE sql AS ''",
    ],
)
def test_the_runtime_role_changes_the_ledger_only_through_its_functions(
    accounts: dict[str, int], now: datetime, statement: str
) -> None:
    """R-C13 (api): the role the product runs under cannot write the books by hand at all."""
    _fill(accounts, 10, now)
    before = list(Account.objects.order_by("pk").values())
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert list(Account.objects.order_by("pk").values()) == before
    assert Transfer.objects.count() == 1
    assert_books_balance()


def test_even_the_owner_is_refused_by_the_database(
    committed_db: None, database_server: databases.Server, now: datetime
) -> None:
    """R-C13 (api): unbalanced, changed, removed or overdrawn books are refused to everybody."""
    _fill(_open_accounts(), 10, now)
    refusals = {
        "UPDATE billing_transfer SET amount_micros = 0": "append-only",
        "DELETE FROM billing_entry": "append-only",
        "TRUNCATE billing_entry": "append-only",
        "TRUNCATE billing_transfer CASCADE": "append-only",
        "TRUNCATE billing_account CASCADE": "append-only",
        "INSERT INTO billing_entry (transfer_id, account_id, amount_micros) VALUES (1, 1, 5)": (
            "sum to zero"
        ),
        "UPDATE billing_account SET debits_posted = 11 WHERE code = 'escrow:test'": (
            "an_account_holds_at_least_what_is_promised"
        ),
    }
    name = connection.settings_dict["NAME"]
    with psycopg.connect(database_server.url(name, owner=True)) as owner:
        for statement, reason in refusals.items():
            with pytest.raises(psycopg.Error, match=reason), owner.transaction():
                owner.execute(statement)
    assert_books_balance()


def test_a_temporary_table_does_not_stand_in_for_the_books(
    accounts: dict[str, int], now: datetime
) -> None:
    """R-C13 (api): the functions look tables up where the owner put them, never in pg_temp."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE billing_account (LIKE public.billing_account)")
        try:
            _fill(accounts, 10, now)
            cursor.execute("SELECT count(*) FROM pg_temp.billing_account")
            assert cursor.fetchone() == (0,)
        finally:
            cursor.execute("DROP TABLE pg_temp.billing_account")
    assert Account.objects.get(pk=accounts["escrow"]).available_micros == 10
