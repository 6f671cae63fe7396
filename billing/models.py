"""Agreements, the ledger, usage records and card payments.

Accounts, transfers and entries change only through the functions in `billing/sql/ledger.sql`.
"""

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import BigIntegerRangeField, RangeOperators
from django.db import models
from django.db.models.functions import Now

from billing.domain.accounts import AccountKind
from billing.domain.lines import Rate, ruled_amount
from billing.domain.states import (
    AGREEMENT_MOVES,
    TOP_UP_MOVES,
    USAGE_MOVES,
    AgreementState,
    Phase,
    TopUpState,
    UsageState,
)
from billing.querysets import (
    AccountQuerySet,
    AgreementQuerySet,
    EntryQuerySet,
    TopUpQuerySet,
    UsageRecordQuerySet,
)
from fabric.accounts.models import Organisation
from fabric.lib.models import AppendOnlyModel, PublicModel

LEDGER_PRIVILEGES = ("SELECT",)  # of the runtime role; writing is the ledger functions' alone


class Account(models.Model):
    """A place money can be, with the four counters of two-phase bookkeeping, in micro-units."""

    RUNTIME_PRIVILEGES: ClassVar[tuple[str, ...]] = LEDGER_PRIVILEGES

    id = models.BigAutoField(
        primary_key=True, help_text="Ordered by kind first: the order in which rows are locked."
    )
    code = models.CharField(max_length=80, unique=True, help_text="wallet:org_…, escrow:agr_…, …")
    kind = models.CharField(max_length=24, choices=AccountKind.choices())
    owner = models.CharField(max_length=40, blank=True, db_index=True, help_text="Public id.")
    never_negative = models.BooleanField()
    debits_posted = models.BigIntegerField(default=0)
    credits_posted = models.BigIntegerField(default=0)
    debits_pending = models.BigIntegerField(default=0)
    credits_pending = models.BigIntegerField(default=0)
    closed_at = models.DateTimeField(null=True, blank=True)

    objects = AccountQuerySet.as_manager()

    class Meta:
        ordering = ["code"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    debits_posted__gte=0,
                    credits_posted__gte=0,
                    debits_pending__gte=0,
                    credits_pending__gte=0,
                ),
                name="counters_only_count_up_from_zero",
            ),
            models.CheckConstraint(
                condition=models.Q(never_negative=False)
                | models.Q(
                    credits_posted__gte=models.F("debits_posted") + models.F("debits_pending")
                ),
                name="an_account_holds_at_least_what_is_promised",
            ),
        ]

    def __str__(self) -> str:
        return self.code

    @property
    def available_micros(self) -> int:
        """What can still leave the account: posted credits less posted and pending debits."""
        return self.credits_posted - self.debits_posted - self.debits_pending

    @property
    def balance_micros(self) -> int:
        """What the account holds, whether promised away already or not."""
        return self.credits_posted - self.debits_posted


class Agreement(PublicModel):
    """One buyer, one provider, one escrow; what terms and usage hang on. Parties never change."""

    PREFIX: ClassVar[str] = "agr"

    buyer = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    provider = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    escrow = models.OneToOneField(Account, on_delete=models.PROTECT, related_name="agreement")
    state = models.CharField(
        max_length=16, choices=AgreementState.choices(), default=AgreementState.OPEN
    )
    counter = models.BigIntegerField(
        default=0, help_text="Quantity recorded so far: where the next usage record begins."
    )
    created_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    objects = AgreementQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(buyer=models.F("provider")),
                name="nobody_buys_from_themselves",
            )
        ]
        triggers = [
            pgtrigger.ReadOnly(name="parties_never_change", fields=["buyer", "provider", "escrow"]),
            pgtrigger.FSM(
                name="agreement_state_moves", field="state", transitions=list(AGREEMENT_MOVES)
            ),
        ]

    def __str__(self) -> str:
        return self.public_id


