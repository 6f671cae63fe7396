"""Booking lines once nobody can dispute them: from escrow to the provider and the fee accounts.

The record's move to `settled` is a compare-and-set on the row that opening a dispute changes too,
so exactly one of them wins. A chunk is one transaction; one that fails is halved until the line
at fault stands alone, is set aside for an operator and named in an event, and the rest settle.
"""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.db import DataError, IntegrityError, transaction
from django.db.models import Min

from billing.domain.accounts import AccountKind, earned_code, fee_code, shard_of
from billing.domain.lines import split_amount
from billing.domain.states import UsageState
from billing.models import Account, Agreement, SettlementRun, UsageRecord
from billing.services import ledger
from billing.services.agreements import parties_of
from billing.services.ledger import Resolution
from fabric.accounts.domain.actors import EXCHANGE
from fabric.accounts.models import Organisation
from fabric.journal.domain.parameters import CommercialParameters
from fabric.journal.services.events import record_event
from fabric.journal.services.parameters import get_pinned_commercial
from fabric.lib import ids
from fabric.lib.errors import DomainError

CHUNK = 2_000


def settle_due(*, now: datetime, limit: int = CHUNK) -> int:
    """Settle up to `limit` lines whose dispute window is over; return how many were settled.

    Safe beside itself: rows another run holds are left to it. What failed for a passing reason
    (locks, a lost connection) is raised and stays due.
    """
    limit = min(limit, CHUNK)
    due = list(
        UsageRecord.objects.due(now)
        .order_by("disputable_until", "pk")
        .values_list("pk", flat=True)[:limit]
    )
    if not due:
        return 0
    run = SettlementRun.objects.create(event_cutoff=now, ingestion_cutoff=now, started_at=now)
    settled = _settle_chunk(due, run, now)
    run.settled = settled
    run.quarantined = UsageRecord.objects.filter(settlement=run, state=UsageState.PENDING).count()
    run.save(update_fields=["settled", "quarantined"])
    return settled


def longest_wait_seconds(*, now: datetime) -> int:
    """Return for how long the oldest due line has been waiting; the sweep's alarm."""
    oldest = UsageRecord.objects.due(now).aggregate(oldest=Min("disputable_until"))["oldest"]
    return int((now - oldest).total_seconds()) if oldest else 0


def book_records(records: Sequence[UsageRecord], *, now: datetime) -> None:
    """Post or void the pendings of records whose state the caller has just moved to settled.

    `records` come with their terms and agreement selected. All legs of a post carry the record.
    """
    parameters: dict[bytes, CommercialParameters] = {}
    shares: dict[UsageRecord, dict[str, int]] = {}
    for record in records:
        if record.pending_id is None:
            continue
        digest = bytes(record.terms.parameters_digest)
        if digest not in parameters:
            parameters[digest] = get_pinned_commercial(digest=digest)
        amounts = split_amount(
            record.ruled_micros, fee_shares_bps=parameters[digest].fee_shares_bps
        )
        shares[record] = {
            _account_code(record.agreement, name): part for name, part in amounts.items() if part
        }
    codes = {code for legs in shares.values() for code in legs}
    account_ids = dict(Account.objects.filter(code__in=codes).values_list("code", "pk"))
    for code in codes - account_ids.keys():
        account_ids[code] = _open(code).pk
    ledger.resolve(
        [
            Resolution(
                key=f"settle:{record.public_id}",
                kind="settle",
                pending_id=int(record.pending_id or 0),
                amount_micros=record.ruled_micros,
                legs=[(account_ids[code], part) for code, part in legs.items()],
                record_id=str(record.pk),
            )
            for record, legs in shares.items()
        ],
        now=now,
    )


def _settle_chunk(record_ids: Sequence[uuid.UUID], run: SettlementRun, now: datetime) -> int:
    try:
        with transaction.atomic():
            return _settle_together(record_ids, run, now)
    except (DomainError, IntegrityError, DataError) as error:
        if isinstance(error, DomainError) and error.retryable:
            raise
        if len(record_ids) == 1:
            _quarantine(record_ids[0], run, str(error), now)
            return 0
        middle = len(record_ids) // 2
        return _settle_chunk(record_ids[:middle], run, now) + _settle_chunk(
            record_ids[middle:], run, now
        )


def _settle_together(record_ids: Sequence[uuid.UUID], run: SettlementRun, now: datetime) -> int:
    records = list(
        UsageRecord.objects.due(now)
        .filter(pk__in=record_ids)
        .select_related("terms", "agreement")
        .order_by("pk")
        .select_for_update(of=("self",), no_key=True, skip_locked=True)
    )
    UsageRecord.objects.filter(
        pk__in=[record.pk for record in records], state=UsageState.PENDING
    ).update(state=UsageState.SETTLED, settled_at=now, settlement=run)
    book_records(records, now=now)
    _tell(records, now)
    return len(records)


def _tell(records: Sequence[UsageRecord], now: datetime) -> None:
    by_agreement: dict[Agreement, list[UsageRecord]] = defaultdict(list)
    for record in records:
        by_agreement[record.agreement].append(record)
    for agreement, settled in by_agreement.items():
        record_event(
            kind="usage.settled",
            subject=agreement.public_id,
            actor=EXCHANGE.id,
            organisations=parties_of(agreement),
            data={
                "records": [record.public_id for record in settled],
                "amount_micros": str(sum(record.ruled_micros for record in settled)),
            },
            now=now,
        )


def _quarantine(record_id: uuid.UUID, run: SettlementRun, reason: str, now: datetime) -> None:
    with transaction.atomic():
        changed = UsageRecord.objects.filter(pk=record_id, state=UsageState.PENDING).update(
            quarantined_at=now, quarantine_reason=reason[:2_000], settlement=run
        )
        if changed:
            record_event(
                kind="alert.settlement_line_quarantined",
                subject=UsageRecord.objects.get(pk=record_id).public_id,
                actor=EXCHANGE.id,
                data={"reason": reason[:500]},
                now=now,
            )


def _account_code(agreement: Agreement, share: str) -> str:
    if share == "provider":
        return earned_code(ids.to_public(Organisation.PREFIX, agreement.provider_id))
    return fee_code(share, shard_of(agreement.pk))


def _open(code: str) -> Account:
    kind, _, rest = code.partition(":")
    owner = rest if kind == AccountKind.EARNED else ""
    return ledger.open_account(code=code, kind=AccountKind(kind), owner=owner)
