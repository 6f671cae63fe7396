"""A machine with an agent for every test that asks for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.containers import why_no_podman
from tests.agent.machines import Machine


@pytest.fixture
def machine(live_server_url: str, tmp_path: Path) -> Iterator[Machine]:
    """A machine whose agent, and whatever it started, is gone when the test is over."""
    found = Machine(folder=tmp_path, url=live_server_url)
    yield found
    found.kill()


@pytest.fixture(scope="session")
def _working_podman() -> None:
    why = why_no_podman()
    if why:
        pytest.skip(why)
