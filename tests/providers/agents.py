"""An agent for tests of the door: signs requests with a real key and checks signed replies."""

import base64
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.test import Client

from fabric.lib.clock import utc_now
from fabric.lib.signing import server_key
from fabric_protocol import canonical, dsse, keys, payloads, requests

HOST = "http://testserver"


@dataclass
class Reply:
    """What came back, its signature checked."""

    status: int
    raw: bytes
    body: dict[str, Any]

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))


@dataclass
class TestAgent:
    """Holds a node's key; every call is a fresh signed request unless the test says otherwise."""

    __test__ = False

    key: keys.SigningKey = field(default_factory=keys.SigningKey.generate)
    client: Client = field(default_factory=Client)
    node_id: str = ""

    def call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | bytes = b"",
        *,
        created: datetime | None = None,
        nonce: str | None = None,
        key: keys.SigningKey | None = None,
        sent: bytes | None = None,
        sent_to: str | None = None,
    ) -> Reply:
        """Sign and send; `sent` and `sent_to` replace body and path after signing."""
        raw = body if isinstance(body, bytes) else canonical.dumps(body)
        nonce = nonce or requests.new_nonce()
        url = f"{HOST}/agent/v1/{path}"
        headers = requests.sign(
            method, url, {}, raw, key=key or self.key, created=created or utc_now(), nonce=nonce
        )
        return self.send(
            method, sent_to or path, raw if sent is None else sent, headers=headers, nonce=nonce
        )

    def send(
        self, method: str, path: str, raw: bytes, *, headers: dict[str, str], nonce: str | None
    ) -> Reply:
        """Send exactly this; check that the reply is signed by the exchange for this request."""
        response = self.client.generic(
            method,
            f"/agent/v1/{path}",
            raw,
            content_type="application/json",
            headers=headers,
        )
        check_reply(response.status_code, dict(response.headers), response.content, nonce, raw)
        body = {}
        if "dsse" not in response.headers["Content-Type"]:
            body = json.loads(response.content)
        return Reply(response.status_code, response.content, body)

    def post(self, path: str, body: dict[str, Any] | bytes = b"{}", **how: Any) -> Reply:
        return self.call("POST", path, body, **how)

    def get(self, path: str) -> Reply:
        return self.call("GET", path)

    def show_token(self, shown: str, *, name: str = "is-r2-07", **changes: Any) -> Reply:
        """Ask to enrol, without a signature: nobody knows the key yet."""
        body = {
            "token": shown,
            "public_key": base64.b64encode(self.key.public_bytes).decode(),
            "node_name": name,
            "agent_version": "0.1",
            "installed_at": payloads.write_instant(utc_now() - timedelta(seconds=70)),
            **changes,
        }
        return self.send("POST", "enrolments/", canonical.dumps(body), headers={}, nonce=None)

    def prove(self, shown: Reply) -> Reply:
        """Sign the nonce that the exchange asked to be signed."""
        nonce = base64.b64decode(shown.body["nonce"])
        message = keys.enrolment_message(nonce, self.key.public_bytes)
        body = {"signature": base64.b64encode(self.key.sign(message)).decode()}
        path = f"enrolments/{shown.body['enrolment_id']}/proof/"
        return self.send("POST", path, canonical.dumps(body), headers={}, nonce=None)

    def enrol(self, token: str, *, name: str = "is-r2-07") -> "TestAgent":
        """Go through both steps and remember the node's id."""
        proved = self.prove(self.show_token(token, name=name))
        assert proved.status == 201, proved.body
        self.node_id = proved.body["node_id"]
        return self

    def report(self, body: dict[str, Any], *, key: keys.SigningKey | None = None) -> Reply:
        """Seal and send a hardware report."""
        envelope = dsse.seal(payloads.REPORT, canonical.dumps(body), key or self.key)
        return self.post("reports/", envelope)


def check_reply(
    status: int, headers: dict[str, str], content: bytes, nonce: str | None, raw: bytes
) -> None:
    """Fail unless the exchange signed this reply to this request."""

    def find(key_id: str) -> bytes | None:
        ours = server_key()
        return ours.public_bytes if key_id == ours.key_id else None

    requests.verify_reply(
        status,
        headers,
        content,
        find_key=find,
        now=utc_now(),
        nonce=requests.unsigned_nonce(raw) if nonce is None else nonce,
    )


def host_report(**changes: Any) -> dict[str, Any]:
    """Return a report of a small CPU host, as an agent would build it."""
    report: dict[str, Any] = {
        "v": 1,
        "driver": "host-cpu",
        "agent_version": "0.1",
        "host": {
            "hostname": "is-r2-07",
            "os": "Debian GNU/Linux 12",
            "kernel": "6.1.0",
            "container_runtime": None,
        },
        "facts": {
            "cpu_model": {"value": "AMD EPYC", "unit": "", "method": "/proc/cpuinfo"},
            "cpu_cores": {"value": 2, "unit": "", "method": "sched_getaffinity"},
            "system_memory_mib": {"value": 24_000, "unit": "MiB", "method": "/proc/meminfo"},
            "disk_read_mb_s": {"value": 812.5, "unit": "MB/s", "method": "timed reads"},
        },
        "devices": [
            {
                "ordinal": 0,
                "identity": "5e884898da28047151d0e56f8dc62927",
                "name": "AMD EPYC",
                "kind": "cpu",
                "class": "host-cpu",
                "memory_mib": 24_000,
                "slots": 1,
                "instruction_set": "avx512",
                "pci_device_id": None,
            }
        ],
        "units": [{"device": 0, "slots": [0, 1], "memory_mib": 1024}],
        "isolation": "none",
    }
    return {**report, **changes}
