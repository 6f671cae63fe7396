"""The agent's side of a challenge for tests, with the real arithmetic at a small size."""

import base64
from dataclasses import dataclass
from typing import Any

from fabric_protocol import canonical, challenge, dsse, payloads
from tests.providers.agents import Reply, TestAgent


def challenge_key(agent: TestAgent) -> str:
    """Return the challenge that the agent's signed desired state names."""
    from fabric.lib.signing import server_key

    reply = agent.get("desired-state/")
    document = dsse.open_document(reply.raw, payloads.DESIRED_STATE, server_key().public_bytes)
    (item,) = [item for item in document["items"] if item["kind"] == "challenge"]
    return str(item["key"])


@dataclass
class Proof:
    """A challenge in progress; tests change `commitment` or `answer` before they are sent."""

    agent: TestAgent
    key: str
    question: dict[str, Any]
    prover: challenge.Prover
    commitment: dict[str, Any]

    def commit(self) -> Reply:
        return self.agent.post(f"challenges/{self.key}/commitment/", self.commitment)

    def answer(self, opening: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """Return the body of the answer; `changes` replace members."""
        return {
            "v": 1,
            "challenge": self.key,
            "node": self.agent.node_id,
            "report": self.prover.parameters.report,
            "devices": self.prover.open(opening),
            "timings": dict(self.prover.timings),
            "virtual_clock": False,
            "memory_limit": {"kind": "rlimit_as", "bytes": "1342177280"},
            **changes,
        }

    def send(self, body: dict[str, Any], **how: Any) -> Reply:
        envelope = dsse.seal(
            payloads.CHALLENGE_ANSWER, canonical.dumps(body), how.pop("key", self.agent.key)
        )
        return self.agent.post(f"challenges/{self.key}/answer/", envelope)


def begin(agent: TestAgent) -> Proof:
    """Start the challenge the node was told of and do its work."""
    key = challenge_key(agent)
    started = agent.post(f"challenges/{key}/start/", b"")
    assert started.status == 200, started.body
    parameters = challenge.Parameters.from_document(started.body["parameters"])
    prover = challenge.Prover(base64.b64decode(started.body["nonce"]), parameters)
    return Proof(agent, key, started.body, prover, prover.commit())


def prove(agent: TestAgent, **changes: Any) -> Proof:
    """Go through a whole challenge; `changes` replace members of the answer."""
    proof = begin(agent)
    opening = proof.commit().body["opening"]
    sent = proof.send(proof.answer(opening, **changes))
    assert sent.status == 202, sent.body
    return proof
