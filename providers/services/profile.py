"""A provider changes what it says about where its capacity stands."""

from datetime import datetime

from django.db import transaction

from fabric.accounts.domain.actors import Actor
from fabric.journal.services.audit import record_audit
from providers.domain.profiles import Profile, read_profile
from providers.models import Provider
from providers.services.nodes import require_provider


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


def _profile_of(provider: Provider) -> Profile:
    return Profile(
        name=provider.name,
        country=provider.country,
        region=provider.region,
        pool=provider.pool,
        facility=provider.facility,
    )
