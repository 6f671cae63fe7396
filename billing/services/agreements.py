"""Opening and closing the contract that money, terms and usage hang on."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import rfc8785
from django.db import transaction
from django.db.models import Exists, OuterRef

from billing.domain.accounts import AccountKind, earned_code, escrow_code
from billing.domain.amounts import check_amount
from billing.domain.states import AgreementState, UsageState
from billing.models import Agreement, Reservation, Terms, UsageRecord
from billing.services import escrow, ledger
from fabric.accounts.domain.actors import EXCHANGE
from fabric.accounts.models import Organisation
from fabric.journal.services.events import record_event
from fabric.journal.services.parameters import get_commercial
from fabric.lib import ids
from fabric.lib.errors import FieldError, InvalidInput


@transaction.atomic
def open_agreement(
    *,
    buyer: Organisation,
    provider: Organisation,
    body: Mapping[str, Any],
    price_micros: int,
    per_quantity: int,
    meter_unit: str,
    units: int,
    now: datetime,
) -> tuple[Agreement, Terms]:
    """Bind one buyer, one provider and one new escrow account, on terms nobody can edit.

    The commercial parameters in force are pinned by digest; `body` is completed with the parties,
    the price and that digest, and hashed, so the terms' digest speaks for all of it.
    """
    if buyer.pk == provider.pk:
        raise InvalidInput(
            "Nobody buys from themselves.",
            errors=(FieldError("provider", "the same as the buyer", "another organisation"),),
        )
    check_amount(price_micros, field="price_micros", at_least=0)
    check_amount(per_quantity, field="per_quantity")
    check_amount(units, field="units", at_most=2**31 - 1)
    parameters_row, parameters = get_commercial(now=now)
    key = ids.uuid7()
    public_id = ids.to_public(Agreement.PREFIX, key)
    agreement = Agreement.objects.create(
        id=key,
        buyer=buyer,
        provider=provider,
        escrow=ledger.open_account(
            code=escrow_code(public_id), kind=AccountKind.ESCROW, owner=public_id
        ),
        created_at=now,
    )
    ledger.open_account(
        code=earned_code(provider.public_id), kind=AccountKind.EARNED, owner=provider.public_id
    )
    full_body = {
        **body,
        "agreement": public_id,
        "version": 1,
        "buyer": buyer.public_id,
        "provider": provider.public_id,
        "price": {
            "amount_micros": str(price_micros),
            "per_quantity": str(per_quantity),
            "meter_unit": meter_unit,
        },
        "units": units,
        "window_seconds": parameters.window_seconds,
        "dispute_window_seconds": parameters.dispute_window_seconds,
        "parameters_digest": bytes(parameters_row.digest).hex(),
        "effective_at": now.isoformat(),
    }
    canonical = _canonical(full_body)
    terms = Terms.objects.create(
        agreement=agreement,
        version=1,
        body=full_body,
        canonical=canonical,
        digest=hashlib.sha256(canonical).digest(),
        parameters_digest=bytes(parameters_row.digest),
        price_micros=price_micros,
        per_quantity=per_quantity,
        meter_unit=meter_unit,
        units=units,
        window_seconds=parameters.window_seconds,
        dispute_window_seconds=parameters.dispute_window_seconds,
        effective_at=now,
    )
    return agreement, terms


@transaction.atomic
def close_if_done(*, agreement: Agreement, now: datetime) -> bool:
    """Let no more money be reserved, return what is free, and close once nothing is open.

    Returns whether the agreement is closed now. Until every window has settled, the settlement
    sweep tries again, so a caller need ask only once, when the work is over.
    """
    escrow.lock_agreement(agreement)
    if agreement.state == AgreementState.OPEN:
        _move(agreement, AgreementState.OPEN, AgreementState.CLOSING)
    if agreement.state == AgreementState.CLOSED:
        return True
    escrow.return_unused(agreement=agreement, now=now)
    if _is_open_work(agreement):
        return False
    ledger.close_account(account_id=agreement.escrow_id, now=now)
    _move(agreement, AgreementState.CLOSING, AgreementState.CLOSED, closed_at=now)
    record_event(
        kind="agreement.closed",
        subject=agreement.public_id,
        actor=EXCHANGE.id,
        organisations=parties_of(agreement),
        now=now,
    )
    return True


def close_due(*, now: datetime, limit: int = 200) -> int:
    """Close agreements whose work is over and whose last window has settled; return how many."""
    unsettled = UsageRecord.objects.filter(agreement=OuterRef("pk")).exclude(
        state=UsageState.SETTLED
    )
    reserved = Reservation.objects.filter(
        agreement=OuterRef("pk"), record__isnull=True, voided_at__isnull=True
    )
    ready = Agreement.objects.filter(
        ~Exists(unsettled), ~Exists(reserved), state=AgreementState.CLOSING
    ).order_by("pk")[:limit]
    return sum(close_if_done(agreement=agreement, now=now) for agreement in ready)


def parties_of(agreement: Agreement) -> list[str]:
    """Return the public ids of both organisations, for events that both may read."""
    return [
        ids.to_public(Organisation.PREFIX, agreement.buyer_id),
        ids.to_public(Organisation.PREFIX, agreement.provider_id),
    ]


def _is_open_work(agreement: Agreement) -> bool:
    return (
        agreement.usage_records.exclude(state=UsageState.SETTLED).exists()
        or agreement.reservations.filter(record__isnull=True, voided_at__isnull=True).exists()
    )


def _move(
    agreement: Agreement,
    before: AgreementState,
    after: AgreementState,
    *,
    closed_at: datetime | None = None,
) -> None:
    """Change the state of an agreement whose row the caller has locked."""
    Agreement.objects.filter(pk=agreement.pk, state=before).update(state=after, closed_at=closed_at)
    agreement.state, agreement.closed_at = after, closed_at


def _canonical(body: Mapping[str, Any]) -> bytes:
    try:
        return rfc8785.dumps(dict(body))
    except rfc8785.CanonicalizationError as error:
        raise InvalidInput(
            "The terms cannot be written down exactly.",
            errors=(FieldError("body", str(error), "JSON without fractions beyond exact numbers"),),
        ) from error
