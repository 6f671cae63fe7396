"""What every test stands on: a database under the runtime role, a fixed `now`, named people."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import hypothesis
import pytest
import redis
from django.conf import settings
from pytest_django.live_server_helper import LiveServer
from pytest_django.plugin import DjangoDbBlocker

from deploy.local.processes import Child, Supervisor
from tests import databases
from tests.world import World, build_world

# A busy machine is slow, which says nothing about the property under test.
hypothesis.settings.register_profile(
    "tests", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what touches the servers, and refuse fixtures that truncate.

    The runtime role cannot truncate, and tests run as nobody else.
    """
    for item in items:
        marker = item.get_closest_marker("django_db")
        fixtures = set(getattr(item, "fixturenames", ()))
        if marker is not None or fixtures & {"db", "committed_db", "database_server", "world"}:
            item.add_marker(pytest.mark.database)
        asks = {"transactional_db", "live_server"} & fixtures
        if asks or (marker is not None and marker.kwargs.get("transaction")):
            raise pytest.UsageError(f"{item.nodeid}: use committed_db or live_server_url instead")


def pytest_configure() -> None:
    """Give each test process a Redis database of its own, counted from the one in REDIS_URL."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        base, _, number = os.environ["REDIS_URL"].rpartition("/")
        url = f"{base}/{int(number or 0) + int(worker.removeprefix('gw'))}"
        os.environ["REDIS_URL"] = settings.REDIS_URL = settings.CELERY_BROKER_URL = url
        settings.CACHES["default"]["LOCATION"] = url


@pytest.fixture(scope="session")
def database_server() -> databases.Server:
    """The PostgreSQL server under test, with both roles there."""
    server = databases.Server.from_environment()
    databases.ensure_runtime_role(server)
    return server


@pytest.fixture(scope="session")
def django_db_setup(
    database_server: databases.Server, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Copy the migrated template for this process and connect as the runtime role."""
    name = database_server.copy_for(os.environ.get("PYTEST_XDIST_WORKER", ""))
    with django_db_blocker.unblock():
        databases.ensure_template(database_server)
        databases.restore(database_server, name)
        databases.use_database(database_server, name)
    yield
    with django_db_blocker.unblock():
        databases.drop(database_server, name)


@pytest.fixture
def committed_db(
    django_db_setup: None, database_server: databases.Server, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Let a test commit, for races, threads and processes; then restore from the template."""
    name = database_server.copy_for(os.environ.get("PYTEST_XDIST_WORKER", ""))
    with django_db_blocker.unblock():
        yield
        databases.restore(database_server, name)


@pytest.fixture
def live_server_url(committed_db: None) -> Iterator[str]:
    """Serve the control plane on loopback, as the runtime role, and return its address."""
    server = LiveServer("127.0.0.1")
    yield server.url
    server.stop()


@pytest.fixture
def celery_worker_process(committed_db: None, tmp_path: Path) -> Iterator[Child]:
    """Run a real worker with the schedule of its sweeps, on this test's database and broker."""
    with closing(redis.Redis.from_url(settings.REDIS_URL)) as broker:
        broker.flushdb()  # what an earlier test sent names rows that are gone
    log = tmp_path / "worker.log"
    with Supervisor(tmp_path) as supervisor:
        yield supervisor.start(
            "worker",
            [
                *(sys.executable, "-m", "celery", "-A", "fabric.celery", "worker"),
                *("--pool=threads", "--concurrency=2", "--without-gossip", "--without-mingle"),
                *("--beat", f"--schedule={tmp_path / 'beat'}", "--loglevel=INFO"),
            ],
            environment={**os.environ, "DJANGO_SETTINGS_MODULE": "fabric.settings.test"},
            ready=lambda: " ready." in log.read_text(),
            timeout=60,
        )


@pytest.fixture
def now() -> datetime:
    """The instant at which tests happen unless they say otherwise."""
    return datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture
def world(request: pytest.FixtureRequest) -> World:
    """Alice, Bob, Carol, Dave and Olga, in a transaction or, with `committed_db`, for real."""
    request.getfixturevalue("committed_db" if "committed_db" in request.fixturenames else "db")
    return build_world()
