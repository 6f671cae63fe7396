"""What a provider sees and does on its pages; what a stranger finds there."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from fabric.accounts.domain.roles import Role
from fabric.accounts.models import Membership
from fabric.journal.models import AuditEntry
from fabric.lib.clock import utc_now
from providers.models import Challenge, EnrolmentToken, HardwareReport, Node, NodeKey
from providers.services.enrolment import create_token
from tests.fleet import admit_node
from tests.providers.agents import TestAgent, host_report
from tests.providers.test_challenges import prove_simulated
from tests.providers.test_challenges import simulated as simulated  # noqa: PLC0414 - a fixture
from tests.world import World


@pytest.fixture
def carol(world: World) -> Client:
    return world.client(world.carol)


def page_of(agent: TestAgent) -> str:
    return f"/provider/nodes/{agent.node_id}/"


def test_a_token_and_its_commands_are_shown_once(world: World, carol: Client) -> None:
    """R-B1 (page): the page makes a token and shows the command that enrols the machine."""
    assert "Make a token" in carol.get("/provider/enrol/").text

    made = carol.post("/provider/enrol/", {"accepts_unisolated": "on"})

    assert made.status_code == 200
    assert "no-store" in made["Cache-Control"]
    match = re.search(r"fabric-agent enroll --url (\S+) --token (fabric-enrol-[\w-]+)", made.text)
    assert match is not None
    assert match[2] not in carol.get("/provider/enrol/").text
    TestAgent().enrol(match[2])
    node, token = Node.objects.get(), EnrolmentToken.objects.get()
    assert node.accepts_unisolated
    assert token.created_by == world.carol.public_id
    assert node.name in carol.get("/provider/enrol/").text


def test_an_unused_token_is_revoked_on_the_page(world: World, carol: Client, token: str) -> None:
    """R-B1 (page): a token is taken back with one button, before it is used."""
    row = EnrolmentToken.objects.get()
    path = f"/provider/enrolment-tokens/{row.public_id}/revocation/"
    assert carol.post(path).status_code == 302
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert TestAgent().show_token(token).status == 403


def test_the_page_shows_how_far_a_node_has_come(carol: Client, simulated: TestAgent) -> None:
    """R-B1 (page): register, install, verify, benchmark, admit with the time each took."""
    before = carol.get(page_of(simulated)).text
    assert before.count('class="done"') == 3
    assert 'aria-current="step"><b>Benchmark</b>' in before
    assert "Being tested." in before
    assert 'hx-trigger="every 2s"' in before

    prove_simulated(simulated)

    after = carol.get(page_of(simulated)).text
    assert after.count('class="done"') == 5
    assert 'aria-current="step"><b>Schedule</b>' in after
    assert "Data centre tier by benchmark" in after
    assert '<span class="simulated">simulated</span>' in after
    assert "hx-trigger" not in after


def test_the_evidence_of_each_check_is_on_the_page(carol: Client, simulated: TestAgent) -> None:
    """R-B4 (page): figures against both ends of the range, with digests of what was signed."""
    challenge = prove_simulated(simulated, gops=330_000.0)
    text = carol.get(page_of(simulated)).text

    assert "COMPUTE_GOPS_TOO_SLOW" in text
    assert "484,500 to 655,500 GOPS" in text
    assert "below the range" in text
    assert bytes(HardwareReport.objects.get().digest).hex() in text
    assert challenge.commitment is not None
    assert challenge.commitment["devices"][0]["memory_root"] in text
    assert simulated.key.key_id in text
    assert "What holds this node back" in text
    assert "Run the test again" in text


def test_htmx_gets_the_part_that_moves(carol: Client, simulated: TestAgent) -> None:
    """R-E4 (page): while a node is tested only the part that changes is asked for."""
    part = carol.get(page_of(simulated), headers={"HX-Request": "true"}).text
    assert part.lstrip().startswith('<div id="standing"')
    assert "<html" not in part


def test_what_holds_nodes_back_is_in_the_list_with_its_fix(carol: Client, agent: TestAgent) -> None:
    """R-B8 (page): the list says what holds each node back and what to do about it."""
    agent.report(host_report(devices=[], units=[]))
    text = carol.get("/provider/nodes/").text
    assert "NO_DEVICES" in text
    assert "Run fabric-agent doctor on the node" in text
    assert "no beat yet" in text


def test_a_node_is_tested_again_from_its_page(carol: Client, agent: TestAgent) -> None:
    """R-B5 (page): one button has a held-back node tested again; in between it is refused."""
    agent.report(host_report())
    path = f"{page_of(agent)}challenges/"
    refused = carol.post(path)
    assert refused.status_code == 409
    assert "Nothing was changed." in refused.text

    Challenge.objects.update(state="expired")
    Node.objects.update(state="held_back", held_back_reasons=[{"code": "X", "field": "y"}])
    assert carol.post(path).status_code == 302
    assert Challenge.objects.open().count() == 1


def test_keys_are_revoked_and_the_node_retired_from_its_page(
    world: World, carol: Client, agent: TestAgent
) -> None:
    """R-B2 (page): a stolen key ends with a reason in the audit trail; the node ends for good."""
    path = page_of(agent)
    assert carol.post(f"{path}key-revocation/", {"reason": ""}).status_code == 400
    assert NodeKey.objects.get().revoked_at is None

    assert carol.post(f"{path}key-revocation/", {"reason": "disk stolen"}).status_code == 302
    assert NodeKey.objects.get().revoked_at is not None
    assert AuditEntry.objects.get(action="node.revoke_keys").reason == "disk stolen"

    assert carol.post(f"{path}retirement/").status_code == 302
    assert Node.objects.get().state == "retired"
    text = carol.get(path).text
    assert "Retired." in text
    assert f"Retire {Node.objects.get().name}" not in text
    assert "No node yet" in carol.get("/provider/nodes/").text
    assert agent.node_id in carol.get("/provider/nodes/?retired=1").text


def test_a_stranger_and_a_buyer_find_nothing(world: World, agent: TestAgent) -> None:
    """R-E4 (page): another tenant's node answers 404 on every address and nothing changes."""
    agent.report(host_report())
    token = EnrolmentToken.objects.get()
    for person in (world.dave, world.alice):
        client = world.client(person)
        assert client.get(page_of(agent)).status_code == 404
        for act in ("challenges", "retirement", "key-revocation"):
            assert client.post(f"{page_of(agent)}{act}/", {"reason": "x"}).status_code == 404
        path = f"/provider/enrolment-tokens/{token.public_id}/revocation/"
        assert client.post(path).status_code == 404
    assert world.client(world.alice).get("/provider/nodes/").status_code == 404
    assert agent.node_id not in world.client(world.dave).get("/provider/nodes/").text
    assert Node.objects.get().state == "proving"


