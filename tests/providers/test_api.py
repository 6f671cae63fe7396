"""What a provider does through the REST API, and what a stranger finds there: nothing."""

from typing import Any

import pytest
from django.test import Client

from fabric.accounts.access import actor_of_person
from fabric.accounts.models import User
from fabric.accounts.services.api_keys import issue_key
from fabric.lib.clock import utc_now
from fabric_protocol import dsse, payloads
from providers.models import Challenge, EnrolmentToken, HardwareReport, Node, Provider
from providers.services.reference import load_classes
from tests.providers.agents import TestAgent, host_report
from tests.world import World

READ, WRITE = "provider:read", "provider:write"


def keyed(world: World, person: User, *scopes: str) -> Client:
    """Return a client with an API key of the person's organisation."""
    membership = person.memberships.get()
    project = membership.organisation.projects.first()
    assert project is not None
    text, _ = issue_key(
        actor=actor_of_person(person, membership),
        created_by=person,
        project=project,
        name="tests",
        scopes=list(scopes),
        now=utc_now(),
    )
    return Client(headers={"Authorization": f"Bearer {text}"})


@pytest.fixture
def carol(world: World) -> Client:
    return keyed(world, world.carol, READ, WRITE)


@pytest.fixture
def dave(world: World) -> Client:
    return keyed(world, world.dave, READ, WRITE)


def post(client: Client, path: str, body: dict[str, Any] | None = None) -> Any:
    return client.post(f"/api/v1/{path}", body or {}, content_type="application/json")


def test_a_token_made_through_the_api_enrols_a_machine(world: World, carol: Client) -> None:
    """R-B1 (api): a program makes a token, shown once; the machine enrols with it; it is used."""
    made = post(carol, "enrolment-tokens/", {"accepts_unisolated": True})
    assert made.status_code == 201
    assert (made.json()["state"], made.json()["simulated"]) == ("usable", False)

    agent = TestAgent().enrol(made.json()["token"])

    listed = carol.get("/api/v1/enrolment-tokens/").json()["data"]
    assert [(row["id"], row["state"]) for row in listed] == [(made.json()["id"], "used")]
    assert "token" not in listed[0]
    nodes = carol.get("/api/v1/nodes/").json()["data"]
    assert [(row["id"], row["state"], row["health"]) for row in nodes] == [
        (agent.node_id, "enrolled", "never_heard")
    ]
    assert EnrolmentToken.objects.get().created_by.startswith("key_")


def test_a_token_is_revoked_through_the_api(world: World, carol: Client) -> None:
    """R-B1 (api): a token that was mailed to the wrong person is taken back."""
    made = post(carol, "enrolment-tokens/").json()
    revoked = post(carol, f"enrolment-tokens/{made['id']}/revocation/")
    assert (revoked.status_code, revoked.json()["state"]) == (200, "revoked")
    assert TestAgent().show_token(made["token"]).status == 403


def test_a_node_is_read_with_its_evidence(carol: Client, agent: TestAgent) -> None:
    """R-B3 (api): reasons, facts with sources, challenge and the exact signed bytes are there."""
    agent.report(host_report(devices=[], units=[]))
    node, report = Node.objects.get(), HardwareReport.objects.get()

    body = carol.get(f"/api/v1/nodes/{node.public_id}/").json()

    assert (body["state"], body["held_back_reasons"][0]["code"]) == ("held_back", "NO_DEVICES")
    assert [step["state"] for step in body["path"][:4]] == ["done", "done", "done", "now"]
    assert body["path"][1]["elapsed_seconds"] >= 0
    facts = {fact["field"]: fact for fact in body["facts"]}
    assert facts["cpu_cores"]["source"] == report.public_id
    listed = carol.get(f"/api/v1/nodes/{node.public_id}/reports/").json()["data"]
    assert [row["digest"] for row in listed] == [bytes(report.digest).hex()]
    assert carol.get(f"/api/v1/reports/{report.public_id}/").json()["body"]["devices"] == []
    envelope = carol.get(f"/api/v1/reports/{report.public_id}/envelope/")
    assert envelope["Content-Type"] == payloads.ENVELOPE_CONTENT_TYPE
    sealed = dsse.open_document(envelope.content, payloads.REPORT, agent.key.public_bytes)
    assert sealed == report.body


def test_a_held_back_node_is_tested_again_through_the_api(carol: Client, agent: TestAgent) -> None:
    """R-B5 (api): one call has the node tested again; while it proves a second is refused."""
    agent.report(host_report())
    node = Node.objects.get()
    proving = post(carol, f"nodes/{node.public_id}/challenges/")
    assert (proving.status_code, proving.json()["code"]) == (409, "WRONG_STATE")

    Challenge.objects.update(state="expired")
    Node.objects.update(state="held_back", held_back_reasons=[{"code": "X"}])
    again = post(carol, f"nodes/{node.public_id}/challenges/")
    assert (again.status_code, again.json()["state"]) == (201, "issued")
    assert "nonce" not in again.json()
    path = f"/api/v1/challenges/{again.json()['id']}/"
    assert carol.get(path).json()["purpose"] == "recheck"
    assert carol.get(f"{path}envelope/").status_code == 404


