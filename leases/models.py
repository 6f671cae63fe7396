"""Orders, leases, signed meter batches, readings, and disputes about them."""

from typing import ClassVar

import pgtrigger
from django.db import models

from billing.models import Agreement, UsageRecord
from fabric.accounts.models import Organisation, Project
from fabric.lib.models import AppendOnlyModel, PublicModel
from leases.domain.states import (
    CHARGING,
    WHOLE_BPS,
    BatchState,
    DisputeState,
    EndReason,
    LeaseState,
    Outcome,
    Side,
    StreamState,
    WindowState,
    WitnessKind,
    outcome_of,
)
from leases.domain.windows import Coverage
from leases.querysets import (
    BatchQuerySet,
    DisputeQuerySet,
    LeaseQuerySet,
    LeaseWindowQuerySet,
    OrderQuerySet,
    ReadingQuerySet,
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
    max_seconds = models.PositiveIntegerField(help_text="The term: it ends then at the latest.")
    idempotency_key = models.CharField(max_length=255)
    request_hash = models.BinaryField(max_length=32, help_text="Of what was asked for by the key.")
    placed_by = models.CharField(max_length=80, help_text="Public id of a person or key.")
    placed_at = models.DateTimeField()

    objects = OrderQuerySet.as_manager()

    class Meta:
        ordering = ["-placed_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(budget_micros__gt=0, unit_count__gt=0, max_seconds__gt=0),
                name="an_order_funds_at_least_one_unit",
            ),
            models.UniqueConstraint(
                fields=["organisation", "idempotency_key"], name="an_order_key_is_used_once"
            ),
        ]
        triggers = [pgtrigger.Protect(name="an_order_is_never_edited", operation=pgtrigger.Update)]

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
    access_shown_at = models.DateTimeField(
        null=True, blank=True, help_text="When the access token was shown, which happens once."
    )
    funded_micros = models.BigIntegerField(help_text="The order's budget and every top-up since.")
    paid_until = models.DateTimeField(null=True, blank=True)
    low_funds_at = models.DateTimeField(
        null=True, blank=True, help_text="When the buyer was warned that money runs out."
    )
    created_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True, blank=True)
    interrupted_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when nothing is billed; null while it runs."
    )
    ends_at = models.DateTimeField(help_text="The term's end, at the latest.")
    stop_requested_at = models.DateTimeField(
        null=True, blank=True, help_text="From here on nothing is billed."
    )
    stopped_at = models.DateTimeField(
        null=True, blank=True, help_text="When the last batch was in, or given up, and units freed."
    )
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=24, choices=EndReason.choices(), blank=True)
    due_at = models.DateTimeField(
        null=True, blank=True, help_text="When the sweep looks again; null when nothing is left."
    )
    probe_due_at = models.DateTimeField(
        null=True, blank=True, help_text="When the workload is next looked at from outside."
    )

    objects = LeaseQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["due_at"], name="leases_due", condition=models.Q(due_at__isnull=False)
            ),
            models.Index(
                fields=["probe_due_at"],
                name="leases_probe_due",
                condition=models.Q(probe_due_at__isnull=False),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=[state.value for state in LeaseState]),
                name="a_lease_is_in_a_known_state",
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["active", "interrupted"])
                | models.Q(ready_at__isnull=False),
                name="a_lease_charges_only_once_ready",
            ),
            models.CheckConstraint(
                condition=models.Q(state="interrupted", interrupted_at__isnull=False)
                | (~models.Q(state="interrupted") & models.Q(interrupted_at__isnull=True)),
                name="a_lease_knows_since_when_it_is_interrupted",
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["ending", "ended"])
                | (models.Q(stop_requested_at__isnull=False) & ~models.Q(end_reason="")),
                name="a_lease_ends_at_a_time_and_for_a_reason",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["ended", "failed"], ended_at__isnull=False)
                | (~models.Q(state__in=["ended", "failed"]) & models.Q(ended_at__isnull=True)),
                name="a_lease_has_an_end_exactly_when_it_ended",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="a_lease_keeps_its_parties",
                fields=["order", "agreement", "organisation", "provider", "node", "revision"],
            )
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def is_charging(self) -> bool:
        """Whether the time now running is billed."""
        return LeaseState(self.state) in CHARGING


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


class LeaseWindow(models.Model):
    """A window, or part of one, whose price was reserved before it ran."""

    id = models.BigAutoField(primary_key=True)
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="windows")
    window_index = models.BigIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(help_text="Until here the money reaches; whole seconds.")
    state = models.CharField(
        max_length=8, choices=WindowState.choices(), default=WindowState.RESERVED
    )

    objects = LeaseWindowQuerySet.as_manager()

    class Meta:
        ordering = ["lease", "window_index"]
        constraints = [
            models.UniqueConstraint(
                fields=["lease", "window_index"], name="a_lease_covers_a_window_once"
            ),
            models.CheckConstraint(
                condition=models.Q(ends_at__gt=models.F("starts_at")),
                name="a_reserved_window_has_a_length",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lease_id} window {self.window_index} {self.state}"

    @property
    def coverage(self) -> Coverage:
        """The reserved part as the rules take it."""
        return Coverage(self.window_index, self.starts_at, self.ends_at)


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


class Dispute(PublicModel):
    """A claim that a reading is wrong; holds that window's line and nothing else."""

    PREFIX: ClassVar[str] = "dsp"

    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="disputes")
    reading = models.OneToOneField(Reading, on_delete=models.PROTECT, related_name="dispute")
    opened_side = models.CharField(max_length=8, choices=Side.choices())
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

    objects = DisputeQuerySet.as_manager()

    class Meta:
        ordering = ["-opened_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(stands_bps__isnull=True) | models.Q(stands_bps__lte=WHOLE_BPS),
                name="a_ruling_stands_between_nothing_and_all",
            ),
            models.CheckConstraint(
                condition=models.Q(state="open", closed_at__isnull=True, stands_bps__isnull=True)
                | models.Q(state="ruled", closed_at__isnull=False, stands_bps__isnull=False)
                | models.Q(state="withdrawn", closed_at__isnull=False, stands_bps__isnull=True),
                name="a_dispute_is_open_or_closed_with_its_outcome",
            ),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def outcome(self) -> Outcome | None:
        """What became of the claim, or None while it is open."""
        return outcome_of(DisputeState(self.state), self.stands_bps)
