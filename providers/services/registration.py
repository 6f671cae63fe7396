"""How an organisation becomes a provider: once, by describing where its capacity stands."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.accounts.models import Organisation
from fabric.journal.services.audit import record_audit
from fabric.journal.services.events import record_event
from fabric.lib.errors import DomainError, NotAllowed
from providers.domain.profiles import read_profile
from providers.models import Provider


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
    profile = read_profile(
        name=organisation.name[:80], country=country, region=region, pool=pool, facility=facility
    )
    slug = f"{slugify(organisation.name)[:44] or 'provider'}-{organisation.public_id[-8:]}"
    try:
        with transaction.atomic():
            provider = Provider.objects.create(
                organisation=organisation, slug=slug, **profile.as_json()
            )
    except IntegrityError as error:
        raise AlreadyProvider("This organisation is a provider already.") from error
    after = profile.as_json()
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
