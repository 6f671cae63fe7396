"""The payment stand-in as a real process, told where to send its webhooks."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from csp.constants import SELF
from pytest_django import Settings

ROOT = Path(__file__).resolve().parents[1]
SECRET = "whsec_of_the_tests"


@dataclass
class StandInProcess:
    """A stand-in that can be stopped and started again over the same state."""

    webhook_url: str
    state: Path
    port: int = 0
    process: "subprocess.Popen[str] | None" = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "simulator.payments",
                "--port",
                str(self.port),
                "--webhook-url",
                self.webhook_url,
                "--secret",
                SECRET,
                "--state",
                str(self.state),
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONWARNINGS": ""},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=10)
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process = None

    def act(self, session_id: str, act: str) -> httpx.Response:
        """Press a button on the hosted page."""
        page = f"{self.url}/checkout/{session_id}"
        return httpx.post(page, data={"act": act}, timeout=10)


@pytest.fixture(scope="session")
def shared_standin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandInProcess]:
    """One process for the whole session; starting it costs more than most tests."""
    nobody = "http://127.0.0.1:9/webhooks/stripe/"
    yield from _run(nobody, tmp_path_factory.mktemp("standin") / "payments.sqlite")


@pytest.fixture
def standin(shared_standin: StandInProcess, settings: Settings) -> StandInProcess:
    """A stand-in that others use too, and whose webhooks nobody receives."""
    return _pay_through(shared_standin, settings)


@pytest.fixture
def own_standin(settings: Settings, tmp_path: Path) -> Iterator[StandInProcess]:
    """A stand-in for a test that stops it."""
    for started in _run("http://127.0.0.1:9/webhooks/stripe/", tmp_path / "payments.sqlite"):
        yield _pay_through(started, settings)


@pytest.fixture
def connected_standin(
    live_server_url: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StandInProcess]:
    """A stand-in that sends its webhooks to the control plane of this test, workers included."""
    address = f"{live_server_url}/webhooks/stripe/"
    settings.FABRIC_PUBLIC_URL = live_server_url  # where a paid buyer is led back to
    for started in _run(address, tmp_path / "payments.sqlite"):
        monkeypatch.setenv("FABRIC_PAYMENT_STANDIN_URL", started.url)
        monkeypatch.setenv("STRIPE_WEBHOOK_SECRET", SECRET)
        yield _pay_through(started, settings)


def _run(webhook_url: str, state: Path) -> Iterator[StandInProcess]:
    started = StandInProcess(webhook_url=webhook_url, state=state)
    started.start()
    yield started
    started.stop()


def _pay_through(standin: StandInProcess, settings: Settings) -> StandInProcess:
    settings.FABRIC_PAYMENT_STANDIN_URL = standin.url
    settings.STRIPE_SECRET_KEY = ""
    settings.STRIPE_WEBHOOK_SECRET = SECRET
    rules = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    payment_page = {"form-action": [SELF, standin.url]}
    settings.CONTENT_SECURITY_POLICY = {"DIRECTIVES": {**rules, **payment_page}}
    return standin
