"""Accounts, transfers and entries; they change only through `billing/sql/ledger.sql`."""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from billing.domain.accounts import AccountKind
from billing.domain.states import Phase
from billing.querysets import AccountQuerySet, EntryQuerySet
from fabric.lib.models import AppendOnlyModel

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
        "billing.UsageRecord",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="transfers",
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
