"""How an organisation becomes a provider: once, by describing where its capacity stands."""

import re
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.accounts.models import Organisation
from fabric.journal.services.audit import record_audit
from fabric.journal.services.events import record_event
from fabric.lib.errors import DomainError, FieldError, InvalidInput, NotAllowed
from providers.domain.nodes import Pool
from providers.models import Provider

_COUNTRY = re.compile(r"^[A-Z]{2}$")
_REGION = re.compile(r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")


class AlreadyProvider(DomainError):
    """The organisation is a provider; there is one description of it."""

    code = "ALREADY_PROVIDER"


@transaction.atomic
def register_provider(
    *,
    actor: Actor,
    organisation: Organisation,
    country: str,
    region: str,
    pool: str,
    now: datetime,
    facility: str = "",
) -> Provider:
    """Make the actor's organisation a provider; what it declares here decides no tier."""
    if actor.organisation_id != organisation.pk:
        raise NotAllowed("Only a member offers an organisation's capacity.")
    actor.require(Right.PROVIDE)
    _check(country=country, region=region, pool=pool, facility=facility)
    slug = f"{slugify(organisation.name)[:44] or 'provider'}-{organisation.public_id[-8:]}"
    try:
        with transaction.atomic():
            provider = Provider.objects.create(
                organisation=organisation,
                name=organisation.name[:80],
                slug=slug,
                country=country,
                region=region,
                pool=pool,
                facility=facility,
            )
    except IntegrityError as error:
        raise AlreadyProvider("This organisation is a provider already.") from error
    after = {"country": country, "region": region, "pool": pool}
    record_audit(
        actor=actor.id,
        action="provider.was_registered",
        subject=provider.public_id,
        after=after,
        now=now,
    )
    record_event(
        kind="provider.was_registered",
        subject=provider.public_id,
        actor=actor.id,
        organisations=[organisation.public_id],
        data=after,
        now=now,
    )
    return provider


def _check(*, country: str, region: str, pool: str, facility: str) -> None:
    errors = []
    if not _COUNTRY.match(country):
        errors.append(FieldError("country", "not a country code", "two capitals, such as DE"))
    if not _REGION.match(region) or len(region) > 40:
        errors.append(
            FieldError("region", "not a region", "small letters, digits and dashes: eu-central")
        )
    if pool not in {one.value for one in Pool}:
        errors.append(FieldError("pool", "not a pool", ", ".join(one.value for one in Pool)))
    if len(facility) > 80 or "\x00" in facility:
        errors.append(FieldError("facility", "too long", "at most 80 characters"))
    if errors:
        raise InvalidInput("The provider cannot be described so.", errors=tuple(errors))
