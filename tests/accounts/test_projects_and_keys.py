"""Projects with budgets, and API keys, on their pages."""

import re

import pytest

from fabric.accounts.models import ApiKey, Project
from fabric.journal.models import AuditEntry
from tests.world import World

pytestmark = pytest.mark.django_db
PROJECTS = "/settings/projects/"
KEYS = "/settings/keys/"


def test_a_project_gets_a_budget(world: World) -> None:
    """R-C19 (page): an owner makes a project with a budget and moves it; both are recorded."""
    client = world.client(world.alice)
    assert client.post(PROJECTS, {"name": "Atlas", "budget_micros": "25.50"}).status_code == 302
    project = Project.objects.get(name="Atlas")
    assert (project.budget_micros, project.organisation) == (25_500_000, world.meridian)
    url = f"{PROJECTS}{project.public_id}/"
    assert b'value="25.50"' in client.get(url).content
    assert client.post(url, {"name": "Atlas 2", "budget_micros": ""}).status_code == 302
    project.refresh_from_db()
    assert (project.name, project.budget_micros) == ("Atlas 2", None)
    entry = AuditEntry.objects.get(subject=project.public_id)
    assert entry.before == {"name": "Atlas", "budget_micros": "25500000"}
    assert entry.actor == world.alice.public_id


@pytest.mark.parametrize("budget", ["-1", "NaN", "1e9", "1.0000001", "9999999999999", "ten", "1,5"])
def test_a_budget_that_is_none_is_refused(world: World, budget: str) -> None:
    response = world.client(world.alice).post(PROJECTS, {"name": "Atlas", "budget_micros": budget})
    assert response.status_code == 200
    assert not Project.objects.filter(name="Atlas").exists()


def test_a_name_is_taken_once(world: World) -> None:
    response = world.client(world.alice).post(PROJECTS, {"name": world.project.name})
    assert b"There is a project called" in response.content
    assert Project.objects.filter(organisation=world.meridian).count() == 1


def test_a_member_sees_projects_and_changes_none(world: World) -> None:
    client = world.client(world.bob)
    url = f"{PROJECTS}{world.project.public_id}/"
    assert world.project.name.encode() in client.get(PROJECTS).content
    assert client.get(url).status_code == 403
    assert client.post(url, {"name": "Mine"}).status_code == 403
    world.project.refresh_from_db()
    assert world.project.name == "Protein folding"


def test_a_key_is_shown_once_and_works_until_revoked(world: World) -> None:
    """R-C19 (page): a key belongs to a project, is shown once, and dies at once when revoked."""
    client = world.client(world.alice)
    given = {
        "name": "nightly",
        "project": str(world.project.pk),
        "lifetime": "90",
        "scopes": ["account:read"],
    }
    shown = client.post(KEYS, given)
    found = re.search(r"fk_test_[0-9a-z]{8}_[\w-]+", shown.content.decode())
    assert found is not None
    assert "no-store" in shown.headers["Cache-Control"]
    key = ApiKey.objects.get()
    assert found[0].startswith(key.visible_prefix)
    assert found[0].encode() not in bytes(key.digest)
    again = client.get(KEYS).content.decode()
    assert found[0] not in again
    assert key.visible_prefix in again

    headers = {"Authorization": f"Bearer {found[0]}"}
    assert client.get("/api/v1/organisation/", headers=headers).status_code == 200
    assert client.post(f"{KEYS}{key.public_id}/revocation/").status_code == 302
    assert client.get("/api/v1/organisation/", headers=headers).status_code == 401
    assert client.post(f"{KEYS}{key.public_id}/revocation/").status_code == 409


def test_another_tenants_project_takes_no_key(world: World) -> None:
    given = {
        "name": "n",
        "project": str(world.northwind_project.pk),
        "lifetime": "never",
        "scopes": ["account:read"],
    }
    response = world.client(world.alice).post(KEYS, given)
    assert response.status_code == 200
    assert not ApiKey.objects.exists()


def test_a_key_without_a_scope_is_refused(world: World) -> None:
    given = {"name": "n", "project": str(world.project.pk), "lifetime": "30"}
    assert b"Nothing was changed" in world.client(world.alice).post(KEYS, given).content
    assert not ApiKey.objects.exists()
