"""Who may see which rows about money, and the questions asked of them."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from billing.domain.states import UsageState
from fabric.accounts.domain.actors import Actor
from fabric.lib import ids

if TYPE_CHECKING:
    from billing.models import (  # noqa: F401
        Account,
        Agreement,
        Entry,
        TopUp,
        UsageRecord,
    )

ORGANISATION_PREFIX = "org"


class AccountQuerySet(models.QuerySet["Account"]):
    """Accounts: a tenant sees its own wallet and earnings, and the escrows it funded."""

    def visible_to(self, actor: Actor) -> "AccountQuerySet":
        """Return the accounts whose balance and entries this actor may read."""
        return self.filter(_accounts_of(actor))


class EntryQuerySet(models.QuerySet["Entry"]):
    """Legs of booked transfers."""

    def visible_to(self, actor: Actor) -> "EntryQuerySet":
        """Return the legs on accounts that this actor may read."""
        return self.filter(_accounts_of(actor, through="account__"))


class AgreementQuerySet(models.QuerySet["Agreement"]):
    """Agreements, seen by both their parties."""

    def visible_to(self, actor: Actor) -> "AgreementQuerySet":
        """Return the agreements in which this actor's organisation buys or provides."""
        return self.filter(_party(actor))


class UsageRecordQuerySet(models.QuerySet["UsageRecord"]):
    """Metered windows, seen by both parties of their agreement."""

    def visible_to(self, actor: Actor) -> "UsageRecordQuerySet":
        """Return the records of agreements in which this actor's organisation is a party."""
        return self.filter(_party(actor, through="agreement__"))

    def due(self, now: datetime) -> "UsageRecordQuerySet":
        """Return the lines that can no longer be disputed and still wait to be booked."""
        return self.filter(
            state=UsageState.PENDING, disputable_until__lte=now, quarantined_at__isnull=True
        )


class TopUpQuerySet(models.QuerySet["TopUp"]):
    """Card payments into wallets."""

    def visible_to(self, actor: Actor) -> "TopUpQuerySet":
        """Return the top-ups of this actor's organisation."""
        if actor.is_operator:
            return self.all()
        return self.filter(_is("organisation_id", actor))


def _party(actor: Actor, *, through: str = "") -> Q:
    if actor.is_operator:
        return Q()
    return _is(f"{through}buyer_id", actor) | _is(f"{through}provider_id", actor)


def _accounts_of(actor: Actor, *, through: str = "") -> Q:
    if actor.is_operator:
        return Q()
    owner = (
        ids.to_public(ORGANISATION_PREFIX, actor.organisation_id) if actor.organisation_id else None
    )
    own = Q(**{f"{through}owner": owner, f"{through}kind__in": ["wallet", "earned"]})
    return own | _is(f"{through}agreement__buyer_id", actor)


def _is(lookup: str, actor: Actor) -> Q:
    conditions: dict[str, Any] = {lookup: actor.organisation_id}
    return Q(**conditions) if actor.organisation_id else Q(pk__in=[])
