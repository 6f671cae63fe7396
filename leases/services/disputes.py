"""Disputing a reading: that window's line is held, and nothing else, until somebody rules."""

from datetime import datetime

from django.db import transaction

from billing.models import UsageRecord
from billing.services import disputes as lines
from fabric.accounts.domain.actors import EXCHANGE, Actor
from fabric.accounts.domain.roles import Right
from fabric.journal.services.audit import record_audit
from fabric.lib.errors import DomainError, FieldError, InvalidInput, NotAllowed, WrongState
from leases.access import side_of
from leases.domain.states import WHOLE_BPS, DisputeState, Side
from leases.models import Dispute, Reading
from leases.services.transitions import tell
from providers.services.observations import record_observation

MAX_STATEMENT = 4000


class DisputeWindowClosed(DomainError):
    """The window in which this reading could be disputed is over, or its line is settled."""

    code = "DISPUTE_WINDOW_CLOSED"


class AlreadyDisputed(DomainError):
    """The reading has a dispute; one submission decides."""

    code = "ALREADY_DISPUTED"


class NothingToHold(DomainError):
    """The reading's line is zero: there is no amount to hold."""

    code = "NOTHING_TO_HOLD"


@transaction.atomic
def open_dispute(*, actor: Actor, reading: Reading, statement: str, now: datetime) -> Dispute:
    """Dispute a reading for one of its two sides; its line is held from now on.

    Raises DisputeWindowClosed where settlement took the line first.
    """
    side = side_of(actor, reading.lease)
    if side is None:
        raise NotAllowed("Only the buyer and the provider of a lease dispute its readings.")
    actor.require(Right.DISPUTE)
    words = _read_text(statement, field="statement")
    return _open(reading=reading, side=side, actor=actor, statement=words, now=now)


def contest_by_rule(*, reading: Reading, statement: str, now: datetime) -> Dispute | None:
    """Hold a line that the terms say is contested by itself; None where there is nothing to hold.

    Nobody loses by it: the line waits for a ruling instead of settling.
    """
    record = reading.usage_record
    if record is None or record.amount_micros == 0:
        return None
    return _open(reading=reading, side=Side.EXCHANGE, actor=EXCHANGE, statement=statement, now=now)


@transaction.atomic
def rule(*, actor: Actor, dispute: Dispute, stands_bps: int, ruling: str, now: datetime) -> Dispute:
    """Decide how much of the disputed line stands, in whole basis points, and say why."""
    actor.require_operator()
    if type(stands_bps) is not int or not 0 <= stands_bps <= WHOLE_BPS:
        raise InvalidInput(
            "The ruling cannot be read.",
            errors=(FieldError("stands_bps", "not a share", "a whole number from 0 to 10,000"),),
        )
    words = _read_text(ruling, field="ruling")
    _close(
        dispute=dispute,
        state=DisputeState.RULED,
        stands_bps=stands_bps,
        ruling=words,
        ruled_by=actor.id,
        now=now,
    )
    lines.resolve_record(record=_record(dispute), stands_bps=stands_bps, now=now)
    _write_down(
        dispute,
        actor,
        "dispute.was_ruled",
        now,
        reason=words,
        after={"state": DisputeState.RULED, "stands_bps": stands_bps},
    )
    if dispute.opened_side != Side.PROVIDER:
        record_observation(
            node=dispute.lease.node,
            kind="dispute_ruled",
            value=stands_bps / WHOLE_BPS,
            evidence=dispute.public_id,
            counterparty=dispute.lease.organisation.public_id,
            now=now,
        )
    return dispute


@transaction.atomic
def withdraw(*, actor: Actor, dispute: Dispute, now: datetime) -> Dispute:
    """Take a dispute back; its line goes its way as if nothing had been said."""
    side = side_of(actor, dispute.lease)
    if side is None or side != dispute.opened_side:
        raise NotAllowed("Only the side that opened a dispute withdraws it.")
    actor.require(Right.DISPUTE)
    _close(dispute=dispute, state=DisputeState.WITHDRAWN, now=now)
    lines.release_record(record=_record(dispute), now=now)
    _write_down(
        dispute,
        actor,
        "dispute.was_withdrawn",
        now,
        after={"state": DisputeState.WITHDRAWN},
    )
    return dispute


def _open(*, reading: Reading, side: Side, actor: Actor, statement: str, now: datetime) -> Dispute:
    record = reading.usage_record
    if record is None or record.amount_micros == 0:
        raise NothingToHold("Nothing was charged for this window, so there is nothing to hold.")
    # The hold comes first: it is the compare-and-set that settlement and other disputes race with.
    held = lines.hold_record(record=record, now=now)
    if Dispute.objects.filter(reading=reading).exists():
        raise AlreadyDisputed("This reading was disputed before; one submission decides.")
    if not held:
        raise DisputeWindowClosed(
            "This reading can no longer be disputed: its window is over.",
            suggestion="Later claims go to support with the reading's id.",
        )
    dispute = Dispute.objects.create(
        lease=reading.lease,
        reading=reading,
        opened_side=side,
        opened_by=actor.id,
        statement=statement,
        opened_at=now,
    )
    _write_down(
        dispute,
        actor,
        "dispute.was_opened",
        now,
        reason=statement,
        after={"state": DisputeState.OPEN, "side": side},
    )
    return dispute


def _close(*, dispute: Dispute, state: DisputeState, now: datetime, **changes: object) -> None:
    """Move an open dispute to its end; whoever is second finds it closed."""
    moved = Dispute.objects.filter(pk=dispute.pk, state=DisputeState.OPEN).update(
        state=state, closed_at=now, **changes
    )
    if not moved:
        raise WrongState("The dispute is closed.")
    dispute.refresh_from_db()


def _record(dispute: Dispute) -> UsageRecord:
    record = dispute.reading.usage_record
    if record is None:
        raise RuntimeError(f"{dispute.public_id} is about a reading without a line")
    return record


def _write_down(
    dispute: Dispute,
    actor: Actor,
    kind: str,
    now: datetime,
    *,
    after: dict[str, object],
    reason: str = "",
) -> None:
    record_audit(
        actor=actor.id,
        action=kind,
        subject=dispute.public_id,
        reason=reason,
        before=None if kind == "dispute.was_opened" else {"state": DisputeState.OPEN},
        after=after,
        now=now,
    )
    tell(
        lease=dispute.lease,
        kind=kind,
        actor=actor,
        now=now,
        data={"dispute": dispute.public_id, "reading": dispute.reading.public_id, **after},
    )


def _read_text(text: str, *, field: str) -> str:
    words = text.strip()
    if not words or len(words) > MAX_STATEMENT or "\x00" in words:
        raise InvalidInput(
            "Say in words what was wrong.",
            errors=(FieldError(field, "empty or too long", f"1 to {MAX_STATEMENT:,} characters"),),
        )
    return words
