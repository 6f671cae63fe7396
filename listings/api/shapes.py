"""Inputs and outputs of the listing endpoints; the field table of the kind is their schema."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from fabric.accounts.api.pages import PageQuery
from listings.api.schema import body_schema, promise_schema
from listings.domain.prices import normalise
from listings.domain.states import ListingState, Suitability
from listings.domain.suitability import advise
from listings.filters import DEFAULT_SORT, NONE, SORTS
from listings.models import UNMEASURED_RANK, Listing, Revision, RevisionCheck
from listings.selectors import promise_of
from providers.domain.nodes import Tier


@extend_schema_field(body_schema())
class BodyField(serializers.JSONField):
    """A listing's body; the kind's table reads it, so that every door refuses alike."""


@extend_schema_field(promise_schema())
class PromiseField(serializers.JSONField):
    """Field → value, in the units the kind's table names."""


class ListingInput(serializers.Serializer[Any]):
    """A listing to be published."""

    node = serializers.CharField(max_length=40, help_text="Public id of the node, nod_….")
    body = BodyField()


class ListingEditInput(serializers.Serializer[Any]):
    """The next text of a listing."""

    body = BodyField()


class ListingQuery(PageQuery):
    """The catalogue's filters; the same names stand in the catalogue page's address."""

    device_class = serializers.ListField(child=serializers.CharField(), required=False)
    memory_mib_min = serializers.IntegerField(required=False, min_value=0)
    memory_mib_max = serializers.IntegerField(required=False, min_value=0)
    unit_count_min = serializers.IntegerField(required=False, min_value=1)
    price_max = serializers.CharField(
        required=False, help_text="Per accelerator-hour, a plain decimal such as 3.20."
    )
    suits = serializers.MultipleChoiceField(
        choices=[*Suitability.choices(), (NONE, NONE)], required=False
    )
    tier = serializers.MultipleChoiceField(choices=Tier.choices(), required=False)
    unit_kind = serializers.MultipleChoiceField(choices=["whole", "slice"], required=False)
    isolation = serializers.MultipleChoiceField(
        choices=["none", "container", "sandbox", "virtual_machine"], required=False
    )
    region = serializers.ListField(child=serializers.CharField(), required=False)
    country = serializers.ListField(child=serializers.CharField(), required=False)
    simulated = serializers.MultipleChoiceField(choices=["yes", "no"], required=False)
    sort = serializers.ChoiceField(
        choices=list(SORTS), required=False, help_text=f"Default {DEFAULT_SORT}."
    )


class PartyOutput(serializers.Serializer[Any]):
    """Who offers."""

    id = serializers.CharField()
    name = serializers.CharField()
    country = serializers.CharField()


class PriceOutput(serializers.Serializer[Any]):
    """A price as it stands in the promise's revision."""

    amount_micros = serializers.CharField()
    per_quantity = serializers.IntegerField()
    meter_unit = serializers.CharField()


class NormalisedOutput(serializers.Serializer[Any]):
    """The price in the units that listings compare in; null where nothing was measured."""

    per_accelerator_hour_micros = serializers.CharField()
    per_gib_hour_micros = serializers.CharField(allow_null=True)
    per_1000_tops_hour_micros = serializers.CharField(allow_null=True)


class RevisionOutput(serializers.Serializer[Any]):
    """A revision by its content address."""

    number = serializers.IntegerField()
    digest = serializers.CharField(help_text="SHA-256 of the canonical bytes, hex.")
    created_at = serializers.DateTimeField()
    accepted = serializers.BooleanField(allow_null=True, help_text="Null while it waits.")


class ListingOutput(serializers.Serializer[Any]):
    """A listing as the catalogue shows it."""

    id = serializers.CharField()
    state = serializers.ChoiceField(choices=ListingState.choices())
    kind = serializers.CharField()
    title = serializers.CharField()
    provider = PartyOutput()
    node = serializers.CharField()
    simulated = serializers.BooleanField()
    tier = serializers.CharField(help_text="By benchmark; empty before admission.")
    region = serializers.CharField()
    country = serializers.CharField()
    depth = serializers.CharField()
    max_hours = serializers.IntegerField()
    interruptible = serializers.BooleanField()
    suits = serializers.ListField(child=serializers.ChoiceField(choices=Suitability.choices()))
    promise = PromiseField()
    price = PriceOutput()
    normalised_price = NormalisedOutput()
    measured_memory_mib = serializers.IntegerField(allow_null=True)
    measured_gops = serializers.FloatField(allow_null=True)
    revision = RevisionOutput()
    published_at = serializers.DateTimeField(allow_null=True)


class FindingOutput(serializers.Serializer[Any]):
    """One promised field beside what the node has shown."""

    field = serializers.CharField()
    promised = serializers.JSONField()
    measured = serializers.JSONField(allow_null=True)
    unit = serializers.CharField()
    verdict = serializers.CharField()
    tolerance_bps = serializers.IntegerField()
    rule = serializers.CharField()
    method = serializers.CharField()
    at = serializers.CharField(help_text="When it was measured; empty where it was not.")
    source = serializers.CharField(help_text="Public id of the record behind it.")  # type: ignore[assignment]
    reason = serializers.CharField()


