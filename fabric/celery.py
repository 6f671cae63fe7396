"""The Celery application and the schedule of its sweeps."""

import os

from celery import Celery
from celery.schedules import crontab
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabric.settings.local")
app = Celery("fabric")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# Every sweep looks for due rows and is safe beside itself; one line each.
SWEEPS = (
    "providers.sweep_challenges_task",
    "providers.sweep_liveness_task",
    "listings.sweep_checks_task",
    "leases.sweep_task",
    "leases.probe_task",
    "billing.sweep_stripe_events_task",
    "billing.settle_due_task",
)
# Once a day, at a quiet hour, UTC.
NIGHTLY = ("billing.prove_books_task", "journal.forget_expired_keys_task")


@app.on_after_configure.connect
def schedule_sweeps(sender: Celery, **_: object) -> None:
    """Set the schedule once settings are read; importing this module must not need them."""
    seconds = settings.FABRIC_SWEEP_SECONDS
    sweeps = {
        name: {"task": name, "schedule": seconds, "options": {"expires": 10 * seconds}}
        for name in SWEEPS
    }
    nightly = {name: {"task": name, "schedule": crontab(hour=3, minute=7)} for name in NIGHTLY}
    sender.conf.beat_schedule = {**sweeps, **nightly}
