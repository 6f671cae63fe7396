"""An agreement's escrow: funded from the wallet, reserved window by window, returned when unused.

A transaction that both frees a reservation and touches the wallet would take its locks the wrong
way round; every verb here that ends in the wallet therefore locks it first.
"""

import hashlib
from datetime import datetime
from typing import ClassVar

from django.db import transaction
from django.db.models import Sum

from billing.domain.accounts import AccountKind, shard_of, unsettled_code, wallet_code
from billing.domain.amounts import check_amount
from billing.domain.states import AgreementState
from billing.models import Account, Agreement, Reservation, Terms, Transfer
from billing.services import ledger, wallet
from billing.services.ledger import InsufficientFunds
from fabric.accounts.domain.actors import EXCHANGE
from fabric.accounts.models import Organisation
from fabric.journal.services.events import record_event
from fabric.lib import ids
from fabric.lib.errors import DomainError, WrongState


class EscrowExhausted(DomainError):
    """The escrow cannot cover the seconds that were asked for; fewer may still be affordable."""

    code: ClassVar[str] = "ESCROW_EXHAUSTED"
    status: ClassVar[int] = 402


def lock_agreement(agreement: Agreement) -> None:
    """Lock the agreement's row and bring this copy of it up to date."""
    agreement.refresh_from_db(from_queryset=Agreement.objects.select_for_update(no_key=True))


@transaction.atomic
def fund(*, agreement: Agreement, amount_micros: int, key: str, now: datetime) -> Transfer:
    """Move money from the buyer's wallet into the escrow, once per key and agreement."""
    check_amount(amount_micros)
    lock_agreement(agreement)
    _require_open(agreement)
    buyer_wallet = wallet.get_wallet(agreement.buyer)
    # A caller's key may be long; its digest is as unique and always fits.
    digest = hashlib.sha256(key.encode()).hexdigest()
    try:
        transfer = ledger.move(
            key=f"fund:{agreement.public_id}:{digest}",
            kind="order",
            debit=buyer_wallet.pk,
            credit=agreement.escrow_id,
            amount_micros=amount_micros,
            now=now,
        )
    except InsufficientFunds as error:
        raise InsufficientFunds(
            "Your balance does not cover this amount.",
            suggestion="Top up your balance, or choose a smaller amount.",
            metadata={"amount_micros": str(amount_micros)},
        ) from error
    record_event(
        kind="escrow.funded",
        subject=agreement.public_id,
        actor=EXCHANGE.id,
        organisations=[agreement.buyer.public_id],
        data={"amount_micros": str(amount_micros), "transfer": transfer.pk},
        now=now,
    )
    return transfer


@transaction.atomic
def reserve_window(
    *,
    agreement: Agreement,
    terms: Terms,
    window_index: int,
    max_ready_seconds: int,
    now: datetime,
) -> Transfer | None:
    """Set aside the most that `max_ready_seconds` of a window can cost.

    Windows are reserved in order, because the amount depends on how far the counter can have come
    by then. Asking again for as many seconds or fewer changes nothing; for more, it enlarges the
    reservation of the last window. Returns None where those seconds cost nothing. Raises
    EscrowExhausted, with nothing changed, where the money does not reach.
    """
    check_amount(max_ready_seconds, field="max_ready_seconds", at_most=terms.window_seconds)
    lock_agreement(agreement)
    _require_open(agreement)
    live = agreement.reservations.filter(window_index=window_index, voided_at__isnull=True).first()
    if live is not None and (live.record_id or max_ready_seconds <= live.max_quantity):
        return live.pending
    later = agreement.reservations.filter(window_index__gt=window_index, voided_at__isnull=True)
    recorded = agreement.usage_records.filter(window_index__gte=window_index)
    if later.exists() or recorded.exists():
        raise WrongState("A later window was already reserved or recorded.")
    if live is not None:
        _void(live, now)
    first, last = _possible_positions(agreement)
    amount = terms.rate.largest_line(max_ready_seconds, first_start=first, last_start=last)
    attempt = agreement.reservations.filter(window_index=window_index).count()
    pending = None
    if amount > 0:
        shard = ledger.open_account(
            code=unsettled_code(shard_of(agreement.pk)), kind=AccountKind.UNSETTLED
        )
        try:
            pending = ledger.reserve(
                key=f"reserve:{agreement.public_id}:{window_index}:{attempt}",
                kind="reserve",
                debit=agreement.escrow_id,
                credit=shard.pk,
                amount_micros=amount,
                now=now,
            )
        except InsufficientFunds as error:
            raise EscrowExhausted(
                "The escrow does not cover this window.",
                suggestion="Top up the lease to keep it running.",
                metadata={"needed_micros": str(amount)},
            ) from error
    Reservation.objects.create(
        agreement=agreement,
        terms=terms,
        window_index=window_index,
        max_quantity=max_ready_seconds,
        pending=pending,
        reserved_at=now,
    )
    return pending


