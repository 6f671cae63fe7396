"""A machine becomes a node only by a token and by showing that it holds its key."""

import base64
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from fabric.journal.models import AuditEntry, Event
from fabric.lib.clock import utc_now
from fabric.lib.errors import NotAllowed, NotVisible, WrongState
from fabric_protocol import keys
from providers.models import Enrolment, EnrolmentToken, Node, NodeKey
from providers.services.enrolment import create_token, revoke_token
from tests.providers.agents import Reply, TestAgent
from tests.world import World

SMALL_ORDER = (
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
)
NOT_CANONICAL = "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"


def test_a_machine_enrols_with_a_token_and_a_proof(world: World, token: str) -> None:
    """R-B1 (agent): a token and a proof of possession make a node, whose clock starts at install."""
    agent = TestAgent()
    shown = agent.show_token(token)
    assert shown.status == 201

    proved = agent.prove(shown)

    assert proved.status == 201
    node = Node.objects.get()
    assert proved.body == {
        "node_id": node.public_id,
        "provider": world.provider.public_id,
        "server_public_key": proved.body["server_public_key"],
        "simulated": False,
        "accepts_unisolated": True,
        "beat_seconds": 1,
    }
    assert (node.provider, node.name, node.state) == (world.provider, "is-r2-07", "enrolled")
    assert node.installed_at is not None
    assert 69 <= (node.enrolled_at - node.installed_at).total_seconds() <= 80
    assert NodeKey.objects.get().key_id == agent.key.key_id
    assert Event.objects.get(kind="node.enrolled").subject == node.public_id
    assert agent.post("beats/", {"seq": 1, "health": {}, "workloads": []}).status == 200


def test_both_steps_may_be_repeated_when_an_answer_is_lost(token: str) -> None:
    """R-B1 (agent): the same machine asking again gets the same nonce and the same node."""
    agent = TestAgent()
    first, again = agent.show_token(token), agent.show_token(token)
    assert first.body == again.body

    assert agent.prove(first).body == agent.prove(first).body
    assert Node.objects.count() == 1


def test_a_token_works_once(token: str) -> None:
    """R-B1 (agent): a second machine with the same token is refused and nothing is made."""
    TestAgent().enrol(token)

    refused = TestAgent().show_token(token, name="another")

    assert (refused.status, refused.code) == (403, "ENROLMENT_TOKEN_REFUSED")
    assert Node.objects.count() == 1
    assert Enrolment.objects.count() == 1


def test_a_token_works_for_an_hour(world: World) -> None:
    """R-B1 (agent): a token older than an hour enrols nothing, also between the two steps."""
    late = utc_now() - timedelta(hours=1, seconds=1)
    text, row = create_token(provider=world.provider, actor=world.actor(world.carol), now=late)
    assert TestAgent().show_token(text).code == "ENROLMENT_TOKEN_REFUSED"

    fresh, row = create_token(
        provider=world.provider, actor=world.actor(world.carol), now=utc_now()
    )
    agent = TestAgent()
    shown = agent.show_token(fresh)
    EnrolmentToken.objects.filter(pk=row.pk).update(expires_at=utc_now())
    assert agent.prove(shown).code == "ENROLMENT_TOKEN_REFUSED"
    assert agent.show_token(fresh).code == "ENROLMENT_TOKEN_REFUSED"
    assert not Node.objects.exists()


@pytest.mark.parametrize("guess", ["", "fabric-enrol-", "fabric-enrol-" + "x" * 43])
def test_a_token_that_was_never_made_is_refused(world: World, guess: str) -> None:
    """R-B1 (agent): a guessed token is refused like a used one."""
    refused = TestAgent().show_token(guess)
    assert (refused.status, refused.code) == (403, "ENROLMENT_TOKEN_REFUSED")


def test_a_revoked_token_enrols_nothing(world: World) -> None:
    """R-B1 (api): a provider takes a token back before it is used, not after."""
    carol = world.actor(world.carol)
    text, row = create_token(provider=world.provider, actor=carol, now=utc_now())
    revoke_token(actor=carol, token=row, now=utc_now())
    assert TestAgent().show_token(text).code == "ENROLMENT_TOKEN_REFUSED"

    text, row = create_token(provider=world.provider, actor=carol, now=utc_now())
    TestAgent().enrol(text)
    with pytest.raises(WrongState):
        revoke_token(actor=carol, token=row, now=utc_now())
    assert AuditEntry.objects.filter(action="enrolment_token.revoke").count() == 1


@pytest.mark.parametrize("key", [*SMALL_ORDER, NOT_CANONICAL, "ff" * 32, "aa" * 31, ""])
def test_keys_that_fit_any_message_or_no_point_are_refused(token: str, key: str) -> None:
    """R-B2 (agent): a small-order, malformed or non-canonical key never becomes an identity."""
    encoded = base64.b64encode(bytes.fromhex(key)).decode()

    refused = TestAgent().show_token(token, public_key=encoded)

    assert (refused.status, refused.code) == (400, "KEY_REFUSED")
    assert refused.body["errors"][0]["pointer"] == "/public_key"
    assert EnrolmentToken.objects.get().used_at is None


