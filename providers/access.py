"""Finding one object for one actor; what an actor may not see does not exist for it."""

from typing import TypeVar

from fabric.accounts.domain.actors import Actor
from fabric.lib.errors import NotVisible
from fabric.lib.models import PublicModel
from providers.models import Challenge, EnrolmentToken, HardwareReport, Node, Provider
from providers.querysets import TenantQuerySet

Row = TypeVar("Row", bound=PublicModel)


def access_provider(*, actor: Actor) -> Provider:
    """Return the provider that the actor's organisation is, or raise NotVisible if it is none."""
    provider = None
    if actor.organisation_id is not None:
        provider = (
            Provider.objects.visible_to(actor)
            .filter(organisation_id=actor.organisation_id)
            .select_related("organisation")
            .first()
        )
    if provider is None:
        raise NotVisible(
            "Your organisation is not a provider.", suggestion="Become one at /provider/."
        )
    return provider


def access_node(*, actor: Actor, public_id: str) -> Node:
    """Return the node with this public id, or raise NotVisible."""
    rows = Node.objects.visible_to(actor).select_related("provider__organisation", "beat")
    return _one(rows, Node, public_id)


def access_enrolment_token(*, actor: Actor, public_id: str) -> EnrolmentToken:
    """Return the enrolment token with this public id, or raise NotVisible."""
    rows = EnrolmentToken.objects.visible_to(actor).select_related("provider__organisation")
    return _one(rows, EnrolmentToken, public_id)


def access_challenge(*, actor: Actor, public_id: str) -> Challenge:
    """Return the challenge with this public id, or raise NotVisible."""
    rows = Challenge.objects.visible_to(actor).select_related("node__provider")
    return _one(rows, Challenge, public_id)


def access_report(*, actor: Actor, public_id: str) -> HardwareReport:
    """Return the hardware report with this public id, or raise NotVisible."""
    rows = HardwareReport.objects.visible_to(actor).select_related("node__provider")
    return _one(rows, HardwareReport, public_id)


def _one(rows: TenantQuerySet[Row], model: type[Row], public_id: str) -> Row:
    try:
        key = model.key_from(public_id)
    except ValueError:
        key = None
    row = rows.filter(pk=key).first() if key is not None else None
    if row is None:
        raise NotVisible(f"There is no {model._meta.verbose_name} {public_id}.")
    return row
