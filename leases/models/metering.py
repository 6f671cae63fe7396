"""Signed batches of a lease's meter, what they say, and what others saw."""

from typing import ClassVar

from django.db import models

from billing.models import UsageRecord
from fabric.lib.models import AppendOnlyModel, PublicModel
from leases.domain.states import BatchState, StreamState, WitnessKind
from leases.models.leases import Lease
from leases.querysets import BatchQuerySet, ReadingQuerySet
from providers.models import Node


class Stream(PublicModel):
    """The chain of signed batches of one node under one agreement."""

    PREFIX: ClassVar[str] = "str"

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="streams")
    lease = models.OneToOneField(Lease, on_delete=models.PROTECT, related_name="stream")
    state = models.CharField(max_length=8, choices=StreamState.choices(), default=StreamState.OPEN)
    epoch = models.PositiveBigIntegerField(default=0)
    next_seq = models.PositiveBigIntegerField(default=0)
    head = models.BinaryField(max_length=32, null=True, help_text="Digest of the last in place.")

    def __str__(self) -> str:
        return self.public_id


class Batch(PublicModel):
    """One signed batch as received; the exact bytes are kept, also of refused ones."""

    PREFIX: ClassVar[str] = "bat"

    stream = models.ForeignKey(Stream, on_delete=models.PROTECT, related_name="batches")
    epoch = models.PositiveBigIntegerField(null=True, help_text="Null where it could not be read.")
    seq = models.PositiveBigIntegerField(null=True)
    digest = models.BinaryField(
        max_length=32, help_text="SHA-256 of the payload; of the envelope where none can be read."
    )
    envelope = models.BinaryField(help_text="As received; cut where it was far too large.")
    size_bytes = models.PositiveIntegerField(help_text="Of the envelope as it came.")
    state = models.CharField(max_length=8, choices=BatchState.choices())
    reason = models.CharField(max_length=64, blank=True, help_text="Code of why it was refused.")
    in_place = models.BooleanField(
        help_text="Whether it holds its number: accepted, parked, or refused for what it says "
        "but sound as a link, so that the chain goes on unbroken."
    )
    received_at = models.DateTimeField()

    objects = BatchQuerySet.as_manager()

    class Meta:
        ordering = ["stream", "epoch", "seq", "received_at"]
        verbose_name_plural = "batches"
        constraints = [
            models.UniqueConstraint(
                fields=["stream", "epoch", "seq"],
                condition=models.Q(in_place=True),
                name="a_sequence_number_carries_one_batch",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="refused") | ~models.Q(reason=""),
                name="a_batch_is_refused_for_a_reason",
            ),
            models.UniqueConstraint(fields=["stream", "digest"], name="a_batch_is_stored_once"),
        ]

    def __str__(self) -> str:
        return "unreadable" if self.epoch is None else f"{self.epoch}/{self.seq}"


class Reading(PublicModel, AppendOnlyModel):
    """What the meter saw in one window, from an accepted batch, and how it compares."""

    PREFIX: ClassVar[str] = "rdg"

    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="readings")
    batch = models.ForeignKey(
        Batch,
        on_delete=models.PROTECT,
        null=True,
        related_name="readings",
        help_text="Null for a window that nobody metered: an explicit zero, never a gap.",
    )
    window_index = models.BigIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    claimed_seconds = models.PositiveIntegerField(help_text="Ready seconds as the meter says.")
    witnessed_seconds = models.PositiveIntegerField(
        null=True, help_text="As seen from outside; null when nobody looked."
    )
    ready_seconds = models.PositiveIntegerField(help_text="Seconds billed: the lowest bound.")
    caps = models.JSONField(
        default=list, help_text="[{rule, seconds}]: each bound that lowered the claim."
    )
    observed = models.JSONField(help_text="field → value, in the unit the promise's schema names.")
    conformity = models.JSONField(
        help_text="[{field, promised, observed, unit, verdict, tolerance, rule}]"
    )
    rules_version = models.CharField(max_length=16)
    usage_record = models.OneToOneField(
        UsageRecord, on_delete=models.PROTECT, null=True, related_name="reading"
    )
    received_at = models.DateTimeField()

    objects = ReadingQuerySet.as_manager()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["lease", "window_index"]
        constraints = [
            models.UniqueConstraint(
                fields=["lease", "window_index"], name="a_window_has_one_reading"
            ),
            models.CheckConstraint(
                condition=models.Q(ready_seconds__lte=models.F("claimed_seconds")),
                name="no_more_is_billed_than_the_meter_claims",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lease_id} window {self.window_index}"


class WitnessReading(AppendOnlyModel):
    """What somebody other than the meter saw in a window."""

    id = models.BigAutoField(primary_key=True)
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="witness_readings")
    kind = models.CharField(max_length=16, choices=WitnessKind.choices())
    window_index = models.BigIntegerField()
    observed = models.JSONField(help_text="Such as {reachable: true, latency_ms: 1.8}.")
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["lease", "window_index", "id"]
        indexes = [models.Index(fields=["lease", "window_index"], name="witness_window")]

    def __str__(self) -> str:
        return f"{self.kind} {self.window_index}"
