"""An organisation becomes a provider, and says where its capacity stands."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.accounts.models import Organisation
from fabric.journal.services.audit import record_audit
from fabric.journal.services.events import record_event
from fabric.lib.errors import NotVisible, WrongState
from providers.domain.profiles import Profile, read_profile
from providers.models import Provider
from providers.services.nodes import require_provider

_TRIES = 20


@transaction.atomic
def become_provider(
    *,
    actor: Actor,
    organisation: Organisation,
    name: str,
    country: str,
    region: str,
    pool: str,
    facility: str,
    now: datetime,
) -> Provider:
    """Let an organisation offer capacity. What it declares decides nothing and is shown as such."""
    if actor.organisation_id != organisation.pk and not actor.is_operator:
        raise NotVisible("There is no such organisation.")
    actor.require(Right.PROVIDE)
    profile = read_profile(name=name, country=country, region=region, pool=pool, facility=facility)
    if Provider.objects.filter(organisation=organisation).exists():
        raise WrongState(f"{organisation.name} is a provider already.")
    provider = _create(organisation, profile)
    record_event(
        kind="provider.created",
        subject=provider.public_id,
        actor=actor.id,
        organisations=[organisation.public_id],
        data=profile.as_json(),
        now=now,
    )
    return provider


@transaction.atomic
def change_profile(
    *,
    actor: Actor,
    provider: Provider,
    name: str,
    country: str,
    region: str,
    pool: str,
    facility: str,
    now: datetime,
) -> Provider:
    """Change what a provider declares; listings keep what their revisions say."""
    require_provider(actor=actor, provider=provider)
    profile = read_profile(name=name, country=country, region=region, pool=pool, facility=facility)
    row = Provider.objects.select_for_update().select_related("organisation").get(pk=provider.pk)
    before = _profile_of(row).as_json()
    for field, value in profile.as_json().items():
        setattr(row, field, value)
    row.save(update_fields=list(profile.as_json()))
    record_audit(
        actor=actor.id,
        action="provider.change",
        subject=row.public_id,
        before=before,
        after=profile.as_json(),
        now=now,
    )
    return row


def _create(organisation: Organisation, profile: Profile) -> Provider:
    """Insert the row under the first free slug; names may repeat, addresses may not."""
    base = slugify(profile.name)[:50] or "provider"
    for number in range(1, _TRIES):
        slug = base if number == 1 else f"{base}-{number}"
        try:
            with transaction.atomic():
                return Provider.objects.create(
                    organisation=organisation, slug=slug, **profile.as_json()
                )
        except IntegrityError:
            if Provider.objects.filter(organisation=organisation).exists():
                raise WrongState(f"{organisation.name} is a provider already.") from None
    raise WrongState("Too many providers have this name.", suggestion="Choose another.")


def _profile_of(provider: Provider) -> Profile:
    return Profile(
        name=provider.name,
        country=provider.country,
        region=provider.region,
        pool=provider.pool,
        facility=provider.facility,
    )
