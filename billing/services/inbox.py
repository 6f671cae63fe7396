"""The inbox of webhooks: stored once, worked off by whoever claims them, tried again on failure.

An event counts as done only after its work is: marking it seen first would lose the money of
every event whose processing fails.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from billing.models import StripeEvent
from billing.services import topups
from billing.stripe_gateway import BadWebhook, WebhookEvent
from fabric.accounts.domain.actors import EXCHANGE, Actor
from fabric.journal.services.audit import record_audit
from fabric.journal.services.events import record_event
from fabric.lib.hints import hint_task

_SESSION_EVENTS = frozenset(
    {
        "checkout.session.completed",
        "checkout.session.async_payment_succeeded",
        "checkout.session.async_payment_failed",
        "checkout.session.expired",
    }
)
_CLAIM = timedelta(seconds=60)  # longer than every outside call an event can lead to
_LONGEST_WAIT = timedelta(hours=1)
ALERT_AFTER_ATTEMPTS = 8


@transaction.atomic
def receive_event(*, event: WebhookEvent, now: datetime) -> bool:
    """Store a verified event and have it worked off; False if it was here before, no error.

    Raises `BadWebhook` for one we would act on that does not say what it is about: stored, it
    would be tried again for ever.
    """
    if event.kind in _SESSION_EVENTS and not event.object_id:
        raise BadWebhook("The event names no session in data.object.id.")
    _, is_new = StripeEvent.objects.get_or_create(
        id=event.id,
        defaults={
            "kind": event.kind,
            "payload": event.payload,
            "received_at": now,
            "next_attempt_at": now,
        },
    )
    if is_new:
        hint_task("billing.process_stripe_event_task", event.id)
    return is_new


def events_due(*, now: datetime, limit: int) -> list[str]:
    """Return the ids of events that wait to be worked off, oldest first."""
    return list(
        StripeEvent.objects.filter(processed_at__isnull=True, next_attempt_at__lte=now)
        .order_by("next_attempt_at")
        .values_list("pk", flat=True)[:limit]
    )


def process_event(*, event_id: str, now: datetime) -> bool:
    """Work off one event if it is due and nobody else is at it; return whether it is done.

    No transaction stays open while the processor is asked. A claim that dies with its worker
    lapses, and the next sweep tries again.
    """
    claimed = StripeEvent.objects.filter(
        pk=event_id, processed_at__isnull=True, next_attempt_at__lte=now
    ).update(next_attempt_at=now + _CLAIM, attempts=F("attempts") + 1)
    if not claimed:
        return False
    event = StripeEvent.objects.get(pk=event_id)
    try:
        _apply(event, now)
    except Exception as error:
        _put_back(event, repr(error), now)
        raise
    StripeEvent.objects.filter(pk=event_id).update(processed_at=now, failure="")
    return True


@transaction.atomic
def replay_event(*, actor: Actor, event: StripeEvent, now: datetime) -> StripeEvent:
    """Have an event worked off again, also one that is done: what it pays for is credited once.

    For an operator who has put right why it failed, or who doubts that it was.
    """
    actor.require_operator()
    before = {"processed": event.processed_at is not None, "failure": event.failure[:200]}
    StripeEvent.objects.filter(pk=event.pk).update(
        processed_at=None, next_attempt_at=now, failure=""
    )
    event.refresh_from_db()
    record_audit(
        actor=actor.id,
        action="payment_event.was_replayed",
        subject=event.pk[:40],
        before=before,
        after={"processed": False},
        now=now,
    )
    hint_task("billing.process_stripe_event_task", event.pk)
    return event


def _apply(event: StripeEvent, now: datetime) -> None:
    if event.kind in _SESSION_EVENTS:
        topups.fulfil(session_id=event.payload["data"]["object"]["id"], now=now)


@transaction.atomic
def _put_back(event: StripeEvent, failure: str, now: datetime) -> None:
    wait = min(timedelta(seconds=2**event.attempts), _LONGEST_WAIT)
    StripeEvent.objects.filter(pk=event.pk).update(
        next_attempt_at=now + wait, failure=failure[:2_000]
    )
    if event.attempts == ALERT_AFTER_ATTEMPTS:
        record_event(
            kind="alert.payment_event_failing",
            subject=event.pk[:40],
            actor=EXCHANGE.id,
            data={"kind": event.kind, "failure": failure[:500]},
            now=now,
        )
