"""A machine becomes a node: shows its token, proves its key, and remembers whom it trusts."""

import base64
import platform
import re
from datetime import UTC, datetime

from fabric_agent import VERSION
from fabric_agent.client import ControlPlane, check_url
from fabric_agent.config import Config
from fabric_agent.problems import AgentProblem
from fabric_agent.state import Identity, StateFolder
from fabric_protocol import keys, payloads


def enrol(
    state: StateFolder,
    *,
    url: str,
    token: str,
    name: str = "",
    config: Config | None = None,
    allow_http: bool = False,
    installed_at: datetime | None = None,
) -> Identity:
    """Enrol this machine and keep the result; safe to repeat until it succeeded.

    The key is made here and stays here. The same token and key lead to the same node, so that an
    enrolment whose last reply was lost is simply run again.
    """
    if state.is_enrolled:
        known = state.identity()
        raise AgentProblem(
            "ALREADY_ENROLLED",
            f"this folder belongs to {known.node_id} at {known.url}",
            remedy="Use another folder with --state, or remove this one to enrol anew.",
        )
    address = check_url(url, allow_http=allow_http)
    key = state.make_key()
    plane = ControlPlane(address)
    try:
        begun = plane.post(
            "enrolments/",
            {
                "token": token,
                "public_key": base64.b64encode(key.public_bytes).decode(),
                "node_name": name or default_name(),
                "agent_version": VERSION,
                "installed_at": payloads.write_instant(installed_at or datetime.now(tz=UTC)),
            },
        ).document()
        nonce = base64.b64decode(str(begun["nonce"]), validate=True)
        signature = key.sign(keys.enrolment_message(nonce, key.public_bytes))
        reply = plane.post(
            f"enrolments/{begun['enrolment_id']}/proof/",
            {"signature": base64.b64encode(signature).decode()},
        )
        done = reply.document()
        server_key = base64.b64decode(str(done["server_public_key"]), validate=True)
        keys.check_public_key(server_key)
        plane.verify(reply, server_key)
    except (KeyError, ValueError) as error:
        raise AgentProblem(
            "BAD_REPLY",
            f"the control plane's answer to the enrolment cannot be used: {error}",
            remedy="Check the address; it may belong to something else.",
        ) from error
    finally:
        plane.close()
    identity = Identity(
        url=address,
        node_id=str(done["node_id"]),
        provider=str(done["provider"]),
        server_public_key=server_key.hex(),
        simulated=done.get("simulated") is True,
        accepts_unisolated=done.get("accepts_unisolated") is True,
        enrolled_at=payloads.write_instant(datetime.now(tz=UTC)),
    )
    if not state.config_path.exists():
        (config or Config()).write(state.config_path)
    state.save_identity(identity)
    return identity


def default_name() -> str:
    """Return this machine's name as a node's name is written."""
    name = re.sub(r"[^a-z0-9.-]+", "-", platform.node().lower()).strip("-.")
    return name[:63] or "node"
