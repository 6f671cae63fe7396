"""The agents' door opens only to fresh requests signed by a key in force."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import caches
from django.core.handlers.wsgi import WSGIRequest
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.test import RequestFactory
from redis.exceptions import ConnectionError as RedisConnectionError

from fabric.lib.clock import utc_now
from fabric_protocol import canonical, keys, requests
from providers.models import Node, NodeBeat
from providers.services.nodes import retire_node, revoke_keys
from tests.providers.agents import HOST, TestAgent
from tests.world import World

BEAT: dict[str, Any] = {"seq": 1, "health": {"load": 0.2}, "workloads": []}


def test_a_beat_is_heard_and_answered_with_a_signed_reply(agent: TestAgent) -> None:
    """R-B6 (agent): a beat tells the exchange that the node lives, and the node whether to look."""
    reply = agent.post("beats/", BEAT)

    assert reply.status == 200
    assert (reply.body["generation"], reply.body["beat_seconds"]) == (0, 1)
    assert NodeBeat.objects.get().health == {"load": 0.2}


def test_a_replayed_request_is_refused(agent: TestAgent) -> None:
    """R-B2 (agent): a request captured on the wire does nothing a second time."""
    raw, nonce = canonical.dumps(BEAT), requests.new_nonce()
    headers = requests.sign(
        "POST", f"{HOST}/agent/v1/beats/", {}, raw, key=agent.key, created=utc_now(), nonce=nonce
    )
    assert agent.send("POST", "beats/", raw, headers=headers, nonce=nonce).status == 200
    before = NodeBeat.objects.get().last_beat_at

    replayed = agent.send("POST", "beats/", raw, headers=headers, nonce=nonce)

    assert (replayed.status, replayed.code) == (409, "REQUEST_REPLAYED")
    assert NodeBeat.objects.get().last_beat_at == before


@pytest.mark.parametrize("seconds", [-3600, -61, 6, 3600])
def test_stale_and_future_requests_are_told_the_time(agent: TestAgent, seconds: int) -> None:
    """R-B2 (agent): a clock that is off by more than a minute is refused with ours beside it."""
    reply = agent.post("beats/", BEAT, created=utc_now() + timedelta(seconds=seconds))

    assert (reply.status, reply.code) == (401, "CLOCK_SKEW")
    assert reply.body["retryable"] is True
    assert reply.body["server_time"].endswith("Z")
    assert not NodeBeat.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"sent": canonical.dumps({**BEAT, "seq": 2})},
        {"sent": b""},
        {"sent_to": "reports/"},
        {"sent_to": "beats/?again=1"},
    ],
)
def test_a_request_changed_on_the_way_is_refused(agent: TestAgent, changes: dict[str, Any]) -> None:
    """R-B2 (agent): body, digest, path and query belong to the signature."""
    reply = agent.post("beats/", BEAT, **changes)
    assert (reply.status, reply.code) == (401, "SIGNATURE_REFUSED")
    assert not NodeBeat.objects.exists()


def test_a_changed_digest_is_refused(agent: TestAgent) -> None:
    """R-B2 (agent): replacing body and digest together does not help: the digest is signed."""
    raw, other, nonce = canonical.dumps(BEAT), canonical.dumps({**BEAT, "seq": 9}), "n" * 20
    url = f"{HOST}/agent/v1/beats/"
    signed, forged = (
        requests.sign("POST", url, {}, body, key=agent.key, created=utc_now(), nonce=nonce)
        for body in (raw, other)
    )
    signed["Content-Digest"] = forged["Content-Digest"]

    reply = agent.send("POST", "beats/", other, headers=signed, nonce=nonce)

    assert (reply.status, reply.code) == (401, "SIGNATURE_REFUSED")


def test_an_unknown_key_and_no_key_are_refused(agent: TestAgent) -> None:
    """R-B2 (agent): a key nobody enrolled opens nothing; nor does no signature."""
    unknown = agent.post("beats/", BEAT, key=keys.SigningKey.generate())
    assert (unknown.status, unknown.code) == (401, "SIGNATURE_REFUSED")
    assert unknown.body["metadata"]["reason"] == "UNKNOWN_KEY"

    unsigned = agent.send("POST", "beats/", canonical.dumps(BEAT), headers={}, nonce=None)
    assert unsigned.body["metadata"]["reason"] == "SIGNATURE_MISSING"
    assert not NodeBeat.objects.exists()


def test_a_revoked_key_is_refused(world: World, agent: TestAgent) -> None:
    """R-B2 (agent): a stolen key ends at once."""
    node = Node.objects.get()
    ended = revoke_keys(
        actor=world.actor(world.carol), node=node, reason="laptop stolen", now=utc_now()
    )
    assert ended == 1
    reply = agent.post("beats/", BEAT)
    assert (reply.status, reply.body["metadata"]["reason"]) == (401, "KEY_REVOKED")
    assert not NodeBeat.objects.exists()


def test_a_retired_node_is_told_so(world: World, agent: TestAgent) -> None:
    """R-B6 (agent): a beat from a retired node is not heard; its agent learns why."""
    node = Node.objects.get()
    retire_node(actor=world.actor(world.carol), node=node, now=utc_now())
    reply = agent.post("beats/", BEAT)
    assert (reply.status, reply.code) == (403, "NODE_RETIRED")
    assert not NodeBeat.objects.exists()


def test_a_body_larger_than_the_endpoint_reads_is_refused_unread(agent: TestAgent) -> None:
    """R-B2 (agent): a hundred megabytes are refused by their announced length."""
    huge = b" " * 1024
    nonce = requests.new_nonce()
    headers = requests.sign(
        "POST", f"{HOST}/agent/v1/beats/", {}, huge, key=agent.key, created=utc_now(), nonce=nonce
    )
    response = agent.client.generic(
        "POST",
        "/agent/v1/beats/",
        huge,
        content_type="application/json",
        headers=headers,
        CONTENT_LENGTH=str(100 * 1024 * 1024),
    )
    assert (response.status_code, response.json()["code"]) == (413, "BODY_TOO_LARGE")


def test_a_body_cut_short_is_refused(agent: TestAgent) -> None:
    """R-B2 (agent): fewer bytes than announced are never taken for the whole."""
    raw = canonical.dumps(BEAT)
    environ = RequestFactory().post("/agent/v1/beats/").environ
    environ |= {"CONTENT_LENGTH": str(len(raw) + 10), "wsgi.input": io.BytesIO(raw)}

    response = get_wsgi_application().get_response(WSGIRequest(environ))

    assert isinstance(response, HttpResponse)
    assert response.status_code == 400
    assert json.loads(response.content)["code"] == "BODY_CUT_SHORT"


def test_losing_the_nonce_cache_is_harmless(
    agent: TestAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-B6 (agent): while Redis is away nodes are heard all the same; nothing counts twice."""

    def unreachable(*args: Any, **kwargs: Any) -> bool:
        raise RedisConnectionError("refused")

    monkeypatch.setattr(type(caches["default"]), "add", unreachable)
    assert agent.post("beats/", BEAT).status == 200
    assert NodeBeat.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"seq": -1, "health": {}, "workloads": []}, "/seq"),
        ({"seq": True, "health": {}, "workloads": []}, "/seq"),
        ({"seq": 1, "health": [], "workloads": []}, "/health"),
        ({"seq": 1, "health": {}}, "/workloads"),
        ({"seq": 1, "health": {}, "workloads": [1]}, "/workloads"),
        ({"seq": 1, "health": {}, "workloads": [{}] * 257}, "/workloads"),
        ({"seq": 1, "health": {}, "workloads": [], "more": 1}, "/more"),
        (b"[]", "/body"),
        (b'{"seq": 1, "seq": 2}', "/body"),
        (b'{"seq": NaN}', "/body"),
        (b"{" * 3, "/body"),
    ],
)
def test_malformed_beats_name_the_member(agent: TestAgent, body: Any, pointer: str) -> None:
    """R-B2 (agent): what is not a beat is refused and says where."""
    reply = agent.post("beats/", body)
    assert reply.status == 400
    assert pointer in [error["pointer"] for error in reply.body["errors"]]
    assert not NodeBeat.objects.exists()
