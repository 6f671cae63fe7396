"""`bin/demo` gives way to taken ports, starts warm, and leaves nothing behind however it ends."""

import os
import re
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from deploy.local.venv import PYTHON, ROOT

pytestmark = pytest.mark.slow
_START_SECONDS = 240
_MARK = "FABRIC_TEST_MARK"


class Demo:
    """A running `bin/demo` whose processes all carry a mark in their environment."""

    def __init__(self, folder: Path) -> None:
        self.mark = uuid.uuid4().hex
        self.output = folder / "output"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [str(PYTHON), "bin/demo", "--data", str(folder / "data")],
                cwd=ROOT,
                env={**_bare_environment(), _MARK: self.mark},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait_for(self, pattern: str) -> str:
        """Return the first match in what it printed."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            found = re.search(pattern, self.output.read_text())
            if found:
                return found.group(1)
            assert self.process.poll() is None, self.output.read_text()
            time.sleep(0.1)
        raise AssertionError(f"no {pattern} in: {self.output.read_text()}")

    def left_behind(self, seconds: float = 25) -> list[str]:
        """Return what still runs of all that was started, after giving it a moment to end."""
        deadline = time.monotonic() + seconds
        while (running := _marked(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.2)
        return running


def _bare_environment() -> dict[str, str]:
    """Return our environment without what tests set for themselves."""
    drop = ("DATABASE", "REDIS", "FABRIC_", "DJANGO_", "STRIPE_", "PYTEST_")
    return {name: value for name, value in os.environ.items() if not name.startswith(drop)}


def _marked(mark: str) -> list[str]:
    running = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{_MARK}={mark}".encode() in (process / "environ").read_bytes():
                running.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return running


@contextmanager
def _demo(folder: Path) -> Iterator[Demo]:
    demo = Demo(folder)
    try:
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.process.send_signal(signal.SIGINT)
        demo.process.wait(60)


def test_a_killed_demo_leaves_nothing_and_starts_warm_again(tmp_path: Path) -> None:
    """R-E5 (page, agent): `kill -9` ends web, worker, beat, servers and agents too."""
    with closing(socket.socket()) as taken:
        try:
            taken.bind(("127.0.0.1", 8000))
            taken.listen()
        except OSError:
            pass  # somebody else has it, which serves as well
        with _demo(tmp_path) as demo:
            url = demo.wait_for(r"answers at (http://127\.0\.0\.1:\d+)")
            assert not url.endswith(":8000")
            assert httpx.get(f"{url}/", timeout=20).status_code == 200
            demo.wait_for(r"(nine nodes prove)")
            assert len(_marked(demo.mark)) >= 8
            demo.process.kill()
            demo.process.wait()
            assert demo.left_behind() == []
    with _demo(tmp_path) as demo:
        url = demo.wait_for(r"answers at (http://127\.0\.0\.1:\d+)")
        assert "migrating" not in demo.output.read_text()
        assert httpx.get(f"{url}/catalogue/", timeout=20).status_code == 200
        demo.process.send_signal(signal.SIGINT)
        assert demo.process.wait(60) == 0
        assert demo.left_behind() == []
        assert "stopped all it had started" in demo.output.read_text()


def test_two_demos_do_not_share_a_folder(tmp_path: Path) -> None:
    with _demo(tmp_path) as first:
        first.wait_for(r"(starting PostgreSQL)")
        second = subprocess.run(
            [str(PYTHON), "bin/demo", "--data", str(tmp_path / "data")],
            cwd=ROOT,
            env=_bare_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.returncode == 1
        assert "stop it first" in second.stderr
