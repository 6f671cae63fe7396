"""That a node is alive, what it shall do, and how it stands."""

from typing import Any

from django.http import HttpRequest

from fabric.lib.errors import FieldError, InvalidInput
from fabric.lib.signing import server_key
from fabric_protocol import canonical, dsse, payloads
from providers.agent_api.base import AgentView
from providers.selectors import beat_seconds, standing_of
from providers.services.beats import record_beat
from providers.services.desired_state import read_document

MAX_SEQ = 2**53
MAX_WORKLOADS = 256


class BeatList(AgentView):
    """Takes beats."""

    max_bytes = 64 * 1024

    def post(self, request: HttpRequest) -> tuple[int, dict[str, Any]]:
        """Note the beat; the reply says whether there is news to fetch, and how late it is here."""
        body = self.read_object(required={"seq": int, "health": dict, "workloads": list})
        if not 0 <= body["seq"] < MAX_SEQ:
            raise _not_acceptable("seq", "a count from 0")
        workloads = body["workloads"]
        if len(workloads) > MAX_WORKLOADS or not all(isinstance(row, dict) for row in workloads):
            raise _not_acceptable("workloads", f"a list of at most {MAX_WORKLOADS} objects")
        generation = record_beat(
            node=self.node,
            seq=body["seq"],
            health=body["health"],
            workloads=workloads,
            now=self.now,
        )
        return 200, {
            "generation": generation,
            "server_time": payloads.write_instant(self.now),
            "beat_seconds": beat_seconds(now=self.now),
        }


class DesiredStateDetail(AgentView):
    """Tells a node what it shall do."""

    def get(self, request: HttpRequest) -> tuple[int, bytes]:
        """Return the whole desired state in an envelope of ours."""
        document = canonical.dumps(read_document(node=self.node, now=self.now))
        return 200, dsse.seal(payloads.DESIRED_STATE, document, server_key())


class NodeSelf(AgentView):
    """Tells a node how it stands."""

    def get(self, request: HttpRequest) -> tuple[int, dict[str, Any]]:
        """Return state, tier, what holds the node back, and its last checks."""
        return 200, standing_of(node=self.node)


def _not_acceptable(field: str, accepted: str) -> InvalidInput:
    return InvalidInput(
        f"{field} is not acceptable.", errors=(FieldError(field, "not acceptable", accepted),)
    )
