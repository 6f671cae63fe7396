"""What a node shows: signed reports, and the steps of a challenge."""

from typing import Any

from django.http import HttpRequest

from providers.agent_api.base import AgentView, not_visible
from providers.models import Challenge
from providers.services import challenges, reports
from providers.services.envelopes import MAX_ANSWER_BYTES


class ReportList(AgentView):
    """Takes sealed hardware reports."""

    def post(self, request: HttpRequest) -> tuple[int, dict[str, Any]]:
        """Keep a report; the same one again is answered with the first."""
        report, is_new = reports.receive_report(
            node=self.node, public_key=self.public_key, envelope=self.raw, now=self.now
        )
        body = {"report_id": report.public_id, "digest": bytes(report.digest).hex()}
        return (201 if is_new else 200), body


class ChallengeView(AgentView):
    """One of the node's own challenges; another node's does not exist."""

    def find(self, challenge_id: str) -> Challenge:
        """Return the challenge if it is this node's, or raise NotVisible."""
        challenge = Challenge.find_public(challenge_id)
        if challenge is None or challenge.node_id != self.node.pk:
            raise not_visible("challenge")
        return challenge


class ChallengeStart(ChallengeView):
    """Tells the nonce, and starts the clock."""

    def post(self, request: HttpRequest, challenge_id: str) -> tuple[int, dict[str, Any]]:
        """Return nonce and parameters; a repeat returns the same and moves no clock."""
        challenge = challenges.start_challenge(challenge=self.find(challenge_id), now=self.now)
        return 200, challenges.question_of(challenge)


class ChallengeCommitment(ChallengeView):
    """Takes the roots of finished work, then says what to open."""

    def post(self, request: HttpRequest, challenge_id: str) -> tuple[int, dict[str, Any]]:
        """Return what to open; the same commitment again returns the same."""
        body = self.read_object(required={"v": int, "devices": list})
        challenge = challenges.commit_to_work(
            challenge=self.find(challenge_id), commitment=body, now=self.now
        )
        return 200, {"opening": challenge.opening}


class ChallengeAnswer(ChallengeView):
    """Takes the sealed answer."""

    max_bytes = MAX_ANSWER_BYTES

    def post(self, request: HttpRequest, challenge_id: str) -> tuple[int, dict[str, Any]]:
        """Keep the answer for the judge."""
        challenge, is_new = challenges.receive_answer(
            challenge=self.find(challenge_id),
            public_key=self.public_key,
            envelope=self.raw,
            now=self.now,
        )
        return (202 if is_new else 200), {"state": challenge.state, "verdict": challenge.verdict}
