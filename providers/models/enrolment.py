"""How a machine becomes a node: tokens, and the proof that it holds its key."""

from typing import ClassVar

from django.db import models

from fabric.lib.models import PublicModel
from providers.models.organisations import Provider
from providers.querysets import EnrolmentTokenQuerySet


class EnrolmentToken(PublicModel):
    """Lets one machine enrol once within an hour; only its hash is kept."""

    PREFIX: ClassVar[str] = "etk"

    provider = models.ForeignKey(
        Provider, on_delete=models.CASCADE, related_name="enrolment_tokens"
    )
    digest = models.BinaryField(max_length=32, unique=True)
    simulated = models.BooleanField(default=False, help_text="Set by an operator only.")
    accepts_unisolated = models.BooleanField(
        default=False, help_text="The provider consents to leases without a container."
    )
    created_by = models.CharField(max_length=80, help_text="Public id of a person or key.")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = EnrolmentTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"token of {self.provider}"


class Enrolment(PublicModel):
    """A machine between showing a token and proving that it holds its key."""

    PREFIX: ClassVar[str] = "enr"

    token = models.OneToOneField(EnrolmentToken, on_delete=models.CASCADE, related_name="enrolment")
    public_key = models.BinaryField(max_length=32)
    nonce = models.BinaryField(max_length=32)
    node_name = models.CharField(max_length=80)
    agent_version = models.CharField(max_length=32)
    installed_at = models.DateTimeField(null=True, help_text="As the agent says; starts the clock.")
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)
    node = models.OneToOneField(
        "Node", on_delete=models.PROTECT, null=True, blank=True, related_name="enrolment"
    )

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.node_name
