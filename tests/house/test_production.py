"""Production settings refuse what only demos and tests may have, and a missing secret."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local.checks import production_environment
from deploy.local.venv import ROOT


def _start(changes: dict[str, str | None], *command: str) -> "subprocess.CompletedProcess[str]":
    """Load the production settings in a process of their own, with some variables changed."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FABRIC_")},
        **production_environment(),
        "DATABASE_URL": "postgres://runtime@127.0.0.1:5432/fabric",
        "REDIS_URL": "redis://127.0.0.1:6379/0",
    }
    for name, value in changes.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    return subprocess.run(
        [sys.executable, *(command or ("-c", "import django; django.setup()"))],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_complete_settings_start() -> None:
    started = _start({})
    assert (started.returncode, started.stderr) == (0, "")


def test_static_files_are_collected_with_their_names_and_compressed(tmp_path: Path) -> None:
    """What a deployment serves: each file under its content's name, and a smaller one beside it."""
    changes: dict[str, str | None] = {"FABRIC_STATIC_ROOT": str(tmp_path)}
    done = _start(changes, "manage.py", "collectstatic", "--no-input", "--verbosity=0")
    assert (done.returncode, done.stderr) == (0, "")
    names = json.loads((tmp_path / "staticfiles.json").read_text())["paths"]
    for name in ("fabric/app.css", "vendor/bootstrap/bootstrap.min.css", "vendor/htmx/htmx.min.js"):
        kept = tmp_path / names[name]
        assert all(
            kept.with_name(f"{kept.name}.{kind}").stat().st_size < kept.stat().st_size / 2
            for kind in ("gz", "br")
        )


@pytest.mark.parametrize(
    "name",
    [
        "FABRIC_SECRET_KEY",
        "FABRIC_API_KEY_PEPPER",
        "FABRIC_SIGNING_KEY",
        "DATABASE_URL",
        "REDIS_URL",
        "STRIPE_SECRET_KEY",
        "STRIPE_WEBHOOK_SECRET",
    ],
)
def test_a_missing_secret_stops_the_start(name: str) -> None:
    started = _start({name: None})
    assert started.returncode != 0
    assert name in started.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FABRIC_ALLOW_SIMULATED", "true"),
        ("FABRIC_ALLOW_UNISOLATED", "true"),
        ("FABRIC_PAYMENT_STANDIN_URL", "http://127.0.0.1:9000"),
        ("FABRIC_PUBLIC_URL", "http://exchange.example"),
    ],
)
def test_what_is_for_demos_stops_the_start(name: str, value: str) -> None:
    """R-B2 (agent): simulated nodes, unisolated leases and the stand-in are not for production."""
    started = _start({name: value})
    assert started.returncode != 0
    assert name in started.stderr
