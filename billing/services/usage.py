"""Recording what one window metered: the one row both sides' money comes from."""

from datetime import datetime, timedelta
from typing import ClassVar

from django.db import transaction

from billing.domain.amounts import check_amount
from billing.models import Agreement, Reservation, Terms, UsageRecord
from billing.services.agreements import parties_of
from billing.services.escrow import lock_agreement
from billing.services.ledger import MoreThanReserved
from fabric.journal.services.events import record_event
from fabric.lib.clock import window_bounds
from fabric.lib.errors import FieldError, InvalidInput, WrongState


class WindowAlreadyRecorded(WrongState):
    """The window has a record made from other evidence; the first one stands."""

    code: ClassVar[str] = "WINDOW_ALREADY_RECORDED"


@transaction.atomic
def record_usage(
    *,
    agreement: Agreement,
    terms: Terms,
    window_index: int,
    starts_at: datetime,
    ends_at: datetime,
    ready_seconds: int,
    evidence: str,
    meter_party: str,
    now: datetime,
) -> UsageRecord:
    """Advance the agreement's counter by a window's ready seconds and charge that line.

    The same window with the same evidence again returns the first record. Windows are recorded in
    order; one whose reading will never come is voided first, because its seconds would otherwise
    still be possible and every later reservation rests on that. `evidence` is the hex digest of
    the signed batch, `meter_party` the public id of who metered.
    """
    lock_agreement(agreement)
    known = agreement.usage_records.filter(window_index=window_index).first()
    if known is not None:
        if known.evidence == evidence:
            return known
        raise WindowAlreadyRecorded("This window was already recorded from other evidence.")
    _check_window(terms, window_index, starts_at, ends_at, ready_seconds)
    open_reservations = agreement.reservations.filter(
        voided_at__isnull=True, record__isnull=True, window_index__lte=window_index
    )
    reservation = open_reservations.filter(window_index=window_index).first()
    if (
        open_reservations.exclude(window_index=window_index).exists()
        or agreement.usage_records.filter(window_index__gt=window_index).exists()
    ):
        raise WrongState("An earlier window is still open, or a later one was recorded.")

    start, end = agreement.counter, agreement.counter + ready_seconds
    amount = terms.rate.line_amount(start, end)
    reserved = reservation.pending if reservation else None
    if amount > (reserved.amount_micros if reserved else 0):
        raise MoreThanReserved(
            "This window costs more than was reserved for it.",
            metadata={"amount_micros": str(amount)},
        )
    record = UsageRecord.objects.create(
        agreement=agreement,
        terms=terms,
        window_index=window_index,
        starts_at=starts_at,
        ends_at=ends_at,
        counter_start=start,
        counter_end=end,
        amount_micros=amount,
        pending=reserved,
        disputable_until=max(now, ends_at) + timedelta(seconds=terms.dispute_window_seconds),
        evidence=evidence,
        meter_party=meter_party,
        recorded_at=now,
    )
    if reservation is not None:
        Reservation.objects.filter(pk=reservation.pk).update(record=record)
    Agreement.objects.filter(pk=agreement.pk).update(counter=end)
    agreement.counter = end
    record_event(
        kind="usage.recorded",
        subject=record.public_id,
        actor=meter_party,
        organisations=parties_of(agreement),
        data={"amount_micros": str(amount), "quantity": [start, end]},
        now=now,
    )
    return record


def _check_window(
    terms: Terms, window_index: int, starts_at: datetime, ends_at: datetime, ready_seconds: int
) -> None:
    first, last = window_bounds(window_index, window_seconds=terms.window_seconds)
    if not first <= starts_at <= ends_at <= last:
        raise InvalidInput(
            "The reading does not lie within its window.",
            errors=(
                FieldError(
                    "starts_at", "outside the window", f"{first.isoformat()} to {last.isoformat()}"
                ),
            ),
        )
    check_amount(
        ready_seconds,
        field="ready_seconds",
        at_least=0,
        at_most=int((ends_at - starts_at).total_seconds()),
    )
