"""Keeping an organisation's people by program, under the rules of the page."""

import pytest
from django.core import mail
from django.test import Client

from fabric.accounts.models import ApiKey, Invitation, Membership
from tests.world import World

pytestmark = pytest.mark.django_db
JSON = "application/json"
MEMBERS = "/api/v1/members/"
INVITATIONS = "/api/v1/invitations/"


def change(client: Client, url: str, **body: str) -> tuple[int, str]:
    """Read, then edit what was read; return the status and the code of a refusal."""
    etag = client.get(url).headers.get("ETag", '"unread"')
    answer = client.put(url, body, content_type=JSON, headers={"If-Match": etag})
    return answer.status_code, answer.json().get("code", "")


def test_an_organisation_is_renamed_from_the_version_that_was_read(world: World, api) -> None:
    """R-E4 (api): an edit names the version it edits, and says what it would accept."""
    client, url = api(world.alice), "/api/v1/organisation/"
    assert client.put(url, {"name": "Two"}, content_type=JSON).status_code == 428
    stale = {"If-Match": client.get(url).headers["ETag"]}
    assert change(client, url, name="Meridian Two") == (200, "")
    assert client.get(url).json()["name"] == "Meridian Two"
    assert client.put(url, {"name": "3"}, content_type=JSON, headers=stale).status_code == 412
    for name in ("", " ", "x" * 121, "a\u202eb", "a\nb\0"):
        assert change(client, url, name=name)[0] == 400, name
    assert client.get(url).json()["name"] == "Meridian Two"
    assert change(api(world.bob), url, name="Mine") == (403, "NOT_ALLOWED")


def test_somebody_is_invited_once_and_the_invitation_withdrawn(
    world: World, api, django_capture_on_commit_callbacks
) -> None:
    """R-E4 (api): the link goes by mail only; the API shows the invitation and takes it back."""
    client = api(world.alice)
    body = {"email": "Erin@Example.org", "role": "billing"}
    with django_capture_on_commit_callbacks(execute=True):
        made = client.post(INVITATIONS, body, content_type=JSON)
    assert made.status_code == 201
    shown = made.json()
    assert (shown["email"], shown["role"]) == ("erin@example.org", "billing")
    (letter,) = mail.outbox
    token = letter.body.split("/invitations/")[1].split("/")[0]
    assert token not in made.content.decode()
    again = client.post(INVITATIONS, body, content_type=JSON)
    assert (again.status_code, again.json()["code"]) == (409, "ALREADY_INVITED")
    url = f"{INVITATIONS}{shown['id']}/"
    assert client.get(url).json() == shown
    withdrawn = client.post(f"{url}withdrawal/")
    assert withdrawn.status_code == 200
    assert withdrawn.json()["withdrawn_at"] is not None
    assert client.post(f"{url}withdrawal/").status_code == 409
    assert [row["id"] for row in client.get(INVITATIONS).json()["data"]] == [shown["id"]]


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("email", {"email": "nobody", "role": "member"}),
        ("role", {"email": "erin@example.org", "role": "owner"}),
        ("role", {"email": "erin@example.org", "role": "king"}),
        ("role", {"email": "erin@example.org"}),
        ("organisation", {"email": "erin@example.org", "role": "member", "organisation": "x"}),
    ],
)
def test_an_invitation_that_cannot_be_is_refused_by_field(
    world: World, api, field: str, body: dict[str, str]
) -> None:
    answer = api(world.alice).post(INVITATIONS, body, content_type=JSON)
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{field}"]
    assert not Invitation.objects.exists()


def test_a_role_is_changed_and_counts_from_the_next_request(world: World, api) -> None:
    """R-E4 (api): roles bound every key of the person, at once."""
    alice, bob = api(world.alice), api(world.bob)
    url = f"{MEMBERS}{world.bob.public_id}/"
    assert change(bob, url, role="owner") == (403, "NOT_ALLOWED")
    assert change(alice, url, role="admin") == (200, "")
    project = {"name": "Atlas"}
    assert bob.post("/api/v1/projects/", project, content_type=JSON).status_code == 201
    own = f"{MEMBERS}{world.alice.public_id}/"
    assert change(bob, own, role="viewer") == (403, "NOT_ALLOWED")
    assert change(alice, own, role="viewer") == (409, "LAST_OWNER")
    assert Membership.objects.get(user=world.alice).role == "owner"


def test_a_removed_member_is_out_with_every_key(world: World, api) -> None:
    """R-E4 (api): who is removed can do nothing here from the next request on."""
    alice, bob = api(world.alice), api(world.bob)
    url = f"{MEMBERS}{world.bob.public_id}/"
    removed = alice.post(f"{url}removal/")
    assert (removed.status_code, removed.json()["id"]) == (200, world.bob.public_id)
    assert bob.get(MEMBERS).status_code == 401
    assert not ApiKey.objects.filter(created_by=world.bob, revoked_at__isnull=True).exists()
    assert alice.get(url).status_code == 404
    last = alice.post(f"{MEMBERS}{world.alice.public_id}/removal/")
    assert (last.status_code, last.json()["code"]) == (409, "LAST_OWNER")


def test_people_of_others_are_not_there(world: World, api) -> None:
    """R-E4 (api): another organisation's member is 404, to read, to change and to remove."""
    client, url = api(world.carol), f"{MEMBERS}{world.alice.public_id}/"
    assert client.get(url).status_code == 404
    assert change(client, url, role="viewer")[0] == 404
    assert client.post(f"{url}removal/").status_code == 404
