"""Embedded servers and supervised processes end with whoever started them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from deploy.local.processes import StartFailed, Supervisor, accepts_connections, free_port
from deploy.local.venv import ROOT


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", str, str, list[int]]]:
    """A process that started both servers and a child: it, the URLs, and all process ids."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.house.starter", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        owner_url, redis_url, pids = (process.stdout.readline().strip() for _ in range(3))
        yield process, owner_url, redis_url, [int(pid) for pid in pids.split()]
        process.kill()


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _wait_until_gone(pids: list[int], seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(_alive(pid) for pid in pids):
        time.sleep(0.05)
    return [pid for pid in pids if _alive(pid)]


def test_a_killed_starter_leaves_no_server_running(
    started: tuple["subprocess.Popen[str]", str, str, list[int]],
) -> None:
    """R-E5 (agent): `kill -9` of what started the servers ends the servers too."""
    process, owner_url, redis_url, pids = started
    with psycopg.connect(owner_url) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("fabric_owner",)
    with redis.Redis.from_url(redis_url) as client:
        assert client.ping()
    assert len(pids) == 3
    assert all(_alive(pid) for pid in pids)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert _wait_until_gone(pids, 10) == []


def test_ctrl_c_stops_all_that_was_started(
    started: tuple["subprocess.Popen[str]", str, str, list[int]],
) -> None:
    """R-E5 (agent): an interrupted starter stops its servers before it ends."""
    process, _owner_url, _redis_url, pids = started
    process.send_signal(signal.SIGINT)
    process.wait(20)
    assert [pid for pid in pids if _alive(pid)] == []


def test_servers_do_not_run_as_root(
    started: tuple["subprocess.Popen[str]", str, str, list[int]],
) -> None:
    _process, _owner_url, _redis_url, (valkey, postgres, _sleeper) = started
    for pid in (valkey, postgres):
        assert Path(f"/proc/{pid}").stat().st_uid != 0


def test_a_taken_port_gives_way_to_the_next_free_one() -> None:
    """R-E5 (page): a port that somebody listens on is passed over."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port < free_port(port) < port + 200


def test_a_child_that_ends_at_once_is_reported_with_its_last_words(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor, pytest.raises(StartFailed, match="no such option"):
        supervisor.start(
            "broken",
            [sys.executable, "-c", "import sys; sys.exit('no such option')"],
            ready=accepts_connections(1),
        )


def test_a_child_that_never_gets_ready_is_given_up(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        with pytest.raises(StartFailed, match=r"not ready after 0 s"):
            supervisor.start("idle", ["sleep", "60"], ready=lambda: False, timeout=0.2)
        pid = supervisor.children[0].process.pid
    assert not _alive(pid)


def test_a_child_that_may_restart_is_started_again(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        child = supervisor.start("agent", ["sleep", "60"], restarts=True)
        first = child.process.pid
        os.kill(first, signal.SIGKILL)
        child.process.wait()
        supervisor.check()
        assert child.process.pid != first
        assert _alive(child.process.pid)


def test_a_child_that_keeps_failing_is_not_restarted_for_ever(tmp_path: Path) -> None:
    with Supervisor(tmp_path, restart_pause=0) as supervisor:
        child = supervisor.start("broken", ["false"], restarts=True)
        for _ in range(5):
            child.process.wait()
            supervisor.check()
        child.process.wait()
        with pytest.raises(StartFailed, match="broken ended with 1"):
            supervisor.check()


def test_a_stopped_group_takes_its_grandchildren_along(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        child = supervisor.start("parent", ["sh", "-c", "sleep 61 & echo $!; wait"])
        deadline = time.monotonic() + 5
        while not child.log.read_text().strip() and time.monotonic() < deadline:
            time.sleep(0.02)
        grandchild = int(child.log.read_text())
        assert _alive(grandchild)
    assert _wait_until_gone([grandchild], 5) == []