def test_a_signature_of_another_key_proves_nothing(token: str) -> None:
    """R-B2 (agent): whoever shows a key without holding it does not get a node."""
    owner, thief = TestAgent(), TestAgent()
    shown = thief.show_token(token, public_key=base64.b64encode(owner.key.public_bytes).decode())

    refused = thief.prove(shown)

    assert (refused.status, refused.code) == (403, "PROOF_REFUSED")
    assert not Node.objects.exists()


def test_a_key_enrols_one_node(world: World, agent: TestAgent) -> None:
    """R-B2 (agent): a copied key directory does not make a second node."""
    text, _ = create_token(provider=world.provider, actor=world.actor(world.carol), now=utc_now())
    refused = agent.show_token(text, name="another")
    assert (refused.status, refused.code) == (400, "KEY_REFUSED")
    assert EnrolmentToken.objects.filter(used_at__isnull=True).count() == 1


def test_a_name_is_used_once_per_provider(world: World, agent: TestAgent) -> None:
    """R-B1 (agent): two nodes of a provider do not share a name; the refusal says so."""
    text, _ = create_token(provider=world.provider, actor=world.actor(world.carol), now=utc_now())
    refused = TestAgent().show_token(text)
    assert (refused.status, refused.body["errors"][0]["pointer"]) == (400, "/node_name")


@pytest.mark.parametrize("name", ["", "has space", "-x", "ä", "a" * 64, "x;rm -rf"])
def test_a_node_has_a_host_name(token: str, name: str) -> None:
    """R-B1 (agent): what is not a host name is refused with the field's name."""
    refused = TestAgent().show_token(token, name=name)
    assert refused.status == 400
    assert refused.body["errors"][0]["pointer"] == "/node_name"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"token": 5}, "/token"),
        ({"public_key": "%%%"}, "/public_key"),
        ({"installed_at": "yesterday"}, "/installed_at"),
        ({"installed_at": "2026-11-30T10:00:00"}, "/installed_at"),
        ({"extra": 1}, "/extra"),
    ],
)
def test_malformed_enrolments_name_the_field(
    token: str, changes: dict[str, Any], field: str
) -> None:
    """R-B2 (agent): each broken member of an enrolment is refused by name."""
    refused = TestAgent().show_token(token, **changes)
    assert refused.status == 400
    assert field in [error["pointer"] for error in refused.body["errors"]]


def test_only_an_operator_makes_tokens_for_simulated_nodes(world: World) -> None:
    """R-B4 (api): a provider cannot have its own claims judged by a virtual clock."""
    with pytest.raises(NotAllowed):
        create_token(
            provider=world.provider,
            actor=world.actor(world.carol),
            now=utc_now(),
            simulated=True,
        )
    _, row = create_token(
        provider=world.provider, actor=world.actor(world.olga), now=utc_now(), simulated=True
    )
    assert row.simulated
    with pytest.raises(NotVisible):
        create_token(provider=world.provider, actor=world.actor(world.dave), now=utc_now())
    with pytest.raises(NotVisible):
        create_token(provider=world.provider, actor=world.actor(world.alice), now=utc_now())


def test_production_takes_no_simulated_and_no_unisolated_nodes(world: World, settings: Any) -> None:
    """R-E1 (api): what demos allow is refused where the settings do not allow it."""
    settings.FABRIC_ALLOW_SIMULATED = settings.FABRIC_ALLOW_UNISOLATED = False
    olga = world.actor(world.olga)
    for wish in ({"simulated": True}, {"accepts_unisolated": True}):
        with pytest.raises(NotAllowed):
            create_token(provider=world.provider, actor=olga, now=utc_now(), **wish)
    assert not EnrolmentToken.objects.exists()


def test_of_machines_that_race_with_one_token_one_wins(committed_db: None, world: World) -> None:
    """R-B1 (agent): eight machines show one token in the same instant; one gets an enrolment."""
    text, _ = create_token(provider=world.provider, actor=world.actor(world.carol), now=utc_now())
    barrier, replies = threading.Barrier(8), list[Reply]()

    def race(place: int) -> None:
        agent = TestAgent(key=keys.SigningKey.from_seed(bytes([place]) * 32))
        barrier.wait(timeout=20)
        try:
            replies.append(agent.show_token(text, name=f"node-{place}"))
        finally:
            connection.close()

    threads = [threading.Thread(target=race, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert sorted(reply.status for reply in replies) == [201] + [403] * 7
    assert Enrolment.objects.count() == 1
