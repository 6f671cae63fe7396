"""The runtime role owns nothing and cannot rewrite history."""

from datetime import datetime

import httpx
import psycopg
import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from fabric.journal.models import AuditEntry, Event
from fabric.lib.models import AppendOnlyModel
from tests import databases
from tests.world import World


def _append_only_tables() -> list[str]:
    return sorted(
        model._meta.db_table for model in apps.get_models() if issubclass(model, AppendOnlyModel)
    )


def test_the_tests_run_as_a_role_that_owns_no_table(db: None) -> None:
    """Nothing could be shown about the runtime role by tests that run as the owner."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_tables WHERE tableowner = current_user")
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        assert cursor.fetchone() == (False,)


def test_no_append_only_table_can_be_rewritten_by_the_runtime_role(db: None) -> None:
    """R-C13 (api): the database itself refuses to change or delete what is append-only."""
    tables = _append_only_tables()
    assert {"billing_transfer", "billing_entry", "journal_event"} <= set(tables)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t, p FROM unnest(%s::text[]) t,"
            " unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) p"
            " WHERE has_table_privilege(current_user, t, p)",
            [tables],
        )
        assert cursor.fetchall() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE journal_event SET kind = 'lease.never_happened'",
        "DELETE FROM journal_event",
        "TRUNCATE journal_event",
        "ALTER TABLE journal_event DISABLE TRIGGER ALL",
    ],
)
def test_an_event_stays_as_it_was_written(db: None, now: datetime, statement: str) -> None:
    Event.objects.create(kind="lease.ended", subject="lse_1", actor="exchange", at=now)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert list(Event.objects.values_list("kind", flat=True)) == ["lease.ended"]


def test_even_the_owner_is_stopped_by_the_trigger(
    committed_db: None, database_server: databases.Server, now: datetime
) -> None:
    AuditEntry.objects.create(actor="usr_1", action="parameters.adopted", subject="par_1", at=now)
    name = connection.settings_dict["NAME"]
    with (
        psycopg.connect(database_server.url(name, owner=True)) as owner,
        pytest.raises(psycopg.Error, match="Cannot update"),
    ):
        owner.execute("UPDATE journal_auditentry SET actor = 'somebody else'")


def test_a_committing_test_leaves_nothing_behind_first(committed_db: None, world: World) -> None:
    assert Event.objects.count() == 0
    Event.objects.create(kind="a.b", subject="lse_1", actor="x", at=world.commercial.effective_at)


def test_a_committing_test_leaves_nothing_behind_second(committed_db: None, world: World) -> None:
    assert Event.objects.count() == 0
    Event.objects.create(kind="a.b", subject="lse_1", actor="x", at=world.commercial.effective_at)


def test_a_superuser_is_refused_as_runtime_role(db: None) -> None:
    """Revoking from a superuser would look safe and do nothing."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolname FROM pg_roles WHERE rolsuper LIMIT 1")
        (name,) = cursor.fetchone()
    with pytest.raises(CommandError, match="superuser"):
        call_command("grant_runtime_role", name)


def test_an_unknown_runtime_role_is_refused(db: None) -> None:
    with pytest.raises(CommandError, match="no role nobody_at_all"):
        call_command("grant_runtime_role", "nobody_at_all")


def test_the_server_answers_over_http(live_server_url: str) -> None:
    assert httpx.get(f"{live_server_url}/nothing-here/", timeout=10).status_code == 404
