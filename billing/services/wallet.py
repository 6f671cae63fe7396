"""A buyer organisation's own money: what has cleared and is not promised to any agreement."""

from datetime import datetime

from billing.domain.accounts import CASH, AccountKind, wallet_code
from billing.models import Account, Transfer
from billing.services import ledger
from fabric.accounts.models import Organisation


def get_wallet(organisation: Organisation) -> Account:
    """Return the organisation's wallet, opening it the first time. Costs a query."""
    return ledger.open_account(
        code=wallet_code(organisation.public_id),
        kind=AccountKind.WALLET,
        owner=organisation.public_id,
    )


def available_micros(organisation: Organisation) -> int:
    """Return what the organisation can put into orders now, opening nothing. Costs a query."""
    account = Account.objects.filter(code=wallet_code(organisation.public_id)).first()
    return account.available_micros if account else 0


def credit_cash(
    *, organisation: Organisation, amount_micros: int, key: str, now: datetime
) -> Transfer:
    """Book money that reached the card processor for this organisation into its wallet."""
    cash = ledger.open_account(code=CASH, kind=AccountKind.CASH)
    return ledger.move(
        key=key,
        kind="top_up",
        debit=cash.pk,
        credit=get_wallet(organisation).pk,
        amount_micros=amount_micros,
        now=now,
    )
