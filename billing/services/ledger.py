"""The ledger's functions as Python verbs; nothing else in the product writes accounts or entries.

A refusal undoes only its own savepoint, so a caller may answer it and go on.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import psycopg
from django.db import DatabaseError, OperationalError, connection, transaction

from billing.domain.accounts import AccountKind
from billing.domain.amounts import check_amount
from billing.domain.states import Phase
from billing.models import Account, Transfer
from fabric.lib.errors import DomainError, WrongState


class InsufficientFunds(DomainError):
    """The account holds less than what would leave it."""

    code: ClassVar[str] = "INSUFFICIENT_FUNDS"
    status: ClassVar[int] = 402


class KeyReused(DomainError):
    """The idempotency key already stands for another request; nothing was booked."""

    code: ClassVar[str] = "IDEMPOTENCY_KEY_REUSED"
    status: ClassVar[int] = 422


class MoreThanReserved(WrongState):
    """A post asks for more than its pending set aside, or for legs that do not add up."""

    code: ClassVar[str] = "MORE_THAN_RESERVED"


class AlreadyResolved(WrongState):
    """The pending was posted or voided before."""

    code: ClassVar[str] = "ALREADY_RESOLVED"


class AccountClosed(WrongState):
    """A closed account takes no transfer, and one that still holds something does not close."""

    code: ClassVar[str] = "ACCOUNT_CLOSED"


class LedgerBusy(DomainError):
    """The accounts were locked for too long; nothing was booked and trying again can help."""

    code: ClassVar[str] = "LEDGER_BUSY"
    status: ClassVar[int] = 503
    retryable: ClassVar[bool] = True


@dataclass(frozen=True)
class Resolution:
    """What becomes of one pending: an amount to post, shared out over credit accounts; 0 voids."""

    key: str
    kind: str
    pending_id: int
    amount_micros: int = 0
    legs: Sequence[tuple[int, int]] = ()
    record_id: str | None = None


def open_account(*, code: str, kind: AccountKind, owner: str = "") -> Account:
    """Return the account of this name, opening it the first time."""
    found = Account.objects.filter(code=code, kind=kind, owner=owner).first()
    if found is not None:
        return found
    account_id = _call("SELECT ledger_open_account(%s, %s, %s)", [code, kind, owner])
    return Account.objects.get(pk=account_id)


def lock_accounts(account_ids: Iterable[int]) -> None:
    """Lock accounts in the ledger's order, ahead of several calls that need them together."""
    _call("SELECT ledger_lock(%s)", [list(account_ids)])


def move(
    *, key: str, kind: str, debit: int, credit: int, amount_micros: int, now: datetime
) -> Transfer:
    """Move money from one account to another, once per key."""
    return _transfer([key, Phase.SINGLE, kind, debit, credit, check_amount(amount_micros), now])


def reserve(
    *, key: str, kind: str, debit: int, credit: int, amount_micros: int, now: datetime
) -> Transfer:
    """Promise money of one account, to be resolved later by a post or a void."""
    return _transfer([key, Phase.PENDING, kind, debit, credit, check_amount(amount_micros), now])


def resolve(resolutions: Sequence[Resolution], *, now: datetime) -> int:
    """Resolve pendings, all or none; return how many were not resolved by the same request before.

    One statement does the work however many there are, so a settlement chunk costs one round trip.
    """
    requests = [
        {
            "key": item.key,
            "kind": item.kind,
            "pending": item.pending_id,
            "amount": item.amount_micros,
            "record": item.record_id,
            "legs": [list(leg) for leg in item.legs],
        }
        for item in resolutions
    ]
    if not requests:
        return 0
    return int(_call("SELECT ledger_resolve(%s, %s)", [json.dumps(requests), now]))


def void(*, key: str, kind: str, pending_id: int, now: datetime) -> None:
    """Give back all that a pending set aside."""
    resolve([Resolution(key=key, kind=kind, pending_id=pending_id)], now=now)


def close_account(*, account_id: int, now: datetime) -> None:
    """Close an empty account for good."""
    _call("SELECT ledger_close_account(%s, %s)", [account_id, now])


def _transfer(parameters: Sequence[Any]) -> Transfer:
    transfer_id = _call("SELECT ledger_transfer(%s, %s, %s, %s, %s, %s, %s)", parameters)
    return Transfer.objects.get(pk=transfer_id)


_REFUSALS: dict[str, tuple[type[DomainError], str]] = {
    "an_account_holds_at_least_what_is_promised": (
        InsufficientFunds,
        "The balance does not cover this amount.",
    ),
    "a_key_stands_for_one_request": (
        KeyReused,
        "This idempotency key was used for another request.",
    ),
    "a_post_is_at_most_what_was_reserved": (
        MoreThanReserved,
        "More than was reserved cannot be charged.",
    ),
    "legs_add_up_to_the_amount": (MoreThanReserved, "The parts do not add up to the amount."),
    "a_pending_is_resolved_once": (AlreadyResolved, "This reservation was resolved before."),
    "a_closed_account_takes_no_transfer": (AccountClosed, "The account is closed."),
    "a_closed_account_is_empty": (AccountClosed, "The account still holds or promises money."),
}


def _call(statement: str, parameters: Sequence[Any]) -> Any:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            row = cursor.fetchone()
    except OperationalError as error:
        if isinstance(
            error.__cause__, psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected
        ):
            raise LedgerBusy("The ledger is busy; try again in a moment.") from error
        raise
    except DatabaseError as error:
        refusal = _refusal_of(error)
        if refusal is None:
            raise
        raise refusal from error
    return row[0] if row else None


def _refusal_of(error: DatabaseError) -> DomainError | None:
    cause = error.__cause__
    name = cause.diag.constraint_name if isinstance(cause, psycopg.Error) else None
    if name not in _REFUSALS:
        return None
    kind, message = _REFUSALS[name]
    return kind(message)
