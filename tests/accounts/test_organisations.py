"""Organisations: their people, roles and invitations."""

import re
from datetime import timedelta

import pytest
from django.core import mail

from fabric.accounts.domain.roles import Role
from fabric.accounts.models import ApiKey, Invitation, Membership, User
from fabric.accounts.services import api_keys, invitations, organisations
from fabric.lib.clock import utc_now
from fabric.lib.errors import NotAllowed, NotVisible
from tests.world import PASSWORD, World

pytestmark = pytest.mark.django_db
PAGE = "/settings/organisation/"


def invite(world: World, django_capture_on_commit_callbacks, email="erin@example.org") -> str:
    with django_capture_on_commit_callbacks(execute=True):
        response = world.client(world.alice).post(PAGE, {"email": email, "role": "member"})
    assert response.status_code == 302
    found = re.search(r"http://\S+(/invitations/\S+/)", str(mail.outbox[-1].body))
    assert found is not None
    return found[1]


def test_an_invited_person_joins_once(world: World, django_capture_on_commit_callbacks) -> None:
    """R-C19 (page): a link mailed by an owner lets its addressee join, in the role it names."""
    erin = User.objects.create_user("erin@example.org", PASSWORD, name="Erin")
    link = invite(world, django_capture_on_commit_callbacks)
    client = world.client(erin)
    assert b"Meridian Lab" in client.get(link).content
    assert not Membership.objects.filter(user=erin).exists()
    assert client.post(link).status_code == 302
    assert Membership.objects.get(user=erin).role == "member"
    assert client.post(link).status_code == 404


def test_a_forwarded_link_joins_nobody_else(
    world: World, django_capture_on_commit_callbacks
) -> None:
    link = invite(world, django_capture_on_commit_callbacks)
    response = world.client(world.dave).post(link)
    assert response.status_code == 403
    assert not Membership.objects.filter(user=world.dave, organisation=world.meridian).exists()


def test_an_invitation_ends_by_time_and_by_hand(world: World) -> None:
    now = utc_now()
    actor = world.actor(world.alice)
    made = invitations.invite_member(
        actor=actor,
        organisation=world.meridian,
        invited_by=world.alice,
        email="erin@example.org",
        role=Role.MEMBER,
        now=now,
    )
    with pytest.raises(invitations.AlreadyInvited):
        invitations.invite_member(
            actor=actor,
            organisation=world.meridian,
            invited_by=world.alice,
            email="ERIN@example.org",
            role=Role.VIEWER,
            now=now,
        )
    url = f"/settings/invitations/{made.public_id}/withdrawal/"
    assert world.client(world.dave).post(url).status_code == 404
    assert world.client(world.bob).post(url).status_code == 403
    assert world.client(world.alice).post(url).status_code == 302
    assert Invitation.objects.get().withdrawn_at is not None
    late = now + timedelta(days=8)
    with pytest.raises(NotVisible):
        invitations.find_invitation(token="whatever", now=late)


def test_a_member_may_not_manage_members(world: World) -> None:
    client = world.client(world.bob)
    alice = f"/settings/members/{world.alice.public_id}"
    assert client.post(PAGE, {"email": "erin@example.org", "role": "admin"}).status_code == 403
    assert not Invitation.objects.exists()
    assert client.post(f"{alice}/role/", {"role": "viewer"}).status_code == 403
    assert client.post(f"{alice}/removal/").status_code == 403
    assert Membership.objects.get(user=world.alice).role == "owner"


def test_another_tenants_member_is_not_there(world: World) -> None:
    url = f"/settings/members/{world.carol.public_id}/role/"
    assert world.client(world.alice).post(url, {"role": "viewer"}).status_code == 404


