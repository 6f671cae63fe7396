"""What `bin/test` does: every check that needs no database first, then the tests on servers."""

import argparse
import fcntl
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.processes import StartFailed, Supervisor
from deploy.local.servers import Addresses, data_folder, start_servers
from deploy.local.system_servers import lent_by_the_system
from deploy.local.venv import PYTHON, ROOT

_BIN = PYTHON.parent
_SERVER_VARIABLES = ("DATABASE_OWNER_URL", "DATABASE_URL", "REDIS_URL")
_TEMPLATES = "templates"


@dataclass(frozen=True)
class Check:
    """One command that must succeed."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def main() -> int:
    """Run what was asked for, say how it went in one line, and return the exit status."""
    asked, passed_on = _parse(sys.argv[1:])
    started = time.monotonic()
    data_folder("").mkdir(exist_ok=True)
    with (data_folder("test.lock")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = _run_everything(asked, passed_on)
    failed = [name for name, good in results.items() if not good]
    seconds = time.monotonic() - started
    if failed:
        print(f"bin/test: {', '.join(failed)} failed; {len(results)} checks in {seconds:.0f} s")
        return 1
    print(f"bin/test: all {len(results)} checks passed in {seconds:.0f} s")
    return 0


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="bin/test",
        description="Runs every check and all fast tests, on servers of its own unless "
        f"{', '.join(_SERVER_VARIABLES)} are all set.",
        epilog="Anything else, such as a path or -k WORD, goes to pytest and skips the checks.",
    )
    parser.add_argument("--full", action="store_true", help="the slow tests too")
    parser.add_argument(
        "--system",
        action="store_true",
        help="only the tests that touch the servers, on the PostgreSQL and Redis of this machine",
    )
    return parser.parse_known_args(arguments)


def _run_everything(asked: argparse.Namespace, passed_on: list[str]) -> dict[str, bool]:
    results: dict[str, bool] = {}
    if asked.system:
        with lent_by_the_system() as addresses:
            if addresses is None:
                print("No PostgreSQL and Redis that we may use run on the loopback here.")
                return results
            results["tests"] = _run_tests(addresses.environment(), ["-m", "database", *passed_on])
        return results
    with Supervisor(data_folder("test") / "logs") as supervisor:
        servers = _servers(supervisor)
        if not passed_on:
            checks = _checks(servers)
            with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
                for check, good in zip(checks, pool.map(_run_check, checks), strict=True):
                    results[check.name] = good
        marks = [] if asked.full or passed_on else ["-m", "not slow"]
        results["tests"] = _run_tests(servers, [*marks, *passed_on])
    return results


def _servers(supervisor: Supervisor) -> dict[str, str]:
    """Return the addresses that were given, or those of servers started for this run."""
    if all(os.environ.get(name) for name in _SERVER_VARIABLES):
        return {name: os.environ[name] for name in _SERVER_VARIABLES}
    print("Starting PostgreSQL and Valkey", flush=True)
    return _start_forgetful(supervisor).environment()


def _start_forgetful(supervisor: Supervisor) -> Addresses:
    """Start servers that keep nothing safe; if a crash broke what they kept, begin anew."""
    folder = data_folder("test")
    try:
        return start_servers(supervisor, folder, forgetful=True)
    except StartFailed:
        supervisor.stop_all()
        shutil.rmtree(folder / "postgres", ignore_errors=True)
        (folder / "postgres-password").unlink(missing_ok=True)
        return start_servers(supervisor, folder, forgetful=True)


def _checks(servers: Mapping[str, str]) -> list[Check]:
    """Return the checks, the longest first so that it does not run alone at the end."""
    testing = {**servers, "DJANGO_SETTINGS_MODULE": "fabric.settings.test"}
    production = {**servers, **production_environment()}
    tool = {name: str(_BIN / name) for name in ("ruff", "mypy", "lint-imports", "djlint")}
    manage = [str(PYTHON), "-W", "error", "manage.py"]
    return [
        Check("mypy", [tool["mypy"]], testing),
        Check("migrations", [*manage, "makemigrations", "--check", "--dry-run"], testing),
        Check("deployment", [*manage, "check", "--deploy", "--fail-level", "WARNING"], production),
        Check("imports", [tool["lint-imports"]], testing),
        Check("templates", [tool["djlint"], "--lint", "--quiet", _TEMPLATES]),
        Check("openapi", [str(PYTHON), "-m", "deploy.local.openapi", "--check"], testing),
        Check("requirements", [str(PYTHON), "-m", "tests.requirements_table", "--check"]),
        Check("ruff", [tool["ruff"], "check", "--quiet"]),
        Check("format", [tool["ruff"], "format", "--check", "--quiet"]),
    ]


def production_environment() -> dict[str, str]:
    """Return settings a production deployment could have; none of the values opens anything."""
    return {
        "DJANGO_SETTINGS_MODULE": "fabric.settings.production",
        "FABRIC_SECRET_KEY": secrets.token_urlsafe(64),
        "FABRIC_API_KEY_PEPPER": secrets.token_urlsafe(32),
        "FABRIC_SIGNING_KEY": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "FABRIC_ALLOWED_HOSTS": "exchange.example",
        "FABRIC_PUBLIC_URL": "https://exchange.example",
        "STRIPE_SECRET_KEY": "sk_live_of_nobody",
        "STRIPE_WEBHOOK_SECRET": "whsec_of_nobody",
    }


def _run_check(check: Check) -> bool:
    started = time.monotonic()
    done = subprocess.run(
        list(check.command),
        cwd=ROOT,
        env={**os.environ, **check.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    good = done.returncode == 0
    verdict = "ok    " if good else "FAILED"
    told = "" if good else f"{done.stdout.rstrip()}\n"
    print(f"{told}{verdict} {check.name} ({time.monotonic() - started:.1f} s)", flush=True)
    return good


def _run_tests(servers: Mapping[str, str], options: Sequence[str]) -> bool:
    """Run pytest, its output shown as it comes.

    On one process more than there are cores: a test often waits for its server or its agent.
    """
    processes = str((os.cpu_count() or 1) + 1)
    spread = [] if any(option.startswith("-n") for option in options) else ["-n", processes]
    done = subprocess.run(
        [str(PYTHON), "-m", "pytest", "-q", *spread, *options],
        cwd=ROOT,
        env={**os.environ, **servers},
        check=False,
    )
    return done.returncode == 0


def lines_that_differ(have: str, want: str, name: str) -> str:
    """Say where two texts part, for checks of generated files."""
    for number, (left, right) in enumerate(
        zip(have.splitlines(), want.splitlines(), strict=False), start=1
    ):
        if left != right:
            return f"{name}:{number}: has {left!r}, should have {right!r}"
    return f"{name}: has {len(have.splitlines())} lines, should have {len(want.splitlines())}"


def generated_is_current(path: Path, text: str, renew: str) -> int:
    """Compare a committed file with its generated text; 1 and a hint when it is out of date."""
    have = path.read_text() if path.exists() else ""
    if have == text:
        return 0
    name = str(path.relative_to(ROOT))
    print(f"{lines_that_differ(have, text, name)}\nRenew it with: {renew}")
    return 1
