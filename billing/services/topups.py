"""Card money on its way into a wallet: a payment page is opened, and what it took is booked once.

Booking always starts from what the processor says when asked, never from what a webhook carries:
events come twice, late and out of order, and a page's address can be typed by anybody.
"""

import hashlib
from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import transaction

from billing import stripe_gateway
from billing.domain.amounts import check_amount
from billing.domain.currencies import to_micros, to_minor_units
from billing.domain.states import TOP_UP_MOVES, TopUpState
from billing.models import PaymentCustomer, TopUp
from billing.services import wallet
from billing.services.ledger import KeyReused
from billing.stripe_gateway import CheckoutSession
from fabric.accounts.domain.actors import EXCHANGE, Actor
from fabric.accounts.domain.roles import Right
from fabric.accounts.models import Organisation
from fabric.journal.services.events import record_event
from fabric.lib.errors import DomainError, NotAllowed, NotVisible

LEAST_MICROS = 1_000_000
MOST_MICROS = 50_000_000_000


class PaymentMismatch(DomainError):
    """The processor took another amount, currency or mode than was asked; an operator must look."""

    code: ClassVar[str] = "PAYMENT_MISMATCH"


def start_top_up(
    *,
    actor: Actor,
    organisation: Organisation,
    amount_micros: int,
    now: datetime,
    key: str | None = None,
) -> TopUp:
    """Open a payment page and return the top-up that knows its address.

    The row is committed before the processor is asked, so a payment can always be traced to it.
    The same key again resumes the same top-up; a new attempt after a decline is a new one.
    """
    actor.require(Right.PAY)
    if actor.organisation_id != organisation.pk:
        raise NotAllowed("You can only top up your own organisation's balance.")
    check_amount(amount_micros, at_least=LEAST_MICROS, at_most=MOST_MICROS)
    currency = settings.FABRIC_CURRENCY
    amount_minor = to_minor_units(amount_micros, currency=currency)
    top_up = _find_or_create(actor, organisation, amount_micros, key, now)
    if top_up.checkout_session:
        return top_up
    address = f"{settings.FABRIC_PUBLIC_URL}/billing/top-ups/{top_up.public_id}/"
    session = stripe_gateway.create_checkout(
        reference=top_up.public_id,
        organisation=organisation.public_id,
        customer=_customer_of(organisation, now),
        amount_minor=amount_minor,
        currency=currency,
        return_url=f"{address}?session_id={{CHECKOUT_SESSION_ID}}",
        cancel_url=address,
    )
    TopUp.objects.filter(pk=top_up.pk, checkout_session__isnull=True).update(
        checkout_session=session.id, checkout_url=session.url
    )
    top_up.refresh_from_db()
    return top_up


def fulfil(*, session_id: str, now: datetime) -> TopUp:
    """Bring a top-up up to date with its payment: credit it if paid, end it if expired.

    Called by the webhook's task and by the return page, in any order and at once; the money is
    booked by whichever moves the row, in that same transaction.
    """
    return apply_session(session=stripe_gateway.retrieve_checkout(session_id), now=now)


def apply_session(*, session: CheckoutSession, now: datetime) -> TopUp:
    """Bring a top-up up to date with a session that the processor has just described."""
    top_up = TopUp.find_public(session.reference)
    if top_up is None:
        raise NotVisible("No top-up belongs to this payment.")
    if session.payment_status == "paid":
        _check_payment(top_up, session, now)
        _credit(top_up, session, now)
    elif session.status == "expired":
        TopUp.objects.filter(pk=top_up.pk, state=TopUpState.CREATED).update(
            state=TopUpState.EXPIRED
        )
    top_up.refresh_from_db()
    return top_up


def _find_or_create(
    actor: Actor, organisation: Organisation, amount_micros: int, key: str | None, now: datetime
) -> TopUp:
    fresh = TopUp(
        organisation=organisation,
        amount_micros=amount_micros,
        created_by=actor.id,
        created_at=now,
    )
    if key is None:
        fresh.save(force_insert=True)
        return fresh
    top_up, _ = TopUp.objects.get_or_create(
        organisation=organisation,
        request_key=hashlib.sha256(key.encode()).hexdigest(),
        defaults={
            "id": fresh.pk,
            "amount_micros": amount_micros,
            "created_by": actor.id,
            "created_at": now,
        },
    )
    if top_up.amount_micros != amount_micros:
        raise KeyReused("This idempotency key was used for another amount.")
    return top_up


def _customer_of(organisation: Organisation, now: datetime) -> str:
    known = PaymentCustomer.objects.filter(organisation=organisation).first()
    if known is None:
        customer_id = stripe_gateway.create_customer(
            organisation=organisation.public_id, name=organisation.name
        )
        known, _ = PaymentCustomer.objects.get_or_create(
            organisation=organisation, defaults={"customer_id": customer_id, "created_at": now}
        )
    return known.customer_id


def _check_payment(top_up: TopUp, session: CheckoutSession, now: datetime) -> None:
    currency = settings.FABRIC_CURRENCY
    agrees = (
        session.currency == currency
        and to_micros(session.amount_minor, currency=currency) == top_up.amount_micros
        and session.livemode is stripe_gateway.is_live()
        and session.payment_intent is not None
    )
    if agrees:
        return
    record_event(
        kind="alert.payment_mismatch",
        subject=top_up.public_id,
        actor=EXCHANGE.id,
        data={"session": session.id, "amount_minor": session.amount_minor},
        now=now,
    )
    raise PaymentMismatch("The payment is not what this top-up asked for.")


@transaction.atomic
def _credit(top_up: TopUp, session: CheckoutSession, now: datetime) -> None:
    sources = [before for before, after in TOP_UP_MOVES if after == TopUpState.PAID]
    moved = TopUp.objects.filter(pk=top_up.pk, state__in=sources).update(
        state=TopUpState.PAID,
        payment_intent=session.payment_intent,
        checkout_session=session.id,
        paid_at=now,
    )
    if not moved:
        return
    transfer = wallet.credit_cash(
        organisation=top_up.organisation,
        amount_micros=top_up.amount_micros,
        key=f"top-up:{top_up.public_id}",
        now=now,
    )
    record_event(
        kind="top_up.paid",
        subject=top_up.public_id,
        actor=EXCHANGE.id,
        organisations=[top_up.organisation.public_id],
        data={"amount_micros": str(top_up.amount_micros), "transfer": transfer.pk},
        now=now,
    )
