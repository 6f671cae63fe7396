"""A whole exchange on this machine: servers, control plane, payment stand-in and agents."""

import base64
import hashlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from deploy.local.processes import (
    Child,
    StartFailed,
    Supervisor,
    accepts_connections,
    free_port,
    run_to_end,
)
from deploy.local.servers import replace_database, start_servers
from deploy.local.venv import PYTHON, ROOT

DATABASE = "fabric"
TEMPLATE = "fabric_template"
WEB_PORT = 8000
PAYMENTS_PORT = 8400
_SCHEMA_SOURCES = ("migrations/*.py", "sql/*.sql", "models.py")
_APPS = ("fabric", "providers", "listings", "billing", "leases", "workloads")


class Progress:
    """Says what is going on, with the seconds since the start."""

    def __init__(self) -> None:
        self.started = time.monotonic()

    def say(self, text: str) -> None:
        """Print one line at once."""
        print(f"[{time.monotonic() - self.started:3.0f} s] {text}", flush=True)


@dataclass
class Deployment:
    """One exchange with its data under a folder; start it inside a `Supervisor`."""

    folder: Path
    supervisor: Supervisor
    progress: Progress
    collects_static: bool = False
    """Whether static files are served collected and compressed, as in production."""
    environment: dict[str, str] = field(default_factory=dict)
    cast: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where the pages are."""
        return self.environment["FABRIC_PUBLIC_URL"]

    def start(self, *, fresh: bool) -> None:
        """Start everything but the agents; `fresh` begins with an empty database."""
        self.progress.say("starting PostgreSQL and Valkey")
        addresses = start_servers(self.supervisor, self.folder, database=DATABASE)
        web, payments = free_port(WEB_PORT), free_port(PAYMENTS_PORT)
        self.environment = {
            **os.environ,
            **addresses.environment(),
            **self._secrets(),
            "DJANGO_SETTINGS_MODULE": "fabric.settings.local",
            "FABRIC_PUBLIC_URL": f"http://127.0.0.1:{web}",
            "FABRIC_PAYMENT_STANDIN_URL": f"http://127.0.0.1:{payments}",
            "STRIPE_SECRET_KEY": "",  # no key: the stand-in takes Stripe's place
            "FABRIC_COLLECTED_STATIC": str(self.collects_static),
            "FABRIC_STATIC_ROOT": str(self.folder / "staticfiles"),
            "PYTHONUNBUFFERED": "1",
        }
        self._prepare_database(fresh=fresh)
        if self.collects_static:
            self.progress.say("collecting and compressing static files")
            self.manage("collectstatic", "--no-input")
        self.progress.say("starting web, worker, beat and the payment stand-in")
        self._start_payments(payments)
        web_process = self._start_web(web)
        self.cast = json.loads(self.manage("create_demo_cast"))  # before sweeps ask for rules
        self._start_celery()
        self.supervisor.wait_until(web_process, self._is_ready, 60)
        self.progress.say(f"the control plane answers at {self.url}")

    def manage(self, *arguments: str, **extra: str) -> str:
        """Run a management command and return what it printed."""
        done = run_to_end(
            [str(PYTHON), "manage.py", *arguments],
            environment={**self.environment, **extra},
            folder=ROOT,
        )
        if done.returncode != 0:
            raise StartFailed(f"manage.py {' '.join(arguments)} failed:\n{done.stderr.strip()}")
        return done.stdout

    def _secrets(self) -> dict[str, str]:
        """Return this deployment's secrets, made once and kept beside its data."""
        path = self.folder / "secrets.json"
        if not path.exists():
            made = {
                "FABRIC_SECRET_KEY": secrets.token_urlsafe(64),
                "FABRIC_API_KEY_PEPPER": secrets.token_urlsafe(32),
                "FABRIC_SIGNING_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
                "STRIPE_WEBHOOK_SECRET": f"whsec_{secrets.token_hex(16)}",
            }
            path.touch(mode=0o600)
            path.write_text(json.dumps(made))
        known: dict[str, str] = json.loads(path.read_text())
        return known

    def _prepare_database(self, *, fresh: bool) -> None:
        """Bring the schema up to date as the owner; at once where it already is.

        A fresh exchange is a copy of a migrated template, which takes a second where migrating
        takes many.
        """
        owner_url = self.environment["DATABASE_OWNER_URL"]
        stamp = self.folder / "schema"
        wanted = f"{fresh} {_schema_fingerprint()}"
        if not stamp.exists() or stamp.read_text() != wanted:
            self.progress.say("migrating")
            stamp.unlink(missing_ok=True)
            if fresh:
                replace_database(owner_url, TEMPLATE, "template0")
            self._migrate(TEMPLATE if fresh else DATABASE)
            stamp.write_text(wanted)
        if fresh:
            replace_database(owner_url, DATABASE, TEMPLATE)

    def _migrate(self, database: str) -> None:
        owner_url = urlsplit(self.environment["DATABASE_OWNER_URL"])
        done = run_to_end(
            [str(PYTHON), "-m", "deploy.local.schema"],
            environment={
                **self.environment,
                "DJANGO_SETTINGS_MODULE": "fabric.settings.owner",
                "DATABASE_OWNER_URL": owner_url._replace(path=f"/{database}").geturl(),
            },
            folder=ROOT,
        )
        if done.returncode != 0:
            raise StartFailed(
                f"the database could not be migrated; --reset begins anew:\n{done.stderr.strip()}"
            )

    def _start_payments(self, port: int) -> None:
        self.supervisor.start(
            "payments",
            [
                *(str(PYTHON), "-m", "simulator.payments", "--port", str(port)),
                *("--webhook-url", f"{self.url}/webhooks/stripe/"),
                *("--secret", self.environment["STRIPE_WEBHOOK_SECRET"]),
                *("--state", str(self.folder / "payments.sqlite")),
            ],
            environment=self.environment,
            folder=ROOT,
            ready=accepts_connections(port),
        )

    def _start_web(self, port: int) -> Child:
        return self.supervisor.start(
            "web",
            [
                *(str(PYTHON), "-m", "gunicorn", "fabric.wsgi", "--bind", f"127.0.0.1:{port}"),
                *("--worker-class", "gthread", "--threads", "16", "--graceful-timeout", "3"),
                *("--access-logfile", "-", "--no-control-socket"),
            ],
            environment=self.environment,
            folder=ROOT,
            restarts=True,
        )

    def _start_celery(self) -> None:
        celery = [str(PYTHON), "-m", "celery", "-A", "fabric.celery", "--quiet"]
        self.supervisor.start(
            "worker",
            [
                *(*celery, "worker", "--pool=threads", "--concurrency=4", "--loglevel=INFO"),
                *("--without-gossip", "--without-mingle", "--hostname=demo@%h"),
            ],
            environment=self.environment,
            folder=ROOT,
            restarts=True,
        )
        self.supervisor.start(
            "beat",
            [
                *(*celery, "beat", "--loglevel=WARNING", "--pidfile="),
                *("--schedule", str(self.folder / "beat")),
            ],
            environment=self.environment,
            folder=ROOT,
            restarts=True,
        )

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/healthz/ready/", timeout=2) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def start_agent(self, name: str, command: list[str], extra: Mapping[str, str]) -> Child:
        """Start an agent process, restarted when it dies, as systemd would."""
        return self.supervisor.start(
            name,
            command,
            environment={**self.environment, **extra},
            folder=ROOT,
            restarts=True,
        )


def _schema_fingerprint() -> str:
    """Return a digest of everything the schema and the grants come from."""
    digest = hashlib.sha256()
    paths = {
        path for app in _APPS for pattern in _SCHEMA_SOURCES for path in (ROOT / app).rglob(pattern)
    }
    paths |= {ROOT / "requirements" / "runtime.txt", ROOT / "fabric" / "lib" / "models.py"}
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()
