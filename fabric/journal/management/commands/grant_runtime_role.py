"""Gives the runtime role what it needs on every table and nothing more."""

from argparse import ArgumentParser
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction
from psycopg import sql

ORDINARY = ("SELECT", "INSERT", "UPDATE", "DELETE")
READ_ONLY_TABLES = ("django_migrations",)


class Command(BaseCommand):
    """Runs as the owner after every `migrate`; safe to run again.

    A model says less than the ordinary privileges through `RUNTIME_PRIVILEGES`; append-only
    models inherit SELECT and INSERT. A table of no model gets nothing.
    """

    help = "Grant the role in DATABASE_URL its privileges; append-only tables get no UPDATE."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the name of the role."""
        parser.add_argument("role")

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke everything, then grant by model, in one transaction."""
        role = str(options["role"])
        with transaction.atomic():
            self._refuse_powerful(role)
            self._run("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role}", role)
            self._run("REVOKE CREATE ON SCHEMA public FROM PUBLIC, {role}", role)
            self._run("GRANT USAGE ON SCHEMA public TO {role}", role)
            self._run("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}", role)
            existing = set(connection.introspection.table_names())
            for table, privileges in sorted(privileges_by_table().items()):
                if table in existing and privileges:
                    self._run(
                        f"GRANT {', '.join(privileges)} ON {{table}} TO {{role}}", role, table
                    )
        self.stdout.write(f"{role} may use {len(existing)} tables and owns none of them.")

    def _refuse_powerful(self, role: str) -> None:
        """Refuse a role for which revoking would be an empty gesture."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = %s", [role])
            row = cursor.fetchone()
            if row is None:
                raise CommandError(f"there is no role {role}")
            if row[0]:
                raise CommandError(f"{role} is a superuser; the runtime role must not be one")
            cursor.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tableowner = %s",
                [role],
            )
            owned = [name for (name,) in cursor.fetchall()]
        if owned:
            raise CommandError(f"{role} owns {', '.join(owned)}; the runtime role owns nothing")

    def _run(self, statement: str, role: str, table: str = "") -> None:
        query = sql.SQL(statement).format(
            role=sql.Identifier(role), table=sql.Identifier(table) if table else sql.SQL("")
        )
        with connection.cursor() as cursor:
            cursor.execute(query)


def privileges_by_table() -> dict[str, tuple[str, ...]]:
    """Return what the runtime role may do with each table that a model stands for."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(READ_ONLY_TABLES, ("SELECT",))
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed and not model._meta.proxy:
            found[model._meta.db_table] = getattr(model, "RUNTIME_PRIVILEGES", ORDINARY)
    return found