class CheckOutput(serializers.Serializer[Any]):
    """The comparison of a revision with its node's evidence."""

    id = serializers.CharField()
    accepted = serializers.BooleanField()
    checked_at = serializers.DateTimeField()
    fields = FindingOutput(many=True)  # type: ignore[assignment]


class ReasonOutput(serializers.Serializer[Any]):
    """What one field says about a kind of work."""

    field = serializers.CharField()
    line = serializers.IntegerField()
    met = serializers.BooleanField()
    needed = serializers.BooleanField(help_text="False where it helps and does not decide.")
    text = serializers.CharField()


class AdviceOutput(serializers.Serializer[Any]):
    """Whether the promise suits one kind of work, and why."""

    work = serializers.ChoiceField(choices=Suitability.choices())
    suits = serializers.BooleanField()
    reasons = ReasonOutput(many=True)


class ListingDetailOutput(ListingOutput):
    """A listing with its evidence, its advice and its history."""

    check = CheckOutput(allow_null=True)
    advice = AdviceOutput(many=True)
    revisions = RevisionOutput(many=True)
    newest_check = CheckOutput(
        allow_null=True, help_text="Of the newest revision; only its provider sees a refused one."
    )


class RevisionDetailOutput(RevisionOutput):
    """A revision with its text."""

    listing = serializers.CharField()
    body = serializers.JSONField()
    canonical = serializers.CharField(help_text="The exact text that is hashed (RFC 8785).")


def show_listing(listing: Listing) -> dict[str, Any]:
    """Return a listing as `ListingOutput`; a listing never accepted shows its newest text."""
    revision = listing.current_revision or listing.revisions.all()[0]
    body = revision.body
    return {
        "id": listing.public_id,
        "state": listing.state,
        "kind": listing.kind,
        "title": body["title"],
        "provider": {
            "id": listing.provider.public_id,
            "name": listing.provider.name,
            "country": listing.provider.country,
        },
        "node": listing.node.public_id,
        "simulated": listing.simulated,
        "tier": listing.tier,
        "region": body["region"],
        "country": body["country"],
        "depth": body["depth"],
        "max_hours": body["max_hours"],
        "interruptible": body["interruptible"],
        "suits": listing.suits,
        "promise": promise_of(revision),
        "price": body["price"],
        "normalised_price": show_normalised(listing),
        "measured_memory_mib": listing.measured_memory_mib,
        "measured_gops": listing.measured_gops,
        "revision": show_revision(
            revision, accepted=True if listing.current_revision_id == revision.pk else None
        ),
        "published_at": listing.published_at,
    }


def show_listing_detail(listing: Listing, *, manages: bool) -> dict[str, Any]:
    """Return a listing as `ListingDetailOutput`; costs queries for checks and history."""
    revisions = list(listing.revisions.prefetch_related("checks"))
    shown = listing.current_revision or revisions[0]
    if not manages:
        revisions = [item for item in revisions if _accepted(item)]
    newest = revisions[0] if revisions else None
    return {
        **show_listing(listing),
        "check": show_check(_newest_check(shown)),
        "advice": [item.as_dict() for item in advise(listing.kind, promise_of(shown))],
        "revisions": [show_revision(item, accepted=_accepted(item)) for item in revisions],
        "newest_check": show_check(_newest_check(newest)) if newest else None,
    }


def show_normalised(listing: Listing) -> dict[str, Any]:
    """Return the price of a listing as `NormalisedOutput`."""
    price = normalise(
        micros_per_hour=listing.price_micros_per_hour,
        memory_mib=listing.measured_memory_mib,
        gops=listing.measured_gops,
    )
    rank = listing.micros_per_peta_hour
    return {
        "per_accelerator_hour_micros": str(price.per_hour),
        "per_gib_hour_micros": None if price.per_gib_hour is None else str(price.per_gib_hour),
        "per_1000_tops_hour_micros": None if rank == UNMEASURED_RANK else str(rank),
    }


def show_revision(revision: Revision, *, accepted: bool | None) -> dict[str, Any]:
    """Return a revision as `RevisionOutput`."""
    return {
        "number": revision.number,
        "digest": bytes(revision.digest).hex(),
        "created_at": revision.created_at,
        "accepted": accepted,
    }


def show_revision_detail(revision: Revision) -> dict[str, Any]:
    """Return a revision as `RevisionDetailOutput`; costs a query."""
    return {
        **show_revision(revision, accepted=_accepted(revision)),
        "listing": revision.listing.public_id,
        "body": revision.body,
        "canonical": bytes(revision.canonical).decode(),
    }


def show_check(check: RevisionCheck | None) -> dict[str, Any] | None:
    """Return a check as `CheckOutput`."""
    if check is None:
        return None
    return {
        "id": check.public_id,
        "accepted": check.accepted,
        "checked_at": check.checked_at,
        "fields": check.fields,
    }


def _newest_check(revision: Revision) -> RevisionCheck | None:
    checks = list(revision.checks.all())
    return checks[0] if checks else None


def _accepted(revision: Revision) -> bool | None:
    checks = list(revision.checks.all())
    return any(check.accepted for check in checks) if checks else None
