"""What buyers asked for and paid into escrow."""

from typing import ClassVar

import pgtrigger
from django.db import models

from fabric.accounts.models import Organisation, Project
from fabric.lib.models import PublicModel
from leases.querysets import OrderQuerySet
from listings.models import Listing, Revision


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