@transaction.atomic
def void_reservation(*, agreement: Agreement, window_index: int, now: datetime) -> bool:
    """Free what was set aside for a window that will have no reading; False if nothing was."""
    lock_agreement(agreement)
    live = agreement.reservations.filter(
        window_index=window_index, voided_at__isnull=True, record__isnull=True
    ).first()
    if live is None:
        return False
    _void(live, now)
    return True


@transaction.atomic
def return_unused(*, agreement: Agreement, now: datetime) -> int:
    """Give the buyer's wallet what the escrow neither spent nor promised; return how much."""
    lock_agreement(agreement)
    buyer_wallet = wallet.get_wallet(agreement.buyer)
    ledger.lock_accounts([buyer_wallet.pk, agreement.escrow_id])
    unused = Account.objects.get(pk=agreement.escrow_id).available_micros
    if unused == 0:
        return 0
    returns = Transfer.objects.filter(debit_account=agreement.escrow_id, kind="return").count()
    ledger.move(
        key=f"return:{agreement.public_id}:{returns}",
        kind="return",
        debit=agreement.escrow_id,
        credit=buyer_wallet.pk,
        amount_micros=unused,
        now=now,
    )
    record_event(
        kind="escrow.returned",
        subject=agreement.public_id,
        actor=EXCHANGE.id,
        organisations=[agreement.buyer.public_id],
        data={"amount_micros": str(unused)},
        now=now,
    )
    return unused


def seconds_affordable(*, agreement: Agreement, terms: Terms) -> int:
    """Return how many more ready seconds the free part of the escrow is sure to cover."""
    free = Account.objects.get(pk=agreement.escrow_id).available_micros
    agreement.refresh_from_db(fields=["counter"])
    first, last = _possible_positions(agreement)
    return terms.rate.affordable_quantity(free, first_start=first, last_start=last)


def _possible_positions(agreement: Agreement) -> tuple[int, int]:
    """Return where the counter can stand when all windows reserved so far are over."""
    ahead = agreement.reservations.filter(voided_at__isnull=True, record__isnull=True).aggregate(
        seconds=Sum("max_quantity")
    )["seconds"]
    return agreement.counter, agreement.counter + int(ahead or 0)


def _void(reservation: Reservation, now: datetime) -> None:
    if reservation.pending_id is not None:
        agreement = reservation.agreement
        pending = Transfer.objects.get(pk=reservation.pending_id)
        # What is freed often goes on to the wallet in the same transaction: lock that first.
        owner = ids.to_public(Organisation.PREFIX, agreement.buyer_id)
        accounts = Account.objects.filter(code=wallet_code(owner)).values_list("pk", flat=True)
        ledger.lock_accounts([*accounts, agreement.escrow_id, int(pending.credit_account_id or 0)])
        ledger.void(
            key=f"void:{reservation.pending_id}",
            kind="void",
            pending_id=reservation.pending_id,
            now=now,
        )
    Reservation.objects.filter(pk=reservation.pk, record__isnull=True).update(voided_at=now)


def _require_open(agreement: Agreement) -> None:
    if agreement.state != AgreementState.OPEN:
        raise WrongState("The agreement is closing; it takes no more money.")
