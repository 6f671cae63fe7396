"""Borrows the PostgreSQL and Redis that this machine already runs, with roles of our own."""

import contextlib
import os
import secrets
from collections.abc import Iterator

import psycopg
import redis
from psycopg import sql

from deploy.local.servers import Addresses

_POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres"
_REDIS = "redis://127.0.0.1:6379/0"


@contextlib.contextmanager
def lent_by_the_system() -> Iterator[Addresses | None]:
    """Lend an owner and a runtime role on the loopback's servers, or None where there are none.

    `FABRIC_SYSTEM_POSTGRES_URL` and `FABRIC_SYSTEM_REDIS_URL` name servers elsewhere; the first
    must be a superuser's. What was made is removed afterwards.
    """
    try:
        connection = psycopg.connect(
            os.environ.get("FABRIC_SYSTEM_POSTGRES_URL", _POSTGRES),
            autocommit=True,
            connect_timeout=3,
        )
        redis_url = os.environ.get("FABRIC_SYSTEM_REDIS_URL", _REDIS)
        with contextlib.closing(redis.Redis.from_url(redis_url, socket_timeout=3)) as client:
            client.ping()
    except (psycopg.OperationalError, redis.RedisError):
        yield None
        return
    with connection:
        names = {kind: f"fabric_{kind}_{os.getpid()}" for kind in ("owner", "runtime")}
        passwords = {kind: secrets.token_urlsafe(24) for kind in names}
        for kind, name in names.items():
            connection.execute(
                sql.SQL("CREATE ROLE {} LOGIN CREATEDB PASSWORD {}").format(
                    sql.Identifier(name), sql.Literal(passwords[kind])
                )
                if kind == "owner"
                else sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                    sql.Identifier(name), sql.Literal(passwords[kind])
                )
            )
        for name in names.values():  # What is tested here is thrown away; nothing waits for a disk.
            connection.execute(
                sql.SQL("ALTER ROLE {} SET synchronous_commit = off").format(sql.Identifier(name))
            )
        connection.execute(
            sql.SQL("GRANT {} TO {}").format(
                sql.Identifier(names["runtime"]), sql.Identifier(names["owner"])
            )
        )
        place = f"{connection.info.host}:{connection.info.port}/fabric_{os.getpid()}"
        urls = {kind: f"postgres://{names[kind]}:{passwords[kind]}@{place}" for kind in names}
        try:
            yield Addresses(
                owner_url=urls["owner"], runtime_url=urls["runtime"], redis_url=redis_url
            )
        finally:
            _remove(connection, list(names.values()))


def _remove(connection: "psycopg.Connection[tuple[object, ...]]", roles: list[str]) -> None:
    """Drop the databases that the roles own, then the roles."""
    owned = connection.execute(
        "SELECT datname FROM pg_database WHERE pg_get_userbyid(datdba) = ANY(%s)", [roles]
    ).fetchall()
    for (name,) in owned:
        connection.execute(
            sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(str(name)))
        )
    for role in roles:
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
