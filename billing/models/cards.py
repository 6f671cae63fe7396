"""Money that comes in by card: who pays, what they pay, and what the processor tells of it."""

from typing import ClassVar

import pgtrigger
from django.db import models

from billing.domain.states import TOP_UP_MOVES, TopUpState
from billing.querysets import TopUpQuerySet
from fabric.accounts.models import Organisation
from fabric.lib.models import PublicModel


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
