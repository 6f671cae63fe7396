"""What happened and under which rules: events, audit, idempotency keys, protocol parameters.

Objects of other apps are named here by public id, never by foreign key.
"""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from fabric.lib.models import AppendOnlyModel, PublicModel


class CurrentTransaction(models.Func):
    """The id of the running transaction (PostgreSQL's xid8, which never wraps) as a bigint."""

    template = "(pg_current_xact_id()::text::bigint)"
    output_field = models.BigIntegerField()


class Event(AppendOnlyModel):
    """Something that happened, for the feed; consumers read at (transaction, id)."""

    id = models.BigAutoField(primary_key=True)
    transaction = models.BigIntegerField(
        db_default=CurrentTransaction(), editable=False, help_text="The writing transaction."
    )
    kind = models.CharField(max_length=64)
    subject = models.CharField(max_length=40, db_index=True, help_text="Public id of the object.")
    organisations = ArrayField(
        models.CharField(max_length=40), default=list, help_text="Public ids of who may see it."
    )
    actor = models.CharField(max_length=80, help_text="Public id of a person, key or node.")
    data = models.JSONField(default=dict)
    at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta(AppendOnlyModel.Meta):
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class AuditEntry(AppendOnlyModel):
    """Who changed what and why; written by services beside the change itself."""

    id = models.BigAutoField(primary_key=True)
    actor = models.CharField(max_length=80)
    action = models.CharField(max_length=64)
    subject = models.CharField(max_length=40, db_index=True)
    reason = models.TextField(blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["-id"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.subject}"


class IdempotencyKey(models.Model):
    """The first answer to a request that a client may repeat.

    Unique on (tenant, route, key). The row is inserted before the work and completed in the
    transaction of the effect, so an answer exists exactly when its effect does.
    """

    id = models.BigAutoField(primary_key=True)
    tenant = models.CharField(max_length=40)
    route = models.CharField(max_length=120)
    key = models.CharField(max_length=255)
    request_hash = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField(null=True, help_text="Null while in flight.")
    body = models.BinaryField(null=True)
    headers = models.JSONField(default=dict, help_text="Those of the answer that must return.")
    claimed_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "route", "key"], name="an_idempotency_key_is_used_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.route} {self.key}"


class ProtocolParameters(PublicModel, AppendOnlyModel):
    """One version of the rules everyone trades under; content-addressed and never edited.

    `commercial` ones (fee split, window, dispute window, hold price) are pinned by hash in terms;
    `operational` ones (heartbeat limits, sampling) are always the current ones.
    """

    PREFIX: ClassVar[str] = "par"

    class Kind(models.TextChoices):
        COMMERCIAL = "commercial"
        OPERATIONAL = "operational"

    kind = models.CharField(max_length=16, choices=Kind)
    version = models.PositiveIntegerField()
    body = models.JSONField()
    canonical = models.BinaryField(help_text="RFC 8785 bytes of the body.")
    digest = models.BinaryField(max_length=32, unique=True, help_text="SHA-256 of `canonical`.")
    effective_at = models.DateTimeField()
    proposed_by = models.CharField(max_length=80)
    approved_by = models.CharField(max_length=80)

    class Meta(AppendOnlyModel.Meta):
        ordering = ["kind", "-version"]
        verbose_name_plural = "protocol parameters"
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "version"], name="parameters_have_one_text_per_version"
            ),
            models.CheckConstraint(
                condition=~models.Q(proposed_by=models.F("approved_by")),
                name="parameters_are_approved_by_another_person",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"