class Terms(PublicModel, AppendOnlyModel):
    """What both sides agreed: price and rules, pinned by hash; a change is a new version."""

    PREFIX: ClassVar[str] = "trm"

    agreement = models.ForeignKey(Agreement, on_delete=models.PROTECT, related_name="terms")
    version = models.PositiveIntegerField()
    body = models.JSONField(
        help_text="Everything that was agreed, including the revision's digest."
    )
    canonical = models.BinaryField(help_text="RFC 8785 bytes of the body.")
    digest = models.BinaryField(max_length=32, unique=True)
    parameters_digest = models.BinaryField(max_length=32, help_text="The commercial parameters.")
    price_micros = models.BigIntegerField(help_text="Per `per_quantity` of `meter_unit`, per unit.")
    per_quantity = models.BigIntegerField()
    meter_unit = models.CharField(max_length=24, default="accelerator-second")
    units = models.PositiveIntegerField(help_text="Units that run at once and are each charged.")
    window_seconds = models.PositiveIntegerField()
    dispute_window_seconds = models.PositiveIntegerField()
    effective_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["agreement", "-version"]
        verbose_name_plural = "terms"
        constraints = [
            models.UniqueConstraint(
                fields=["agreement", "version"], name="a_terms_version_has_one_text"
            ),
            models.CheckConstraint(
                condition=models.Q(price_micros__gte=0, per_quantity__gt=0, units__gt=0),
                name="a_price_is_not_negative_and_per_something",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agreement_id} terms {self.version}"

    @property
    def rate(self) -> Rate:
        """The price of all units together, as lines are computed from it."""
        return Rate(
            price_micros=self.price_micros, per_quantity=self.per_quantity, units=self.units
        )


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
        "Transfer", on_delete=models.PROTECT, null=True, blank=True, related_name="usage_record"
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


class Transfer(AppendOnlyModel):
    """A movement of money, or the promise of one, or what became of the promise."""

    RUNTIME_PRIVILEGES: ClassVar[tuple[str, ...]] = LEDGER_PRIVILEGES

    id = models.BigAutoField(primary_key=True)
    idempotency_key = models.CharField(max_length=200, unique=True)
    request_hash = models.BinaryField(max_length=32)
    phase = models.CharField(max_length=8, choices=Phase.choices())
    kind = models.CharField(max_length=24, help_text="top_up, order, reserve, settle, return, …")
    pending = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="resolutions"
    )
    amount_micros = models.BigIntegerField()
    debit_account = models.ForeignKey(
        Account, on_delete=models.PROTECT, null=True, related_name="+"
    )
    credit_account = models.ForeignKey(
        Account, on_delete=models.PROTECT, null=True, related_name="+"
    )
    record = models.ForeignKey(
        UsageRecord, on_delete=models.PROTECT, null=True, blank=True, related_name="transfers"
    )
    effective_at = models.DateTimeField(help_text="When it counts, by the caller's clock.")
    booked_at = models.DateTimeField(db_default=Now())

    class Meta(AppendOnlyModel.Meta):
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(amount_micros__gte=0), name="a_transfer_is_not_negative"
            ),
            models.CheckConstraint(
                condition=models.Q(phase__in=["post", "void"], pending__isnull=False)
                | models.Q(phase__in=["single", "pending"], pending__isnull=True),
                name="a_post_or_void_resolves_a_pending",
            ),
            models.UniqueConstraint(
                fields=["pending"],
                condition=models.Q(pending__isnull=False),
                name="a_pending_is_resolved_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.phase} {self.amount_micros}"


class Entry(AppendOnlyModel):
    """One leg of a booked transfer: debit positive, credit negative; a transfer's legs sum to 0."""

    RUNTIME_PRIVILEGES: ClassVar[tuple[str, ...]] = LEDGER_PRIVILEGES

    id = models.BigAutoField(primary_key=True)
    transfer = models.ForeignKey(
        Transfer, on_delete=models.DO_NOTHING, db_constraint=False, related_name="entries"
    )
    account = models.ForeignKey(
        Account, on_delete=models.DO_NOTHING, db_constraint=False, related_name="entries"
    )
    amount_micros = models.BigIntegerField()

    objects = EntryQuerySet.as_manager()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["id"]
        verbose_name_plural = "entries"
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(amount_micros=0), name="an_entry_moves_something"
            )
        ]

    def __str__(self) -> str:
        return f"{self.account_id} {self.amount_micros}"


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


class PaymentCustomer(models.Model):
    """The card processor's name for an organisation, made at its first top-up."""

    organisation = models.OneToOneField(Organisation, on_delete=models.PROTECT, primary_key=True)
    customer_id = models.CharField(max_length=120, unique=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.customer_id


class TopUp(PublicModel):
    """A card payment into a wallet; credited once, however often Stripe tells of it."""

    PREFIX: ClassVar[str] = "top"

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    amount_micros = models.BigIntegerField()
    state = models.CharField(
        max_length=16, choices=TopUpState.choices(), default=TopUpState.CREATED
    )
    checkout_session = models.CharField(max_length=120, unique=True, null=True, blank=True)
    payment_intent = models.CharField(max_length=120, unique=True, null=True, blank=True)
    checkout_url = models.TextField(blank=True)
    request_key = models.CharField(
        max_length=64, blank=True, help_text="Digest of the caller's idempotency key, if any."
    )
    created_by = models.CharField(max_length=80)
    created_at = models.DateTimeField()
    paid_at = models.DateTimeField(null=True, blank=True)

    objects = TopUpQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(amount_micros__gt=0), name="a_top_up_is_more_than_nothing"
            ),
            models.CheckConstraint(
                condition=~models.Q(state="paid")
                | models.Q(paid_at__isnull=False, payment_intent__isnull=False),
                name="a_paid_top_up_names_its_payment",
            ),
            models.UniqueConstraint(
                fields=["organisation", "request_key"],
                condition=~models.Q(request_key=""),
                name="a_request_starts_one_top_up",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="what_is_topped_up_never_changes", fields=["organisation", "amount_micros"]
            ),
            pgtrigger.FSM(name="top_up_state_moves", field="state", transitions=list(TOP_UP_MOVES)),
        ]

    def __str__(self) -> str:
        return self.public_id


class StripeEvent(models.Model):
    """The inbox of verified webhooks: unique by event id, worked off by a task."""

    id = models.CharField(primary_key=True, max_length=120)
    kind = models.CharField(max_length=80)
    payload = models.JSONField()
    received_at = models.DateTimeField()
    processed_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(help_text="The sweep leaves it alone until then.")
    failure = models.TextField(blank=True, help_text="Why the last attempt did not work.")

    class Meta:
        ordering = ["-received_at"]
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=models.Q(processed_at__isnull=True),
                name="stripe_events_due",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"
