"""Leases: their units, their windows, and every move from state to state."""

from typing import ClassVar

import pgtrigger
from django.db import models

from billing.models import Agreement
from fabric.accounts.models import Organisation, Project
from fabric.lib.models import AppendOnlyModel, PublicModel
from leases.domain.states import CHARGING, EndReason, LeaseState, WindowState
from leases.domain.windows import Coverage
from leases.models.orders import Order
from leases.querysets import LeaseQuerySet, LeaseWindowQuerySet
from listings.models import Revision
from providers.models import Hold, Node, Provider, Unit


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