def test_a_node_is_retired_and_its_keys_are_revoked(carol: Client, agent: TestAgent) -> None:
    """R-B2 (api): a provider ends a stolen key at once and a node for good."""
    agent.report(host_report())
    path = f"nodes/{agent.node_id}"
    assert post(carol, f"{path}/key-revocation/", {"reason": "stolen"}).json() == {"revoked": 1}
    assert agent.get("nodes/self/").status == 401

    retired = post(carol, f"{path}/retirement/")
    assert (retired.status_code, retired.json()["state"]) == (200, "retired")
    assert post(carol, f"{path}/retirement/").json()["state"] == "retired"
    assert carol.get("/api/v1/nodes/?state=admitted").json()["data"] == []
    assert len(carol.get("/api/v1/nodes/?state=retired").json()["data"]) == 1


def test_another_tenant_finds_nothing(world: World, dave: Client, agent: TestAgent) -> None:
    """R-E4 (api): every object of another provider answers 404, and nothing changes."""
    agent.report(host_report())
    report, challenge = HardwareReport.objects.get(), Challenge.objects.get()
    token = EnrolmentToken.objects.get()
    node = f"nodes/{agent.node_id}"
    for path in (
        f"{node}/",
        f"{node}/challenges/",
        f"{node}/reports/",
        f"challenges/{challenge.public_id}/",
        f"challenges/{challenge.public_id}/envelope/",
        f"reports/{report.public_id}/",
        f"reports/{report.public_id}/envelope/",
    ):
        assert dave.get(f"/api/v1/{path}").status_code == 404, path
    for path in (
        f"{node}/challenges/",
        f"{node}/retirement/",
        f"{node}/key-revocation/",
        f"enrolment-tokens/{token.public_id}/revocation/",
    ):
        assert post(dave, path, {"reason": "mine"} if "key" in path else None).status_code == 404
    assert dave.get("/api/v1/nodes/").json()["data"] == []
    assert dave.get("/api/v1/enrolment-tokens/").json()["data"] == []
    assert Node.objects.get().state == "proving"


def test_a_key_without_the_scope_is_refused(world: World) -> None:
    """R-C19 (api): reading does not let a key write."""
    reader = keyed(world, world.carol, READ)
    refused = post(reader, "enrolment-tokens/")
    assert (refused.status_code, refused.json()["code"]) == (403, "SCOPE_MISSING")
    assert not EnrolmentToken.objects.exists()


def test_an_organisation_becomes_a_provider_once(world: World) -> None:
    """R-B1 (api): a buyer becomes a provider, may change what it declares, and is not made twice."""
    alice = keyed(world, world.alice, READ, WRITE)
    profile = {"country": "is", "region": "north-1", "pool": "edge"}
    assert alice.get("/api/v1/provider/").status_code == 404
    made = post(alice, "provider/", profile)
    assert (made.status_code, made.json()["country"]) == (201, "IS")
    assert post(alice, "provider/", profile).json()["code"] == "ALREADY_PROVIDER"

    read = alice.get("/api/v1/provider/")
    changed = alice.put(
        "/api/v1/provider/",
        profile | {"pool": "home", "name": "Meridian Spare"},
        content_type="application/json",
        headers={"If-Match": read["ETag"]},
    )
    assert (changed.status_code, changed.json()["pool"]) == (200, "home")
    provider = Provider.objects.get(organisation=world.meridian)
    assert (provider.pool, provider.name) == ("home", "Meridian Spare")


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"country": "Iceland"}, "/country"),
        ({"region": "North Pole"}, "/region"),
        ({"pool": "sea"}, "/pool"),
        ({"name": "Meridian"}, "/name"),
        ({"size": 3}, "/size"),
    ],
)
def test_a_bad_profile_names_the_field(world: World, changes: dict[str, Any], pointer: str) -> None:
    """R-A11 (api): what is not acceptable is refused by field."""
    alice = keyed(world, world.alice, READ, WRITE)
    profile = {"country": "IS", "region": "north-1", **changes}
    refused = post(alice, "provider/", profile)
    assert refused.status_code == 400
    assert pointer in [error["pointer"] for error in refused.json()["errors"]]
    assert not Provider.objects.filter(organisation=world.meridian).exists()


def test_the_classes_and_their_tiers_are_public(world: World) -> None:
    """R-B5 (api): class to tier is data that everybody can read, and covers every class."""
    rows = Client().get("/api/v1/classes/?limit=100").json()["data"]
    assert len(rows) == load_classes() >= 9
    tiers = {row["slug"]: row["tier"] for row in rows}
    assert tiers["host-cpu"] == "community"
    assert tiers["nvidia-h100-80gb-sxm"] == "data_centre"
    assert tiers["nvidia-l40s-48gb"] == "professional"
    assert tiers["nvidia-rtx-4090-24gb"] == "community"
    assert all(row["synthetic"] for row in rows if row["kind"] == "gpu")
    host = next(row for row in rows if row["slug"] == "host-cpu")
    assert all(band["sample_size"] > 0 for band in host["bands"]["compute_gops"])
