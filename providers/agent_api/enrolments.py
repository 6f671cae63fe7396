"""A machine becomes a node: shows its token, then proves that it holds its key."""

import base64
import binascii
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from fabric.lib.errors import FieldError, InvalidInput
from fabric.lib.signing import server_key
from fabric_protocol import payloads
from providers.agent_api.base import AgentView, not_visible
from providers.models import Enrolment
from providers.selectors import beat_seconds
from providers.services.enrolment import prove_possession, start_enrolment


class EnrolmentStart(AgentView):
    """Takes a token and a public key."""

    anonymous = True
    max_bytes = 8 * 1024

    def post(self, request: HttpRequest) -> tuple[int, dict[str, Any]]:
        """Return the nonce that the machine signs; the same token and key get the same one."""
        body = self.read_object(
            required={
                "token": str,
                "public_key": str,
                "node_name": str,
                "agent_version": str,
                "installed_at": (str, type(None)),
            }
        )
        enrolment = start_enrolment(
            token=body["token"],
            public_key=read_base64(body["public_key"], "public_key"),
            node_name=body["node_name"],
            agent_version=body["agent_version"],
            installed_at=_read_instant(body["installed_at"], "installed_at"),
            now=self.now,
        )
        nonce = base64.b64encode(bytes(enrolment.nonce)).decode()
        return 201, {"enrolment_id": enrolment.public_id, "nonce": nonce}


class EnrolmentProof(AgentView):
    """Takes the signature that shows possession."""

    anonymous = True
    max_bytes = 8 * 1024

    def post(self, request: HttpRequest, enrolment_id: str) -> tuple[int, dict[str, Any]]:
        """Make the node and tell the agent what it needs to run; a repeat tells the same."""
        body = self.read_object(required={"signature": str})
        enrolment = Enrolment.find_public(enrolment_id)
        if enrolment is None:
            raise not_visible("enrolment")
        signature = read_base64(body["signature"], "signature")
        node = prove_possession(enrolment=enrolment, signature=signature, now=self.now)
        return 201, {
            "node_id": node.public_id,
            "provider": node.provider.public_id,
            "server_public_key": base64.b64encode(server_key().public_bytes).decode(),
            "simulated": node.simulated,
            "accepts_unisolated": node.accepts_unisolated,
            "beat_seconds": beat_seconds(now=self.now),
        }


def read_base64(text: str, field: str) -> bytes:
    """Return the bytes behind strict base64, or raise InvalidInput naming the field."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(
            f"{field} is not base64.", errors=(FieldError(field, "not base64", "base64"),)
        ) from error


def _read_instant(text: str | None, field: str) -> datetime | None:
    if text is None:
        return None
    try:
        return payloads.read_instant(text)
    except ValueError as error:
        raise InvalidInput(
            f"{field} is not an instant.",
            errors=(FieldError(field, "not an instant", "RFC 3339 with an offset"),),
        ) from error