def test_a_demotion_counts_from_the_next_request(world: World) -> None:
    """R-E4 (page): a role taken away is gone for sessions and keys alike, at once."""
    bob = world.client(world.bob)
    text, _ = api_keys.issue_key(
        actor=world.actor(world.bob),
        created_by=world.bob,
        project=world.project,
        name="bob's",
        scopes=["account:write", "account:read"],
        now=utc_now(),
    )
    url = f"/settings/members/{world.bob.public_id}/role/"
    assert world.client(world.alice).post(url, {"role": "viewer"}).status_code == 302
    given = {"name": "n", "project": world.project.pk, "lifetime": "30", "scopes": ["orders:read"]}
    assert bob.post("/settings/keys/", given).status_code == 403
    headers = {"Authorization": f"Bearer {text}"}
    body = {"project": world.project.public_id, "name": "n", "scopes": ["account:read"]}
    answer = bob.post("/api/v1/api-keys/", body, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "NOT_ALLOWED")
    assert ApiKey.objects.count() == 1


def test_removing_a_member_revokes_the_keys_they_made(world: World) -> None:
    api_keys.issue_key(
        actor=world.actor(world.bob),
        created_by=world.bob,
        project=world.project,
        name="bob's",
        scopes=["account:read"],
        now=utc_now(),
    )
    url = f"/settings/members/{world.bob.public_id}/removal/"
    assert world.client(world.alice).post(url).status_code == 302
    assert not Membership.objects.filter(user=world.bob).exists()
    assert ApiKey.objects.get().revoked_at is not None


def test_the_last_owner_stays(world: World) -> None:
    client = world.client(world.alice)
    url = f"/settings/members/{world.alice.public_id}"
    assert client.post(f"{url}/role/", {"role": "viewer"}).status_code == 409
    assert client.post(f"{url}/removal/").status_code == 409
    assert Membership.objects.get(user=world.alice).role == "owner"


def test_an_admin_makes_no_owners(world: World) -> None:
    admin = Membership.objects.get(user=world.bob)
    admin.role = Role.ADMIN
    admin.save()
    with pytest.raises(NotAllowed):
        organisations.change_role(
            actor=world.actor(world.bob), membership=admin, role=Role.OWNER, now=utc_now()
        )


def test_a_person_acts_for_the_organisation_they_chose(world: World) -> None:
    """R-C19 (page): one person in two organisations sees and acts for the active one only."""
    client = world.client(world.alice)
    client.post("/settings/organisation/new/", {"name": "Second Home"})
    assert b"Second Home" in client.get(PAGE).content
    assert world.project.name.encode() not in client.get("/settings/projects/").content
    switched = client.post(
        "/settings/organisation/active/", {"organisation": world.meridian.public_id}
    )
    assert switched.status_code == 302
    assert world.project.name.encode() in client.get("/settings/projects/").content
    foreign = client.post(
        "/settings/organisation/active/", {"organisation": world.northwind.public_id}
    )
    assert foreign.status_code == 404
    assert world.project.name.encode() in client.get("/settings/projects/").content


def test_a_person_without_an_organisation_can_found_one(world: World) -> None:
    erin = User.objects.create_user("erin@example.org", PASSWORD, name="Erin")
    client = world.client(erin)
    assert client.get(PAGE).headers["Location"] == "/settings/organisation/new/"
    assert client.get("/settings/projects/").status_code == 404
    assert client.post("/settings/organisation/new/", {"name": "E"}).status_code == 302
    assert client.get("/settings/projects/").status_code == 200


@pytest.mark.parametrize("name", ["", "   ", "x" * 121, "a\x00b", "a\x1bb"])
def test_a_name_that_is_none_is_refused(world: World, name: str) -> None:
    client = world.client(world.alice)
    assert client.post("/settings/organisation/name/", {"name": name}).status_code == 200
    world.meridian.refresh_from_db()
    assert world.meridian.name == "Meridian Lab"
    assert client.post("/settings/organisation/name/", {"name": "New Name"}).status_code == 302
    world.meridian.refresh_from_db()
    assert world.meridian.name == "New Name"
