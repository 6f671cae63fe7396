"""Agreements, the ledger, usage records and card payments.

Accounts, transfers and entries change only through the functions in `billing/sql/ledger.sql`.
"""

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import BigIntegerRangeField
from django.db import models
from django.db.models.functions import Now

from billing.domain.states import AgreementState, Phase, TopUpState, UsageState
from fabric.accounts.models import Organisation
from fabric.lib.models import AppendOnlyModel, PublicModel


class Account(models.Model):
    """A place money can be, with the four counters of two-phase bookkeeping, in micro-units."""

    id = models.BigAutoField(primary_key=True)
    code = models.CharField(max_length=80, unique=True, help_text="wallet:org_…, escrow:agr_…, …")
    kind = models.CharField(
        max_length=24, help_text="wallet, escrow, unsettled, earned, fee, cash, …"
    )
    owner = models.CharField(max_length=40, blank=True, db_index=True, help_text="Public id.")
    never_negative = models.BooleanField()
    debits_posted = models.BigIntegerField(default=0)
    credits_posted = models.BigIntegerField(default=0)
    debits_pending = models.BigIntegerField(default=0)
    credits_pending = models.BigIntegerField(default=0)
    closed_at = models.DateTimeField(null=True, blank=True)

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

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(buyer=models.F("provider")),
                name="nobody_buys_from_themselves",
            )
        ]
        triggers = [
            pgtrigger.ReadOnly(name="parties_never_change", fields=["buyer", "provider", "escrow"])
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


class UsageRecord(PublicModel):
    """One metered window: the single source of the buyer's charge and the provider's pay."""

    PREFIX: ClassVar[str] = "usg"

    agreement = models.ForeignKey(Agreement, on_delete=models.PROTECT, related_name="usage_records")
    terms = models.ForeignKey(Terms, on_delete=models.PROTECT, related_name="+")
    window_index = models.BigIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    quantity = BigIntegerRangeField(help_text="Half-open on the agreement's counter.")
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
        ]
        indexes = [models.Index(fields=["state", "disputable_until"], name="usage_due")]

    def __str__(self) -> str:
        return self.public_id


class Transfer(AppendOnlyModel):
    """A movement of money, or the promise of one, or what became of the promise."""

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

    id = models.BigAutoField(primary_key=True)
    transfer = models.ForeignKey(
        Transfer, on_delete=models.DO_NOTHING, db_constraint=False, related_name="entries"
    )
    account = models.ForeignKey(
        Account, on_delete=models.DO_NOTHING, db_constraint=False, related_name="entries"
    )
    amount_micros = models.BigIntegerField()

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
    created_by = models.CharField(max_length=80)
    created_at = models.DateTimeField()
    paid_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(amount_micros__gt=0), name="a_top_up_is_more_than_nothing"
            )
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
    failure = models.TextField(blank=True)

    class Meta:
        ordering = ["-received_at"]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"
