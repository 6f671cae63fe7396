"""What was shown about a node: signed reports, answered challenges, observations."""

from typing import ClassVar

from django.db import models

from fabric.lib.models import AppendOnlyModel, PublicModel
from providers.domain.challenges import (
    OPEN_CHALLENGE_STATES,
    ChallengePurpose,
    ChallengeState,
    Verdict,
)
from providers.models.nodes import Node
from providers.querysets import ChallengeQuerySet, ReportQuerySet


class HardwareReport(PublicModel, AppendOnlyModel):
    """What a node says it is, signed; the exact bytes are kept."""

    PREFIX: ClassVar[str] = "rpt"

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="reports")
    envelope = models.BinaryField(help_text="The DSSE envelope as received.")
    digest = models.BinaryField(max_length=32, help_text="SHA-256 of the payload.")
    body = models.JSONField()
    received_at = models.DateTimeField()

    objects = ReportQuerySet.as_manager()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["-received_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["node", "digest"], name="a_report_is_stored_once")
        ]

    def __str__(self) -> str:
        return self.public_id


class Challenge(PublicModel):
    """A question only the real machine can answer in time, and what came of it."""

    PREFIX: ClassVar[str] = "chl"

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="challenges")
    report = models.ForeignKey(HardwareReport, on_delete=models.PROTECT, related_name="+")
    purpose = models.CharField(max_length=16, choices=ChallengePurpose.choices())
    state = models.CharField(max_length=16, choices=ChallengeState.choices())
    nonce = models.BinaryField(max_length=32)
    parameters = models.JSONField(help_text="Sizes and precision of the work asked for.")
    commitment = models.JSONField(null=True, help_text="Merkle roots, before the opening is known.")
    opening = models.JSONField(null=True, help_text="The vector and rows the server then revealed.")
    envelope = models.BinaryField(null=True, help_text="The signed answer as received.")
    answer_key_id = models.CharField(max_length=64, blank=True, help_text="Key of the answer.")
    figures = models.JSONField(
        default=dict, help_text="Measured figures with units, by the server."
    )
    verdict = models.CharField(max_length=16, choices=Verdict.choices(), blank=True)
    reasons = models.JSONField(default=list)
    issued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, help_text="When the nonce was told.")
    committed_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)
    judged_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()

    objects = ChallengeQuerySet.as_manager()

    class Meta:
        ordering = ["-issued_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["node"],
                condition=models.Q(state__in=[state.value for state in OPEN_CHALLENGE_STATES]),
                name="a_node_answers_one_challenge_at_a_time",
            ),
            models.CheckConstraint(
                condition=models.Q(state=ChallengeState.JUDGED, judged_at__isnull=False)
                & ~models.Q(verdict="")
                | ~models.Q(state=ChallengeState.JUDGED) & models.Q(verdict=""),
                name="a_challenge_has_a_verdict_exactly_when_judged",
            ),
        ]

    def __str__(self) -> str:
        return self.public_id


class Observation(AppendOnlyModel):
    """A fact about a node's conduct; reputation is computed from these and nothing else."""

    id = models.BigAutoField(primary_key=True)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="observations")
    kind = models.CharField(max_length=40)
    value = models.FloatField()
    weight = models.FloatField(default=1.0)
    counterparty = models.CharField(max_length=40, blank=True, help_text="Control group's id.")
    evidence = models.CharField(max_length=40, help_text="Public id of the record behind it.")
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["-at"]

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"
