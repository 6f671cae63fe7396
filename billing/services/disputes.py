"""What a dispute does to money: holds one line, and lets the ruled part of it stand."""

from datetime import datetime

from django.db import transaction

from billing.domain.accounts import wallet_code
from billing.domain.amounts import check_amount
from billing.domain.lines import WHOLE_BPS
from billing.domain.states import UsageState
from billing.models import Account, UsageRecord
from billing.services import ledger, settlement
from fabric.accounts.models import Organisation
from fabric.lib import ids
from fabric.lib.errors import WrongState


def hold_record(*, record: UsageRecord, now: datetime) -> bool:
    """Hold a line if it can still be disputed; False when settlement or another came first.

    Settling is the same compare-and-set on the same row, so exactly one of the two happens.
    """
    held = UsageRecord.objects.filter(
        pk=record.pk, state=UsageState.PENDING, disputable_until__gt=now
    ).update(state=UsageState.DISPUTED)
    if held:
        record.state = UsageState.DISPUTED
    return bool(held)


@transaction.atomic
def resolve_record(*, record: UsageRecord, stands_bps: int, now: datetime) -> None:
    """Settle a held line at the ruled part; what does not stand returns to the escrow."""
    check_amount(stands_bps, field="stands_bps", at_least=0, at_most=WHOLE_BPS)
    changed = UsageRecord.objects.filter(pk=record.pk, state=UsageState.DISPUTED).update(
        state=UsageState.SETTLED, stands_bps=stands_bps, settled_at=now
    )
    if not changed:
        raise WrongState("Only a disputed line can be ruled on.")
    record.refresh_from_db()
    _lock_wallet_first(record)
    settlement.book_records([record], now=now)


@transaction.atomic
def release_record(*, record: UsageRecord, now: datetime) -> None:
    """End a dispute that was withdrawn: the line stands whole, and settles when its time comes."""
    changed = UsageRecord.objects.filter(pk=record.pk, state=UsageState.DISPUTED).update(
        state=UsageState.PENDING
    )
    if not changed:
        raise WrongState("Only a disputed line can be released.")
    record.refresh_from_db()
    if record.disputable_until <= now:
        UsageRecord.objects.filter(pk=record.pk, state=UsageState.PENDING).update(
            state=UsageState.SETTLED, settled_at=now
        )
        record.refresh_from_db()
        _lock_wallet_first(record)
        settlement.book_records([record], now=now)


def _lock_wallet_first(record: UsageRecord) -> None:
    """Take the wallet's lock before the booking's, for callers that go on to return money."""
    owner = ids.to_public(Organisation.PREFIX, record.agreement.buyer_id)
    ledger.lock_accounts(
        Account.objects.filter(code=wallet_code(owner)).values_list("pk", flat=True)
    )
