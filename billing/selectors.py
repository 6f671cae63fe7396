"""Page-shaped reads about money."""

from dataclasses import dataclass
from datetime import datetime

from billing.models import Agreement, Transfer, UsageRecord


@dataclass(frozen=True)
class LedgerLine:
    """One movement of an agreement's money, as both parties may see it."""

    at: datetime
    kind: str
    phase: str
    amount_micros: int
    transfer: int
    record: str | None
    state: str
    legs: tuple[tuple[str, int], ...]


def ledger_lines(agreement: Agreement) -> list[LedgerLine]:
    """Return every transfer that touched the agreement's escrow, oldest first. Three queries."""
    transfers = (
        Transfer.objects.filter(debit_account=agreement.escrow_id)
        .union(Transfer.objects.filter(credit_account=agreement.escrow_id))
        .values_list("pk", flat=True)
    )
    rows = (
        Transfer.objects.filter(pk__in=list(transfers))
        .select_related("record")
        .prefetch_related("entries__account", "resolutions")
        .order_by("pk")
    )
    return [
        LedgerLine(
            at=row.effective_at,
            kind=row.kind,
            phase=row.phase,
            amount_micros=row.amount_micros,
            transfer=row.pk,
            record=row.record.public_id if row.record else None,
            state=_state_of(row),
            legs=tuple((leg.account.code, leg.amount_micros) for leg in row.entries.all()),
        )
        for row in rows
    ]


def usage_lines(agreement: Agreement) -> list[UsageRecord]:
    """Return the agreement's metered windows in order, each with its terms."""
    return list(agreement.usage_records.select_related("terms").order_by("window_index"))


def _state_of(transfer: Transfer) -> str:
    """Say what a pending came to: still pending, posted, or void."""
    if transfer.phase != "pending":
        return transfer.phase
    resolutions = list(transfer.resolutions.all())
    return resolutions[0].phase if resolutions else "pending"
