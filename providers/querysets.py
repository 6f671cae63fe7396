"""Questions that providers' rows answer; `visible_to` is the only door for tenants."""

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from django.db import models

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from providers.domain.challenges import OPEN_CHALLENGE_STATES, ChallengeState
from providers.domain.inventory import INVENTORY_CHANGED
from providers.domain.nodes import NodeState

if TYPE_CHECKING:
    from providers.models import (  # noqa: F401 - named in strings that ruff does not read
        Challenge,
        Device,
        EnrolmentToken,
        HardwareReport,
        Hold,
        Node,
        Provider,
        Unit,
    )

Row_co = TypeVar("Row_co", bound=models.Model, covariant=True)


class TenantQuerySet(models.QuerySet[Row_co]):
    """Rows that belong to a provider's organisation."""

    organisation_path: ClassVar[str] = "provider__organisation"

    def visible_to(self, actor: Actor) -> Self:
        """Return the rows this actor may see: an operator all, a tenant its own."""
        if actor.is_operator:
            return self
        if actor.organisation_id is None or Right.SEE not in actor.rights:
            return self.none()
        return self.filter(**{self.organisation_path: actor.organisation_id})


class ProviderQuerySet(TenantQuerySet["Provider"]):
    """Providers."""

    organisation_path = "organisation"


class EnrolmentTokenQuerySet(TenantQuerySet["EnrolmentToken"]):
    """Enrolment tokens."""

    def usable(self, *, now: datetime) -> Self:
        """Return the tokens that can still enrol a machine."""
        return self.filter(used_at__isnull=True, revoked_at__isnull=True, expires_at__gt=now)


class NodeQuerySet(TenantQuerySet["Node"]):
    """Nodes."""

    def standing(self) -> Self:
        """Return the nodes that are not retired."""
        return self.exclude(state=NodeState.RETIRED)

    def changed_under_lease(self) -> Self:
        """Return the nodes that are to be tested once the lease on them has ended."""
        return self.filter(
            state=NodeState.HELD_BACK, held_back_reasons__contains=[{"code": INVENTORY_CHANGED}]
        )


class ReportQuerySet(TenantQuerySet["HardwareReport"]):
    """Hardware reports."""

    organisation_path = "node__provider__organisation"


class ChallengeQuerySet(TenantQuerySet["Challenge"]):
    """Challenges."""

    organisation_path = "node__provider__organisation"

    def open(self) -> Self:
        """Return the challenges whose exchange has not come to its end."""
        return self.filter(state__in=OPEN_CHALLENGE_STATES)

    def answered(self) -> Self:
        """Return the challenges that wait for their judge, oldest first."""
        return self.filter(state=ChallengeState.ANSWERED).order_by("answered_at")


class DeviceQuerySet(TenantQuerySet["Device"]):
    """Devices."""

    organisation_path = "node__provider__organisation"


class UnitQuerySet(TenantQuerySet["Unit"]):
    """Units."""

    organisation_path = "device__node__provider__organisation"

    def offered(self) -> Self:
        """Return the units that their node offers now."""
        return self.filter(active=True, device__present=True)


class HoldQuerySet(TenantQuerySet["Hold"]):
    """Holds."""

    organisation_path = "device__node__provider__organisation"

    def in_force(self, *, now: datetime) -> Self:
        """Return the holds that keep their slots at `now` or later."""
        return self.filter(live=True, period__endswith__gt=now)
