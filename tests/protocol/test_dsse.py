"""Envelopes: exact bytes, one writing, one signature."""

import base64
import json

import pytest

from fabric_protocol import dsse, keys, payloads

KEY = keys.SigningKey.from_seed(b"k" * 32)
OTHER = keys.SigningKey.from_seed(b"o" * 32)


def sealed(body=None):
    return dsse.seal_document(payloads.METER_BATCH, {"seq": 1} if body is None else body, KEY)


def refuse(envelope, *, kind=payloads.METER_BATCH, key=KEY):
    with pytest.raises(dsse.BadEnvelope) as refusal:
        dsse.open_document(envelope, kind, key.public_bytes)
    return refusal.value.code


def test_what_was_sealed_is_opened_as_the_exact_bytes():
    payload = b'{"b": 1,\n "a": 2}'
    envelope = dsse.seal(payloads.REPORT, payload, KEY)
    assert dsse.open(envelope, payloads.REPORT, KEY.public_bytes) == payload
    assert dsse.key_id_of(envelope) == KEY.key_id


def test_the_published_pre_authentication_example_holds():
    assert dsse.pre_authentication("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_another_type_or_key_is_refused():
    """R-C4 (agent): a batch from another node's key, or of another purpose, is refused."""
    assert refuse(sealed(), kind=payloads.REPORT) == "WRONG_TYPE"
    assert refuse(sealed(), key=OTHER) == "WRONG_KEY"


def test_a_key_id_alone_does_not_open_an_envelope():
    document = json.loads(dsse.seal_document(payloads.METER_BATCH, {"seq": 1}, OTHER))
    document["signatures"][0]["keyid"] = KEY.key_id
    assert refuse(json.dumps(document).encode()) == "BAD_SIGNATURE"


def test_a_changed_payload_is_refused():
    """R-C4 (agent): a tampered batch does not verify."""
    document = json.loads(sealed())
    document["payload"] = base64.b64encode(b'{"seq":2}').decode()
    assert refuse(json.dumps(document).encode()) == "BAD_SIGNATURE"


def _edit(change):
    document = json.loads(sealed())
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "envelope",
    [
        b"",
        b"[]",
        b"{}",
        sealed()[:-1],
        sealed().replace(b'"sig"', b'"sig":"","sig"'),
        _edit(lambda d: d.update(extra=1)),
        _edit(lambda d: d["signatures"].append(d["signatures"][0])),
        _edit(lambda d: d.update(signatures=[])),
        _edit(lambda d: d.update(signatures=["x"])),
        _edit(lambda d: d["signatures"][0].update(sig=7)),
        _edit(lambda d: d.update(payload="not base64!")),
        _edit(lambda d: d.update(payload=d["payload"].rstrip("=") + "\n")),
        _edit(lambda d: d.update(payload="eyJzZXEiOjF9" + "====")),
    ],
)
def test_a_malformed_envelope_is_refused_by_name(envelope):
    assert refuse(envelope) in {
        "NOT_JSON",
        "NOT_AN_OBJECT",
        "DUPLICATE_KEY",
        "MALFORMED",
    }


def test_a_large_envelope_is_refused_unread():
    with pytest.raises(dsse.BadEnvelope) as refusal:
        dsse.open(sealed(), payloads.METER_BATCH, KEY.public_bytes, max_bytes=20)
    assert refusal.value.code == "TOO_LARGE"


def test_a_payload_with_two_readings_is_refused():
    envelope = dsse.seal(payloads.METER_BATCH, b'{"seq":1,"seq":2}', KEY)
    assert refuse(envelope) == "DUPLICATE_KEY"
