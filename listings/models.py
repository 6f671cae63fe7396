"""Promises in structured fields: listings, their immutable revisions, and what checks found."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from fabric.lib.models import AppendOnlyModel, PublicModel
from listings.domain.states import ListingState
from listings.querysets import ListingQuerySet
from providers.models import Challenge, HardwareReport, Node, Provider

UNMEASURED_RANK = 2**63 - 1  # Nothing was measured: last in the order of the catalogue.


class Listing(PublicModel):
    """What a provider offers on one node.

    The columns below `state` mirror the current revision for search; the promise itself is
    `current_revision.body` and nothing else.
    """

    PREFIX: ClassVar[str] = "lst"

    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="listings")
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="listings")
    kind = models.SlugField(max_length=40, default="accelerator", help_text="Names the schema.")
    state = models.CharField(
        max_length=16, choices=ListingState.choices(), default=ListingState.CHECKING
    )
    current_revision = models.ForeignKey(
        "Revision",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The revision buyers see: the newest one whose check accepted it.",
    )
    title = models.CharField(max_length=120)
    class_slug = models.SlugField(max_length=60, db_index=True)
    tier = models.CharField(max_length=16, blank=True)
    unit_count = models.PositiveSmallIntegerField(default=1)
    unit_kind = models.CharField(max_length=8, default="whole")
    memory_mib = models.PositiveIntegerField(default=0, help_text="Per accelerator, promised.")
    price_micros_per_hour = models.BigIntegerField(default=0, help_text="Per accelerator-hour.")
    region = models.SlugField(max_length=40)
    country = models.CharField(max_length=2)
    isolation = models.CharField(max_length=16, default="none")
    interruptible = models.BooleanField(default=False)
    suits = ArrayField(models.CharField(max_length=16), default=list)
    simulated = models.BooleanField(default=False)
    measured_memory_mib = models.PositiveIntegerField(
        null=True, blank=True, help_text="Per accelerator, as the accepted check found it."
    )
    measured_gops = models.FloatField(
        null=True, blank=True, help_text="Integer matrix product, as the accepted check found it."
    )
    micros_per_peta_hour = models.BigIntegerField(
        default=UNMEASURED_RANK,
        help_text="Price of 1,000,000 measured GOPS for an hour; the order of the catalogue.",
    )
    created_at = models.DateTimeField()
    published_at = models.DateTimeField(null=True, blank=True)

    objects = ListingQuerySet.as_manager()

    class Meta:
        ordering = ["micros_per_peta_hour", "price_micros_per_hour", "id"]
        indexes = [
            models.Index(
                fields=["micros_per_peta_hour", "price_micros_per_hour", "id"],
                condition=models.Q(state="published"),
                name="catalogue_order",
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(state="published") | models.Q(current_revision__isnull=False),
                name="a_published_listing_has_an_accepted_revision",
            ),
            models.CheckConstraint(
                condition=models.Q(price_micros_per_hour__gte=0),
                name="a_listing_costs_nothing_or_more",
            ),
        ]

    def __str__(self) -> str:
        return self.title


class Revision(PublicModel, AppendOnlyModel):
    """One text of a promise; content-addressed, never edited."""

    PREFIX: ClassVar[str] = "rev"

    listing = models.ForeignKey(Listing, on_delete=models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField()
    body = models.JSONField()
    canonical = models.BinaryField(help_text="RFC 8785 bytes of the body.")
    digest = models.BinaryField(max_length=32, help_text="SHA-256 of `canonical`.")
    created_by = models.CharField(max_length=80, help_text="Public id of a person, key or node.")
    created_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["listing", "number"], name="a_revision_number_is_used_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.listing_id} revision {self.number}"


class RevisionCheck(PublicModel, AppendOnlyModel):
    """The comparison of a revision's promises with what its node has shown."""

    PREFIX: ClassVar[str] = "chk"

    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="checks")
    report = models.ForeignKey(
        HardwareReport, on_delete=models.PROTECT, null=True, related_name="+"
    )
    challenge = models.ForeignKey(Challenge, on_delete=models.PROTECT, null=True, related_name="+")
    accepted = models.BooleanField()
    fields = models.JSONField(
        help_text="[{field, promised, measured, unit, verdict, tolerance, method, reason}]"
    )
    checked_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["-checked_at"]

    def __str__(self) -> str:
        return self.public_id