def test_a_viewer_looks_and_changes_nothing(world: World, agent: TestAgent) -> None:
    """R-E4 (page): who may only look sees the node without its buttons, and is refused."""
    Membership.objects.create(user=world.bob, organisation=world.northwind, role=Role.VIEWER)
    Membership.objects.filter(user=world.bob, organisation=world.meridian).delete()
    viewer = world.client(world.bob)
    text = viewer.get(page_of(agent)).text
    assert "End it" not in text
    assert viewer.post(f"{page_of(agent)}retirement/").status_code == 403
    assert viewer.post("/provider/enrol/", {}).status_code == 403
    assert Node.objects.get().state == "enrolled"


def test_pages_want_a_sign_in_and_a_csrf_token(world: World, agent: TestAgent) -> None:
    """R-E4 (page): the anonymous are led to sign in; a form without its token is refused."""
    assert Client().get(page_of(agent)).status_code == 302
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(world.carol, backend="django.contrib.auth.backends.ModelBackend")
    assert strict.post(f"{page_of(agent)}retirement/").status_code == 403
    assert strict.post("/provider/enrol/", {}).status_code == 403
    assert not Node.objects.filter(state="retired").exists()


def test_the_profile_is_changed_by_field(world: World, carol: Client) -> None:
    """R-B8 (page): what is declared is changed and audited; a bad field is refused by name."""
    good = {
        "name": "Northwind",
        "country": "fi",
        "region": "eu-north",
        "pool": "edge",
        "facility": "",
    }
    refused = carol.post("/provider/profile/", {**good, "region": "No Region"})
    assert refused.status_code == 400
    assert "such as eu-central" in refused.text
    assert carol.post("/provider/profile/", good).status_code == 302
    world.provider.refresh_from_db()
    assert (world.provider.country, world.provider.pool) == ("FI", "edge")
    before = AuditEntry.objects.get(action="provider.change").before
    assert before is not None
    assert before["country"] == "DE"


def test_a_list_of_nodes_costs_the_same_queries_for_many(world: World, carol: Client) -> None:
    """R-B8 (page): forty nodes ask no more of the database than one."""
    now = utc_now()
    admit_node(world.provider, now=now, name="n0")
    carol.get("/provider/nodes/")
    with CaptureQueriesContext(connection) as one:
        carol.get("/provider/nodes/")
    for number in range(1, 40):
        admit_node(world.provider, now=now, name=f"n{number}")
    with CaptureQueriesContext(connection) as many:
        carol.get("/provider/nodes/")
    rules = [query for query in many if "protocolparameters" in query["sql"].lower()]
    assert len(rules) == 1
    assert len(many) <= len(one) + 1


def test_an_expired_token_is_shown_as_such(world: World, carol: Client) -> None:
    """R-B1 (page): a token that ran out is listed with that word and has no button."""
    create_token(
        provider=world.provider,
        actor=world.actor(world.carol),
        now=utc_now() - timedelta(hours=2),
    )
    text = carol.get("/provider/enrol/").text
    assert "Expired" in text
    assert "Revoke" not in text
