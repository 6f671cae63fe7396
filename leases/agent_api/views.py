"""Taking signed meter batches from nodes."""

from typing import Any

from django.http import HttpRequest

from leases.services.metering import MAX_ENVELOPE_BYTES, receive_batch
from providers.agent_api.base import AgentView


class BatchList(AgentView):
    """Takes the sealed batches of one lease's stream."""

    # One byte more than is read, so that what is too large is kept and receipted as refused.
    max_bytes = MAX_ENVELOPE_BYTES + 1

    def post(self, request: HttpRequest, lease_id: str) -> tuple[int, dict[str, Any]]:
        """Keep a batch and answer with the signed receipt; the same bytes get the same one."""
        receipt = receive_batch(node=self.node, lease_id=lease_id, envelope=self.raw, now=self.now)
        return (201 if receipt.created else 200), receipt.body
