"""Orders, leases, signed meter batches, readings, and disputes about them."""

from typing import ClassVar

import pgtrigger
from django.db import models

from billing.models import Agreement, UsageRecord
from fabric.accounts.models import Organisation, Project
from fabric.lib.models import AppendOnlyModel, PublicModel
from leases.domain.states import (
    BatchState,
    DisputeState,
    EndReason,
    LeaseState,
    StreamState,
    WitnessKind,
)
from listings.models import Listing, Revision
from providers.models import Hold, Node, Provider, Unit


class Order(PublicModel):
    """A buyer's funded wish for units of a listing; exists only when its escrow is funded."""

    PREFIX: ClassVar[str] = "ord"

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="orders")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="orders")
    listing = models.ForeignKey(Listing, on_delete=models.PROTECT, related_name="orders")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="orders")
    unit_count = models.PositiveSmallIntegerField()
    budget_micros = models.BigIntegerField(help_text="Moved from wallet to escrow with the order.")
    price_cap_micros_per_hour = models.BigIntegerField(
        help_text="Price the buyer saw and accepted."
    )
    accepts_interruption = models.BooleanField(default=False)
    accepts_unisolated = models.BooleanField(default=False)
    placed_by = models.CharField(max_length=80, help_text="Public id of a person or key.")
    placed_at = models.DateTimeField()

    class Meta:
        ordering = ["-placed_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(budget_micros__gt=0, unit_count__gt=0),
                name="an_order_funds_at_least_one_unit",
            )
        ]

    def __str__(self) -> str:
        return self.public_id


class Lease(PublicModel):
    """Exact units of one provider in one buyer's hands, paid from one escrow."""

    PREFIX: ClassVar[str] = "lse"

    order = models.OneToOneField(Order, on_delete=models.PROTECT, related_name="lease")
    agreement = models.OneToOneField(Agreement, on_delete=models.PROTECT, related_name="lease")
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="leases")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="leases")
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="leases")
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="leases")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="leases")
    state = models.CharField(
        max_length=16, choices=LeaseState.choices(), default=LeaseState.PROVISIONING
    )
    isolation = models.CharField(max_length=16, default="none", help_text="none or container.")
    access = models.JSONField(
        default=dict, blank=True, help_text="{interface, host, port} as confirmed from outside."
    )
    access_token_digest = models.BinaryField(max_length=32, null=True)
    paid_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True, blank=True)
    ends_at = models.DateTimeField(help_text="The term's end, at the latest.")
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=24, choices=EndReason.choices(), blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["ended", "failed"], ended_at__isnull=False)
                | (~models.Q(state__in=["ended", "failed"]) & models.Q(ended_at__isnull=True)),
                name="a_lease_has_an_end_exactly_when_it_ended",
            )
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="a_lease_keeps_its_parties",
                fields=["order", "agreement", "organisation", "provider", "node", "revision"],
            )
        ]

    def __str__(self) -> str:
        return self.public_id


class LeaseUnit(AppendOnlyModel):
    """One exact unit of a lease, with the hold that keeps it."""

    id = models.BigAutoField(primary_key=True)
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="lease_units")
    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="lease_units")
    hold = models.OneToOneField(Hold, on_delete=models.PROTECT, related_name="lease_unit")

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["lease", "unit"], name="a_unit_is_in_a_lease_once")
        ]

    def __str__(self) -> str:
        return f"{self.lease_id} {self.unit_id}"


class LeaseTransition(AppendOnlyModel):
    """A move of a lease from one state to the next: when, by whom and why."""

    id = models.BigAutoField(primary_key=True)
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="transitions")
    from_state = models.CharField(max_length=16, blank=True)
    to_state = models.CharField(max_length=16, choices=LeaseState.choices())
    actor = models.CharField(max_length=80)
    reason = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state}"


class Stream(PublicModel):
    """The chain of signed batches of one node under one agreement."""

    PREFIX: ClassVar[str] = "str"

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="streams")
    lease = models.OneToOneField(Lease, on_delete=models.PROTECT, related_name="stream")
    state = models.CharField(max_length=8, choices=StreamState.choices(), default=StreamState.OPEN)
    epoch = models.PositiveIntegerField(default=0)
    next_seq = models.PositiveBigIntegerField(default=0)
    head = models.BinaryField(max_length=32, null=True, help_text="Digest of the last accepted.")

    def __str__(self) -> str:
        return self.public_id


class Batch(PublicModel):
    """One signed batch as received; the exact bytes are kept, also of refused ones."""

    PREFIX: ClassVar[str] = "bat"

    stream = models.ForeignKey(Stream, on_delete=models.PROTECT, related_name="batches")
    epoch = models.PositiveIntegerField()
    seq = models.PositiveBigIntegerField()
    digest = models.BinaryField(max_length=32)
    envelope = models.BinaryField()
    state = models.CharField(max_length=8, choices=BatchState.choices())
    reason = models.CharField(max_length=64, blank=True, help_text="Code of why it was refused.")
    received_at = models.DateTimeField()

    class Meta:
        ordering = ["stream", "epoch", "seq", "received_at"]
        verbose_name_plural = "batches"
        constraints = [
            models.UniqueConstraint(
                fields=["stream", "epoch", "seq"],
                condition=~models.Q(state="refused"),
                name="a_sequence_number_carries_one_batch",
            ),
            models.UniqueConstraint(fields=["stream", "digest"], name="a_batch_is_stored_once"),
        ]

    def __str__(self) -> str:
        return f"{self.epoch}/{self.seq}"


class Reading(PublicModel, AppendOnlyModel):
    """What the meter saw in one window, from an accepted batch, and how it compares."""

    PREFIX: ClassVar[str] = "rdg"

    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="readings")
    batch = models.ForeignKey(Batch, on_delete=models.PROTECT, related_name="readings")
    window_index = models.BigIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    ready_seconds = models.PositiveIntegerField()
    observed = models.JSONField(help_text="field → value, in the unit the promise's schema names.")
    conformity = models.JSONField(
        help_text="[{field, promised, observed, unit, verdict, tolerance, rule}]"
    )
    rules_version = models.CharField(max_length=16)
    usage_record = models.OneToOneField(
        UsageRecord, on_delete=models.PROTECT, null=True, related_name="reading"
    )
    received_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["lease", "window_index"]
        constraints = [
            models.UniqueConstraint(
                fields=["lease", "window_index"], name="a_window_has_one_reading"
            )
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

    def __str__(self) -> str:
        return f"{self.kind} {self.window_index}"


class Dispute(PublicModel):
    """A claim that a reading is wrong; holds that window's line and nothing else."""

    PREFIX: ClassVar[str] = "dsp"

    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="disputes")
    reading = models.OneToOneField(Reading, on_delete=models.PROTECT, related_name="dispute")
    opened_side = models.CharField(
        max_length=8, choices=[("buyer", "buyer"), ("provider", "provider")]
    )
    opened_by = models.CharField(max_length=80)
    statement = models.TextField()
    state = models.CharField(
        max_length=16, choices=DisputeState.choices(), default=DisputeState.OPEN
    )
    stands_bps = models.PositiveIntegerField(null=True, blank=True)
    ruling = models.TextField(blank=True)
    ruled_by = models.CharField(max_length=80, blank=True)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(stands_bps__isnull=True) | models.Q(stands_bps__lte=10_000),
                name="a_ruling_stands_between_nothing_and_all",
            )
        ]

    def __str__(self) -> str:
        return self.public_id
