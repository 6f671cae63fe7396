"""Calls to the control plane: signed, verified, bounded in tries, plain about refusals."""

import socket
from datetime import UTC, datetime

import pytest

from fabric_agent.client import ControlPlane, ReplyNotTrusted, check_url
from fabric_agent.problems import AgentProblem, Refused, Unreachable
from fabric_protocol import keys, requests
from tests.agent.control_plane import Peer

NODE_KEY = keys.SigningKey.from_seed(b"n" * 32)
SERVER_KEY = keys.SigningKey.from_seed(b"s" * 32)
OTHER_KEY = keys.SigningKey.from_seed(b"o" * 32)


def plane_for(peer, *, waits=None, tries=4):
    return ControlPlane(
        peer.url,
        key=NODE_KEY,
        server_key=SERVER_KEY.public_bytes,
        tries=tries,
        sleep=(waits if waits is not None else []).append,
    )


def good(handler):
    handler.reply(200, {"fine": True}, key=SERVER_KEY)


def test_every_request_is_signed_with_the_nodes_key():
    """R-B2 (agent): requests carry signatures that the control plane can check."""
    with Peer(good) as peer:
        assert plane_for(peer).post("beats/", {"seq": 1}).document() == {"fine": True}
        method, path, headers, body = peer.seen[0]
        verified = requests.verify(
            method,
            f"{peer.url}{path}",
            headers,
            body,
            find_key={NODE_KEY.key_id: NODE_KEY.public_bytes}.get,
            now=datetime.now(tz=UTC),
        )
    assert (path, verified.key_id) == ("/agent/v1/beats/", NODE_KEY.key_id)


@pytest.mark.parametrize(
    "answer",
    [
        lambda handler: handler.reply(200, {"fine": True}),
        lambda handler: handler.reply(200, {"fine": True}, key=OTHER_KEY),
        lambda handler: handler.reply(200, {"fine": True}, key=SERVER_KEY, nonce="older"),
        lambda handler: handler.reply(404, {"detail": "a proxy's page"}),
    ],
)
def test_a_reply_that_is_not_the_control_planes_is_not_believed(answer):
    """R-B2 (agent): an unsigned, foreign or replayed reply is refused."""
    with Peer(answer) as peer, pytest.raises(ReplyNotTrusted):
        plane_for(peer).get("desired-state/")


def test_a_fault_that_passes_is_tried_again_with_growing_waits_and_a_new_nonce():
    """R-B2 (agent): outside calls have bounded tries with back-off."""
    waits: list[float] = []
    busy = [lambda handler: handler.reply(503, {})] * 2
    with Peer(*busy, good) as peer:
        assert plane_for(peer, waits=waits).get("nodes/self/").document() == {"fine": True}
        nonces = {headers["Signature-Input"] for _, _, headers, _ in peer.seen}
    assert len(nonces) == 3
    assert len(waits) == 2
    assert 0.1 <= waits[0] <= 0.2 <= waits[1] <= 0.4


def test_a_fault_that_stays_ends_after_the_tries():
    waits: list[float] = []
    with Peer(lambda handler: handler.reply(500, {})) as peer:
        with pytest.raises(Unreachable, match="4 tries"):
            plane_for(peer, waits=waits).get("nodes/self/")
        assert len(peer.seen) == 4
    assert len(waits) == 3


def test_a_dead_address_is_unreachable_and_says_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    plane = ControlPlane(f"http://127.0.0.1:{port}", tries=2, sleep=lambda _: None)
    with pytest.raises(Unreachable) as refusal:
        plane.get("nodes/self/")
    assert "network" in refusal.value.remedy


def test_a_refusal_is_told_as_the_control_plane_said_it_and_not_repeated():
    """R-A11 (agent): RFC 9457 problems of the server are shown with field, reason and accepted."""
    problem = {
        "type": "about:blank",
        "status": 400,
        "code": "INVALID_INPUT",
        "detail": "The listing is not acceptable.",
        "errors": [
            {"field": "price", "reason": "it is missing", "accepted": "an amount"},
            {"pointer": "/promise/a~1b", "detail": "not known", "accepted": "c"},
        ],
        "suggestion": "Correct the fields.",
    }
    with Peer(lambda handler: handler.reply(400, problem, key=SERVER_KEY)) as peer:
        with pytest.raises(Refused) as refusal:
            plane_for(peer).post("listings/", {})
        assert len(peer.seen) == 1
    assert refusal.value.code == "INVALID_INPUT"
    assert refusal.value.fields == [
        ("price", "it is missing", "an amount"),
        ("promise.a/b", "not known", "c"),
    ]
    assert refusal.value.remedy == "Correct the fields."


def test_a_redirect_is_not_followed():
    """R-B2 (agent): a redirect could carry a signed request to a stranger."""

    def redirect(handler):
        handler.send_response(302)
        handler.send_header("Location", "http://127.0.0.1:1/")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with Peer(redirect) as peer, pytest.raises(ReplyNotTrusted):
        plane_for(peer).get("nodes/self/")


def test_a_reply_without_end_is_not_read_to_the_end():
    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(64):
            handler.wfile.write(bytes(1 << 20))

    with Peer(endless) as peer, pytest.raises(ReplyNotTrusted, match="larger"):
        plane_for(peer, tries=1).get("nodes/self/")


def test_a_reply_that_is_no_object_is_refused():
    with (
        Peer(lambda handler: handler.reply(200, ["x"], key=SERVER_KEY)) as peer,
        pytest.raises(ReplyNotTrusted),
    ):
        plane_for(peer).get("nodes/self/").document()


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("exchange.example", "BAD_URL"),
        ("ftp://exchange.example", "BAD_URL"),
        ("https://user@exchange.example", "BAD_URL"),
        ("https://exchange.example/?a=1", "BAD_URL"),
        ("http://exchange.example", "NOT_ENCRYPTED"),
    ],
)
def test_an_address_that_would_leak_the_token_is_refused(url, code):
    with pytest.raises(AgentProblem) as refusal:
        check_url(url)
    assert refusal.value.code == code


def test_good_addresses_are_taken():
    assert check_url("https://exchange.example/") == "https://exchange.example"
    assert check_url("http://127.0.0.1:8000") == "http://127.0.0.1:8000"
    assert check_url("http://10.0.0.2", allow_http=True) == "http://10.0.0.2"
