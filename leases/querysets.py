"""Questions that rows of leases answer; `visible_to` is the only door for tenants."""

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from django.db import models
from django.db.models import Q

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from leases.domain.states import LIVE, DisputeState, LeaseState, WindowState

if TYPE_CHECKING:
    from leases.models import (  # noqa: F401 - named in strings that ruff does not read
        Batch,
        Dispute,
        Lease,
        LeaseWindow,
        Order,
        Reading,
    )

Row_co = TypeVar("Row_co", bound=models.Model, covariant=True)


class PartyQuerySet(models.QuerySet[Row_co]):
    """Rows of a lease, seen by its buyer and by its provider."""

    lease_path: ClassVar[str] = "lease__"

    def visible_to(self, actor: Actor) -> Self:
        """Return the rows this actor may see: an operator all, a party its own.

        A key sees what its project buys; what its organisation provides belongs to no project.
        """
        if actor.is_operator:
            return self
        if actor.organisation_id is None or Right.SEE not in actor.rights:
            return self.none()
        return self.filter(self._bought_by(actor) | self._provided_by(actor))

    def bought_by(self, actor: Actor) -> Self:
        """Return the rows whose buyer is the actor's organisation, within its key's project."""
        return self.none() if actor.organisation_id is None else self.filter(self._bought_by(actor))

    def provided_by(self, actor: Actor) -> Self:
        """Return the rows whose provider is the actor's organisation."""
        return (
            self.none() if actor.organisation_id is None else self.filter(self._provided_by(actor))
        )

    def _bought_by(self, actor: Actor) -> Q:
        rows = Q(**{f"{self.lease_path}organisation": actor.organisation_id})
        if actor.project_id is not None:
            rows &= Q(**{f"{self.lease_path}project": actor.project_id})
        return rows

    def _provided_by(self, actor: Actor) -> Q:
        return Q(**{f"{self.lease_path}provider__organisation": actor.organisation_id})


class OrderQuerySet(models.QuerySet["Order"]):
    """Orders; a provider sees the lease that came of one, never the order."""

    def visible_to(self, actor: Actor) -> Self:
        """Return the orders of the actor's organisation and, for a key, of its project."""
        if actor.is_operator:
            return self
        if actor.organisation_id is None or Right.SEE not in actor.rights:
            return self.none()
        rows = self.filter(organisation=actor.organisation_id)
        return rows if actor.project_id is None else rows.filter(project=actor.project_id)


class LeaseQuerySet(PartyQuerySet["Lease"]):
    """Leases."""

    lease_path = ""

    def with_parties(self) -> Self:
        """Return the leases with what a page or a service reads beside them."""
        return self.select_related(
            "order",
            "agreement__escrow",
            "organisation",
            "project",
            "provider__organisation",
            "node__hardware_class",
            "revision__listing",
        )

    def live(self) -> Self:
        """Return the leases that are not over."""
        return self.filter(state__in=[state.value for state in LIVE])

    def due(self, *, now: datetime) -> Self:
        """Return the leases the sweep has to look at, longest waiting first."""
        return self.filter(due_at__lte=now).order_by("due_at")

    def probe_due(self, *, now: datetime) -> Self:
        """Return the leases whose workload has to be looked at from outside."""
        return self.filter(
            probe_due_at__lte=now,
            state__in=[LeaseState.PROVISIONING, LeaseState.ACTIVE, LeaseState.INTERRUPTED],
        ).order_by("probe_due_at")


class LeaseWindowQuerySet(models.QuerySet["LeaseWindow"]):
    """Windows reserved ahead."""

    def reserved(self) -> Self:
        """Return the windows whose price is reserved and that have no reading yet."""
        return self.filter(state=WindowState.RESERVED)


class BatchQuerySet(PartyQuerySet["Batch"]):
    """Signed batches, accepted or not."""

    lease_path = "stream__lease__"


class ReadingQuerySet(PartyQuerySet["Reading"]):
    """Readings."""


class DisputeQuerySet(PartyQuerySet["Dispute"]):
    """Disputes."""

    def open(self) -> Self:
        """Return the disputes that wait for a ruling."""
        return self.filter(state=DisputeState.OPEN)
