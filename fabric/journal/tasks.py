"""Background work of the journal; safe beside itself."""

from celery import shared_task

from fabric.journal.services.idempotency import forget_expired_keys
from fabric.lib.clock import utc_now

CHUNK = 5_000


@shared_task(name="journal.forget_expired_keys_task")
def forget_expired_keys_task() -> int:
    """Delete idempotency keys whose time is over, in chunks, so that no transaction is long."""
    forgotten = 0
    while done := forget_expired_keys(now=utc_now(), limit=CHUNK):
        forgotten += done
    return forgotten
