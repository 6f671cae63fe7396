"""What was reserved for a window, what it used, and the run that settled it."""

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import BigIntegerRangeField, RangeOperators
from django.db import models

from billing.domain.lines import ruled_amount
from billing.domain.states import USAGE_MOVES, UsageState
from billing.models.agreements import Agreement, Terms
from billing.models.ledger import Transfer
from billing.querysets import UsageRecordQuerySet
from fabric.lib.models import PublicModel


class SettlementRun(models.Model):
    """One pass of settlement over what was due, with the two cut-offs that selected it."""

    id = models.BigAutoField(primary_key=True)
    event_cutoff = models.DateTimeField(help_text="Windows that had ended by then.")
    ingestion_cutoff = models.DateTimeField(help_text="Records that had arrived by then.")
    started_at = models.DateTimeField()
    settled = models.PositiveIntegerField(default=0)
    quarantined = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"settlement {self.id}"


class UsageRecord(PublicModel):
    """One metered window: the single source of the buyer's charge and the provider's pay."""

    PREFIX: ClassVar[str] = "usg"

    agreement = models.ForeignKey(Agreement, on_delete=models.PROTECT, related_name="usage_records")
    terms = models.ForeignKey(Terms, on_delete=models.PROTECT, related_name="+")
    window_index = models.BigIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    counter_start = models.BigIntegerField(help_text="Where the line begins on the counter.")
    counter_end = models.BigIntegerField(help_text="Where it ends; the next line begins there.")
    amount_micros = models.BigIntegerField()
    pending = models.OneToOneField(
        Transfer, on_delete=models.PROTECT, null=True, blank=True, related_name="usage_record"
    )
    state = models.CharField(
        max_length=16, choices=UsageState.choices(), default=UsageState.PENDING
    )
    disputable_until = models.DateTimeField()
    stands_bps = models.PositiveIntegerField(
        default=10_000, help_text="Part of the line that stands."
    )
    evidence = models.CharField(max_length=80, help_text="Digest of the signed batch, hex.")
    meter_party = models.CharField(max_length=40, help_text="Public id of who metered.")
    recorded_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)
    settlement = models.ForeignKey(
        SettlementRun, on_delete=models.PROTECT, null=True, blank=True, related_name="records"
    )
    quarantined_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when settlement leaves it to an operator."
    )
    quarantine_reason = models.TextField(blank=True)

    objects = UsageRecordQuerySet.as_manager()

    class Meta:
        ordering = ["agreement", "window_index"]
        constraints = [
            models.UniqueConstraint(
                fields=["agreement", "window_index"], name="a_window_is_charged_once"
            ),
            models.CheckConstraint(
                condition=models.Q(amount_micros__gte=0, stands_bps__lte=10_000),
                name="a_line_is_not_negative_and_stands_at_most_whole",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    counter_start__gte=0, counter_end__gte=models.F("counter_start")
                ),
                name="a_line_runs_forwards_on_the_counter",
            ),
            models.CheckConstraint(
                condition=models.Q(amount_micros=0) | models.Q(pending__isnull=False),
                name="a_charge_was_reserved_before",
            ),
            models.CheckConstraint(
                condition=models.Q(state="settled", settled_at__isnull=False)
                | (~models.Q(state="settled") & models.Q(settled_at__isnull=True)),
                name="a_settled_line_says_when",
            ),
            ExclusionConstraint(
                name="no_quantity_is_charged_twice",
                expressions=[
                    ("agreement", RangeOperators.EQUAL),
                    (
                        models.Func(
                            "counter_start",
                            "counter_end",
                            function="int8range",
                            output_field=BigIntegerRangeField(),
                        ),
                        RangeOperators.OVERLAPS,
                    ),
                ],
            ),
        ]
        indexes = [
            models.Index(
                fields=["disputable_until"],
                condition=models.Q(state="pending", quarantined_at__isnull=True),
                name="usage_due",
            )
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="what_was_metered_never_changes",
                fields=[
                    "agreement",
                    "terms",
                    "window_index",
                    "starts_at",
                    "ends_at",
                    "counter_start",
                    "counter_end",
                    "amount_micros",
                    "pending",
                    "disputable_until",
                    "evidence",
                    "meter_party",
                    "recorded_at",
                ],
            ),
            pgtrigger.FSM(name="usage_state_moves", field="state", transitions=list(USAGE_MOVES)),
            pgtrigger.Protect(name="usage_is_never_removed", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def quantity(self) -> int:
        """What was metered: the length of the line on the agreement's counter."""
        return self.counter_end - self.counter_start

    @property
    def ruled_micros(self) -> int:
        """The part of the line that stands."""
        return ruled_amount(self.amount_micros, stands_bps=self.stands_bps)


class Reservation(models.Model):
    """Money set aside for the seconds that can still become ready in one window.

    `pending` is null when those seconds cost nothing. Live until a record binds it or it is void;
    a window has at most one live reservation.
    """

    id = models.BigAutoField(primary_key=True)
    agreement = models.ForeignKey(Agreement, on_delete=models.PROTECT, related_name="reservations")
    terms = models.ForeignKey(Terms, on_delete=models.PROTECT, related_name="+")
    window_index = models.BigIntegerField()
    max_quantity = models.BigIntegerField(help_text="Most that can become ready in the window.")
    pending = models.OneToOneField(
        Transfer, on_delete=models.PROTECT, null=True, blank=True, related_name="reservation"
    )
    record = models.OneToOneField(
        UsageRecord, on_delete=models.PROTECT, null=True, blank=True, related_name="reservation"
    )
    reserved_at = models.DateTimeField()
    voided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["agreement", "window_index", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["agreement", "window_index"],
                condition=models.Q(voided_at__isnull=True),
                name="a_window_is_reserved_once",
            ),
            models.CheckConstraint(
                condition=models.Q(record__isnull=True) | models.Q(voided_at__isnull=True),
                name="a_reservation_is_bound_or_void",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agreement_id} window {self.window_index}"
