"""The table of access, row by row, against the running code."""

from pathlib import Path

import pytest
from django.test import Client

from fabric.accounts.access import actor_of_person
from fabric.accounts.domain.roles import Right, Role
from fabric.accounts.domain.scopes import SCOPES
from fabric.accounts.models import Membership, User
from fabric.accounts.services.api_keys import issue_key
from fabric.api.matrix import Row, read_rows, write_matrix
from fabric.lib import ids
from fabric.lib.clock import utc_now
from tests.world import World

pytestmark = pytest.mark.django_db
TABLE = Path(__file__).parents[2] / "docs" / "api" / "access.md"


def test_the_table_is_current() -> None:
    """R-E4 (api): an operation that does not say who may call it fails here."""
    assert TABLE.read_text() == write_matrix(), "run: python -m deploy.local.openapi --write"


@pytest.fixture
def clients(world: World) -> dict[tuple[Role, bool], Client]:
    """Return a client per role, with keys of all scopes and of none that matters."""
    made = {}
    for role in Role:
        person = User.objects.create_user(f"{role}@example.org", name=role)
        membership = Membership.objects.create(
            user=person, organisation=world.meridian, role=Role.OWNER
        )
        for scopes, full in ((list(SCOPES), True), ([], False)):
            text, key = issue_key(
                actor=actor_of_person(person, membership),
                created_by=person,
                project=world.project,
                name="tests",
                scopes=scopes or ["account:read"],
                now=utc_now(),
            )
            key.scopes = scopes
            key.save()
            made[role, full] = Client(headers={"Authorization": f"Bearer {text}"})
        membership.role = role
        membership.save()
    return made


def call(client: Client, row: Row) -> tuple[int, str]:
    path = row.path
    while "{" in path:
        name = path[path.index("{") + 1 : path.index("}")]
        value = ids.to_public(name.removesuffix("_id")[:3].ljust(3, "x"), ids.uuid7())
        path = path.replace("{" + name + "}", value if name.endswith("_id") else "1")
    response = client.generic(
        row.method, path, "{}", "application/json", headers={"Idempotency-Key": "k"}
    )
    is_problem = response.headers.get("Content-Type") == "application/problem+json"
    return response.status_code, response.json()["code"] if is_problem else ""


def test_every_operation_refuses_whom_its_row_refuses(world: World, clients) -> None:
    """R-E4 (api): each operation, role and scope answers as its row of the table says."""
    for row in read_rows():
        where = f"{row.method} {row.path}"
        anonymous = call(Client(), row)
        if row.is_open:
            assert anonymous[0] not in (401, 403), where
        else:
            assert anonymous == (401, "NOT_AUTHENTICATED"), where
        for role in Role:
            assert call(clients[role, False], row) == (403, "SCOPE_MISSING"), (where, role)
            status, code = call(clients[role, True], row)
            if row.allows(role):
                assert status not in (401, 403), (where, role, status, code)
                assert status < 500, (where, role, status)
            else:
                assert (status, code) == (403, "NOT_ALLOWED"), (where, role)


def test_every_write_names_a_right_that_a_viewer_lacks() -> None:
    viewers = [row for row in read_rows() if row.method != "GET" and row.allows(Role.VIEWER)]
    assert viewers == []
    assert all(row.right != Right.SEE for row in read_rows() if row.method != "GET")
