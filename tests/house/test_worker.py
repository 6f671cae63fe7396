"""The fixture that end-to-end tests stand on: a real worker on the test's own database."""

import time

from deploy.local.processes import Child
from fabric.celery import SWEEPS
from tests.world import World


def test_a_real_worker_runs_every_sweep_of_the_schedule(
    celery_worker_process: Child, world: World
) -> None:
    """R-E5 (agent): each sweep is registered and succeeds on an exchange with nothing to do."""
    deadline = time.monotonic() + 40
    missing = set(SWEEPS)
    while missing and time.monotonic() < deadline:
        log = celery_worker_process.log.read_text()
        missing = {name for name in SWEEPS if not _succeeded(name, log)}
        time.sleep(0.2)
    assert missing == set()
    assert "Traceback" not in celery_worker_process.log.read_text()


def _succeeded(name: str, log: str) -> bool:
    return any(f"Task {name}[" in line and "succeeded" in line for line in log.splitlines())
