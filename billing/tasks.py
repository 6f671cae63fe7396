"""Background work of billing. The rows are the queue; these run safely beside themselves."""

import structlog
from celery import shared_task

from billing.services import agreements, inbox, proof, settlement
from fabric.lib.clock import utc_now

SWEEP_LIMIT = 200
HINT_LASTS_SECONDS = 30  # The next sweep sends it again; stale ones must not pile up.
ALARM_AFTER_SECONDS = 600
log = structlog.get_logger(__name__)


@shared_task(name="billing.process_stripe_event_task")
def process_stripe_event_task(event_id: str) -> None:
    """Work off one webhook now, because it has just arrived."""
    inbox.process_event(event_id=event_id, now=utc_now())


@shared_task(name="billing.sweep_stripe_events_task")
def sweep_stripe_events_task() -> int:
    """Send out every webhook that waits; each is a task, so that one cannot hold up the rest."""
    due = inbox.events_due(now=utc_now(), limit=SWEEP_LIMIT)
    for event_id in due:
        process_stripe_event_task.apply_async(args=(event_id,), expires=HINT_LASTS_SECONDS)
    return len(due)


@shared_task(name="billing.settle_due_task")
def settle_due_task() -> int:
    """Settle one chunk of due lines, then close agreements that this finished."""
    now = utc_now()
    waited = settlement.longest_wait_seconds(now=now)
    if waited > ALARM_AFTER_SECONDS:
        log.error("settlement_is_late", oldest_seconds=waited)
    settled = settlement.settle_due(now=now)
    agreements.close_due(now=now)
    return settled


@shared_task(name="billing.prove_books_task")
def prove_books_task() -> int:
    """Prove the books from their rows; return how many statements about them do not hold."""
    return len(proof.prove_books(now=utc_now()))
