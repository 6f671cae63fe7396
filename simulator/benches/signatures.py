"""Signed agent requests and DSSE envelopes checked in a second, beside bare Ed25519."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from fabric_protocol import dsse, keys, requests
from fabric_protocol.payloads import METER_BATCH
from simulator.measure import Goal, Outcome, alternate

_REPEATS = 400
_BODY = b'{"v":1,"lease":"lse_01","seq":17,"ready_seconds":5,"observed":{"compute_gops":41}}'
# A beat a second from each of 2,400 nodes must leave most of two cores for the rest.
_NODES_PER_CORE = 1_200


def run() -> Outcome:
    """Check the same signatures three ways, in turn, and compare."""
    key, now = keys.SigningKey.generate(), datetime.now(tz=UTC)
    public = key.public_bytes
    url = "https://exchange.example/agent/v1/beats/"
    signature = key.sign(_BODY)
    headers = requests.sign(
        "POST", url, {}, _BODY, key=key, created=now, nonce=requests.new_nonce()
    )
    envelope = dsse.seal(METER_BATCH, _BODY, key)

    def bare() -> None:
        keys.verify(public, _BODY, signature)

    def request() -> None:
        requests.verify("POST", url, headers, _BODY, find_key=lambda _: public, now=now)

    def batch() -> None:
        dsse.open(envelope, METER_BATCH, public, max_bytes=65_536)

    rates = alternate(
        {
            "ed25519_per_s": lambda: _rate(bare),
            "requests_per_s": lambda: _rate(request),
            "envelopes_per_s": lambda: _rate(batch),
        },
        rounds=5,
    )
    return Outcome(
        figures={name: rates[name] for name in ("requests_per_s", "envelopes_per_s")},
        baselines={"ed25519_per_s": rates["ed25519_per_s"]},
        ratios={
            "request_to_ed25519": rates["requests_per_s"] / rates["ed25519_per_s"],
            "envelope_to_ed25519": rates["envelopes_per_s"] / rates["ed25519_per_s"],
        },
        goals=(Goal("requests_per_s", rates["requests_per_s"], ">=", _NODES_PER_CORE),),
    )


def _rate(act: Callable[[], None]) -> float:
    started = time.perf_counter()
    for _ in range(_REPEATS):
        act()
    return _REPEATS / (time.perf_counter() - started)
