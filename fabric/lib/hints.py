"""Hints to the workers: do this now rather than at the next sweep."""

import structlog
from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)


def hint_task(name: str, *ids: str) -> None:
    """Ask a worker, once this transaction has committed, to run the task `name` on some ids.

    The row is the queue: a hint that is lost costs the wait until the next sweep, so a broker that
    cannot be reached is logged and never undoes what was just committed.
    """

    def send() -> None:
        try:
            current_app.send_task(name, args=ids, retry=False, ignore_result=True)
        except OperationalError:
            log.warning("hint_not_sent", task=name, exc_info=True)

    transaction.on_commit(send)
