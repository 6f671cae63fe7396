"""Page-shaped reads about money."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet, Sum

from billing.domain.accounts import AccountKind, wallet_code
from billing.domain.lines import split_amount
from billing.domain.states import UsageState
from billing.models import Account, Agreement, Entry, Transfer, UsageRecord
from fabric.accounts.models import Organisation
from fabric.journal.services.parameters import get_pinned_commercial


@dataclass(frozen=True)
class WalletState:
    """Where a buyer's money is, in micro-units; the parts add up to the total."""

    available: int
    held: int
    pending: int
    in_dispute: int

    @property
    def total(self) -> int:
        """What stands in the wallet and its escrows together."""
        return self.available + self.held + self.pending + self.in_dispute


def wallet_state(organisation: Organisation) -> WalletState:
    """Return the buyer's wallet and what its escrows hold free, promised and disputed."""
    wallet = Account.objects.filter(code=wallet_code(organisation.public_id)).first()
    escrows = Account.objects.filter(agreement__buyer=organisation).aggregate(
        balance=Sum(F("credits_posted") - F("debits_posted")), promised=Sum("debits_pending")
    )
    disputed = UsageRecord.objects.filter(
        agreement__buyer=organisation, state=UsageState.DISPUTED
    ).aggregate(total=Sum("pending__amount_micros"))["total"]
    promised, in_dispute = int(escrows["promised"] or 0), int(disputed or 0)
    return WalletState(
        available=wallet.available_micros if wallet else 0,
        held=int(escrows["balance"] or 0) - promised,
        pending=promised - in_dispute,
        in_dispute=in_dispute,
    )


@dataclass(frozen=True)
class StatementLine:
    """One booked transfer as the buyer's wallet and escrows felt it."""

    transfer: Transfer
    wallet_micros: int
    escrow_micros: int


def statement_rows(organisation: Organisation) -> "QuerySet[Entry, Any]":
    """Return a row per transfer that touched the wallet or an escrow of the buyer, newest first."""
    mine = Q(account__code=wallet_code(organisation.public_id)) | Q(
        account__agreement__buyer=organisation
    )
    return (
        Entry.objects.filter(mine)
        .values("transfer_id")
        .annotate(
            wallet=-Sum("amount_micros", filter=Q(account__kind=AccountKind.WALLET), default=0),
            escrow=-Sum("amount_micros", filter=Q(account__kind=AccountKind.ESCROW), default=0),
        )
        .order_by("-transfer_id")
    )


def statement_lines(rows: Iterable[dict[str, Any]]) -> list[StatementLine]:
    """Return the rows of one statement page with their transfers. Two queries."""
    rows = list(rows)
    transfers = Transfer.objects.select_related(
        "record__agreement", "record__terms", "debit_account__agreement"
    ).in_bulk([row["transfer_id"] for row in rows])
    return [
        StatementLine(transfers[row["transfer_id"]], row["wallet"], row["escrow"]) for row in rows
    ]


@dataclass(frozen=True)
class Share:
    """One part of what stands of a line."""

    name: str
    bps: int
    micros: int


@dataclass(frozen=True)
class Recomputed:
    """A line worked out again from its terms: what anybody with the terms would get."""

    cost_to_end: int
    cost_to_start: int
    amount: int
    ruled: int
    shares: tuple[Share, ...]


def recompute(record: UsageRecord) -> Recomputed:
    """Work a line out from its terms and pinned parameters, reading no ledger row."""
    rate = record.terms.rate
    parameters = get_pinned_commercial(digest=bytes(record.terms.parameters_digest))
    fees = parameters.fee_shares_bps
    parts = split_amount(record.ruled_micros, fee_shares_bps=fees)
    bps = {**fees, "provider": parameters.provider_bps}
    order = ("provider", "verification", "network", "infrastructure", "margin")
    return Recomputed(
        cost_to_end=rate.cost_up_to(record.counter_end),
        cost_to_start=rate.cost_up_to(record.counter_start),
        amount=rate.line_amount(record.counter_start, record.counter_end),
        ruled=record.ruled_micros,
        shares=tuple(Share(name, bps[name], parts[name]) for name in order),
    )


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
    return [ledger_line(row) for row in with_legs(escrow_transfers(agreement)).order_by("pk")]


def escrow_transfers(agreement: Agreement) -> "QuerySet[Transfer]":
    """Return the transfers into, out of, or promised by the agreement's escrow."""
    return Transfer.objects.filter(
        Q(debit_account=agreement.escrow_id) | Q(credit_account=agreement.escrow_id)
    )


def with_legs(transfers: "QuerySet[Transfer]") -> "QuerySet[Transfer]":
    """Fetch with each transfer what `ledger_line` reads."""
    return transfers.select_related("record").prefetch_related("entries__account", "resolutions")


def ledger_line(transfer: Transfer) -> LedgerLine:
    """Return a transfer, fetched through `with_legs`, as a line."""
    return LedgerLine(
        at=transfer.effective_at,
        kind=transfer.kind,
        phase=transfer.phase,
        amount_micros=transfer.amount_micros,
        transfer=transfer.pk,
        record=transfer.record.public_id if transfer.record else None,
        state=_state_of(transfer),
        legs=tuple((leg.account.code, leg.amount_micros) for leg in transfer.entries.all()),
    )


def _state_of(transfer: Transfer) -> str:
    """Say what a pending came to: still pending, posted, or void."""
    if transfer.phase != "pending":
        return transfer.phase
    resolutions = list(transfer.resolutions.all())
    return resolutions[0].phase if resolutions else "pending"
