"""Celery tasks of this app: they read the clock, call a service, and are safe beside themselves."""

from celery import shared_task

from fabric.lib.clock import utc_now
from leases.services import lifecycle, probing


@shared_task(name="leases.sweep_task", ignore_result=True)
def sweep_task() -> int:
    """Advance every lease that is due."""
    return lifecycle.sweep(now=utc_now())


@shared_task(name="leases.probe_task", ignore_result=True)
def probe_task() -> int:
    """Look at every workload that is due, from outside."""
    return probing.probe_due(now=utc_now())
