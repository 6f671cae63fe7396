"""Signed requests and replies: bound to all their parts, fresh, and not interchangeable."""

import datetime as dt

import pytest

from fabric_protocol import keys, requests

NOW = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
KEY = keys.SigningKey.from_seed(b"k" * 32)
OTHER = keys.SigningKey.from_seed(b"o" * 32)
URL = "https://fabric.test/agent/v1/beats/?a=1"
BODY = b'{"seq":1}'


def find(key_id):
    return {KEY.key_id: KEY.public_bytes}.get(key_id)


def signed(*, key=KEY, created=NOW, nonce="nonce-1", body=BODY, url=URL, method="POST"):
    headers = {"Content-Type": "application/json"}
    return requests.sign(method, url, headers, body, key=key, created=created, nonce=nonce)


def verify(headers, *, method="POST", url=URL, body=BODY, now=NOW):
    return requests.verify(method, url, headers, body, find_key=find, now=now)


def refuse(headers, **changes):
    with pytest.raises(requests.BadRequestSignature) as refusal:
        verify(headers, **changes)
    return refusal.value.code


def test_a_signed_request_names_its_key_nonce_and_instant():
    found = verify(signed())
    assert (found.key_id, found.nonce, found.created) == (KEY.key_id, "nonce-1", NOW)
    assert found.public_key == KEY.public_bytes


def test_header_names_come_in_any_case_and_tls_may_end_at_a_proxy():
    headers = {name.lower(): value for name, value in signed().items()}
    assert verify(headers, url=URL.replace("https", "http")).key_id == KEY.key_id


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "GET"},
        {"url": URL.replace("beats", "reports")},
        {"url": URL.replace("a=1", "a=2")},
        {"url": URL.replace("fabric.test", "other.test")},
        {"body": b'{"seq":2}'},
        {"body": b""},
    ],
)
def test_every_part_of_a_request_is_bound(changes):
    """R-B2 (agent): a signature moved to another request does not hold."""
    assert refuse(signed(), **changes) == "SIGNATURE_INVALID"


def test_a_stale_request_is_refused():
    """R-B2 (agent): stale requests are refused after sixty seconds."""
    assert verify(signed(), now=NOW + dt.timedelta(seconds=60)).nonce == "nonce-1"
    assert refuse(signed(), now=NOW + dt.timedelta(seconds=61)) == "SIGNATURE_STALE"


def test_a_request_from_the_future_is_refused():
    assert verify(signed(), now=NOW - dt.timedelta(seconds=5)).nonce == "nonce-1"
    assert refuse(signed(), now=NOW - dt.timedelta(seconds=6)) == "SIGNATURE_FROM_FUTURE"


def test_an_unknown_key_is_refused():
    assert refuse(signed(key=OTHER)) == "UNKNOWN_KEY"


def test_a_lookup_that_returns_another_key_is_refused():
    with pytest.raises(requests.BadRequestSignature) as refusal:
        requests.verify(
            "POST", URL, signed(key=OTHER), BODY, find_key=lambda _: KEY.public_bytes, now=NOW
        )
    assert refusal.value.code == "UNKNOWN_KEY"


def test_an_unsigned_request_is_refused():
    assert refuse({"Content-Type": "application/json"}) == "SIGNATURE_MISSING"


@pytest.mark.parametrize("name", ["Signature", "Signature-Input", "Content-Digest"])
@pytest.mark.parametrize("value", ["", "fabric=", "fabric=:AAAA:", "fabric=();tag=1", "\x7f", "é"])
def test_a_garbled_header_is_refused_by_name(name, value):
    assert refuse({**signed(), name: value}) == "SIGNATURE_INVALID"


def test_a_signature_that_covers_less_is_refused():
    headers = signed()
    headers["Signature-Input"] = headers["Signature-Input"].replace('"@path" ', "")
    assert refuse(headers) == "SIGNATURE_INVALID"


def test_a_signature_for_another_purpose_is_refused():
    headers = signed()
    headers["Signature-Input"] = headers["Signature-Input"].replace("agent-v1", "server-v1")
    assert refuse(headers) == "SIGNATURE_INVALID"


def test_an_empty_nonce_is_refused():
    assert refuse(signed(nonce="")) == "SIGNATURE_INVALID"
    assert refuse(signed(nonce="n" * 65)) == "SIGNATURE_INVALID"


def test_an_empty_body_is_signed_too():
    headers = signed(method="GET", body=b"")
    assert verify(headers, method="GET", body=b"").key_id == KEY.key_id
    assert refuse(headers, method="GET", body=b"x") == "SIGNATURE_INVALID"


def reply(*, status=200, nonce="nonce-1", key=KEY):
    return requests.sign_reply(status, {}, BODY, key=key, created=NOW, nonce=nonce)


def verify_reply(headers, *, status=200, body=BODY, nonce="nonce-1"):
    return requests.verify_reply(status, headers, body, find_key=find, now=NOW, nonce=nonce)


def test_a_reply_answers_its_own_request_only():
    """R-B2 (agent): an old reply cannot stand in for a new one."""
    assert verify_reply(reply()).key_id == KEY.key_id
    for changes, code in [
        ({"nonce": "nonce-2"}, "WRONG_NONCE"),
        ({"status": 201}, "SIGNATURE_INVALID"),
        ({"body": b"{}"}, "SIGNATURE_INVALID"),
    ]:
        with pytest.raises(requests.BadRequestSignature) as refusal:
            verify_reply(reply(), **changes)
        assert refusal.value.code == code


def test_a_reply_from_another_key_is_refused():
    with pytest.raises(requests.BadRequestSignature) as refusal:
        verify_reply(reply(key=OTHER))
    assert refusal.value.code == "UNKNOWN_KEY"


def test_a_request_signature_is_no_reply_signature():
    with pytest.raises(requests.BadRequestSignature):
        verify_reply(signed())
