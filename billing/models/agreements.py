"""Who buys from whom, on which terms, and through which escrow."""

from typing import ClassVar

import pgtrigger
from django.db import models

from billing.domain.lines import Rate
from billing.domain.states import AGREEMENT_MOVES, AgreementState
from billing.models.ledger import Account
from billing.querysets import AgreementQuerySet
from fabric.accounts.models import Organisation
from fabric.lib.models import AppendOnlyModel, PublicModel


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
    meter_unit = models.CharField(max_length=24, help_text="Such as accelerator_second.")
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
