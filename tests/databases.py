"""Databases of the tests: one migrated template, and a copy of it for every worker.

The owner role migrates the template once per state of the migrations; each test process copies
it and connects as the runtime role, which owns nothing. A test that commits gets its copy
replaced afterwards, because the runtime role cannot truncate and nobody should.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from environs import Env
from psycopg import sql

from deploy.local.servers import drop_database

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_RUNTIME_ROLE = "fabric_runtime"
_SCHEMA_SOURCES = (
    "**/migrations/*.py",
    "**/sql/*.sql",
    "**/models.py",
    "**/models/*.py",
    "fabric/journal/management/commands/grant_runtime_role.py",
    "requirements/runtime.txt",
)


@dataclass(frozen=True)
class Server:
    """The PostgreSQL server of the tests and the two roles used on it."""

    host: str
    port: int
    owner: str
    owner_password: str
    runtime: str
    runtime_password: str
    base_name: str

    @classmethod
    def from_environment(cls) -> "Server":
        """Read both URLs; without an owner's, `DATABASE_URL` names the owner.

        Then the runtime role is ours to make (see `ensure_runtime_role`).
        """
        env = Env()
        runtime: dict[str, Any] = dict(env.dj_db_url("DATABASE_URL"))
        if "DATABASE_OWNER_URL" in os.environ:
            owner: dict[str, Any] = dict(env.dj_db_url("DATABASE_OWNER_URL"))
            role, password = runtime["USER"], runtime["PASSWORD"]
        else:
            owner, role, password = runtime, DEFAULT_RUNTIME_ROLE, DEFAULT_RUNTIME_ROLE
        return cls(
            host=owner["HOST"],
            port=int(owner["PORT"] or 5432),
            owner=owner["USER"],
            owner_password=owner["PASSWORD"],
            runtime=role,
            runtime_password=password,
            base_name=owner["NAME"],
        )

    @property
    def template(self) -> str:
        """The database that is migrated and copied, never used."""
        return f"test_{self.base_name}_template"

    def copy_for(self, worker: str) -> str:
        """Return the name of the database of one test process."""
        return f"test_{self.base_name}_{worker}" if worker else f"test_{self.base_name}"

    @contextmanager
    def as_owner(self) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
        """Connect to the maintenance database as the owner, outside any transaction."""
        with psycopg.connect(
            host=self.host,
            port=self.port,
            user=self.owner,
            password=self.owner_password,
            dbname="postgres",
            autocommit=True,
        ) as connection:
            yield connection

    def url(self, database: str, *, owner: bool = False) -> str:
        """Return the address of a database for a process of its own."""
        user, password = (
            (self.owner, self.owner_password) if owner else (self.runtime, self.runtime_password)
        )
        place = quote(self.host, safe="")
        return f"postgres://{quote(user)}:{quote(password)}@{place}:{self.port}/{database}"


def ensure_runtime_role(server: Server) -> None:
    """Make the runtime role where the owner may; several test runs may try at once."""
    with server.as_owner() as connection:
        known = connection.execute(
            "SELECT 1 FROM pg_roles WHERE rolname = %s", [server.runtime]
        ).fetchone()
        if known is None:
            statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                sql.Identifier(server.runtime), sql.Literal(server.runtime_password)
            )
            try:
                connection.execute(statement)
            except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
                return


def ensure_template(server: Server) -> None:
    """Migrate the template, unless it already stands at these very migrations."""
    wanted = _schema_fingerprint()
    with server.as_owner() as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext(%s))", [server.template])
        found = connection.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s",
            [server.template],
        ).fetchone()
        if found == (wanted,):
            return
        drop_database(connection, server.template)
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(
                sql.Identifier(server.template)
            )
        )
        use_database(server, server.template, owner=True)
        call_command("migrate", verbosity=0)
        call_command("grant_runtime_role", server.runtime, verbosity=0, stdout=_Silence())
        connections["default"].close()
        connection.execute(
            sql.SQL("COMMENT ON DATABASE {} IS {}").format(
                sql.Identifier(server.template), sql.Literal(wanted)
            )
        )


def restore(server: Server, name: str) -> None:
    """Replace a test database by a fresh copy of the template, whoever is still connected."""
    connections["default"].close()
    with server.as_owner() as connection:
        drop_database(connection, name)
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(server.template)
            )
        )


def drop(server: Server, name: str) -> None:
    """Remove a test database."""
    connections["default"].close()
    with server.as_owner() as connection:
        drop_database(connection, name)


def use_database(server: Server, name: str, *, owner: bool = False) -> None:
    """Point Django, and processes the tests start, at a database under one of the roles."""
    role, password = (
        (server.owner, server.owner_password)
        if owner
        else (server.runtime, server.runtime_password)
    )
    connection = connections["default"]
    connection.close()
    for known in (settings.DATABASES["default"], connection.settings_dict):
        known.update(NAME=name, USER=role, PASSWORD=password)
    os.environ["DATABASE_URL"] = server.url(name, owner=owner)


def _schema_fingerprint() -> str:
    """Return a digest of everything the template's schema and privileges come from."""
    digest = hashlib.sha256()
    paths = {path for pattern in _SCHEMA_SOURCES for path in _ours(pattern)}
    for path in sorted(paths):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _ours(pattern: str) -> Iterator[Path]:
    for top in (
        "fabric",
        "providers",
        "listings",
        "billing",
        "leases",
        "workloads",
        "requirements",
    ):
        head, _, rest = pattern.partition("/")
        if head == "**":
            yield from (ROOT / top).glob(pattern)
        elif head == top:
            yield from (ROOT / top).glob(rest)


class _Silence:
    """Swallows what a command prints while a fixture runs it."""

    def write(self, text: str) -> int:
        return len(text)
