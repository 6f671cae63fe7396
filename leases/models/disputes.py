"""Claims that a reading is wrong, and how they were ruled."""

from typing import ClassVar

from django.db import models

from fabric.lib.models import PublicModel
from leases.domain.states import WHOLE_BPS, DisputeState, Outcome, Side, outcome_of
from leases.models.leases import Lease
from leases.models.metering import Reading
from leases.querysets import DisputeQuerySet


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
