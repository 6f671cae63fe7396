"""What makes an enrolment acceptable, and which bytes prove that a machine holds its key."""

import re
from datetime import timedelta

from fabric.lib.errors import FieldError, InvalidInput

TOKEN_LIFETIME = timedelta(hours=1)
_NAME = re.compile(r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")


def proof_message(nonce: bytes, public_key: bytes) -> bytes:
    """Return what the agent signs: both sides' parts, under a name that no other message has."""
    return b"fabric-enrol-v1\n" + nonce + public_key


def read_node_name(text: str) -> str:
    """Return a node's name as a host name writes it, or raise InvalidInput."""
    name = text.strip().lower()
    if not _NAME.match(name):
        raise InvalidInput(
            "The node's name is not acceptable.",
            errors=(
                FieldError(
                    "node_name",
                    "not a host name",
                    "1 to 63 letters, digits, dots and hyphens, such as is-r2-07",
                ),
            ),
        )
    return name
