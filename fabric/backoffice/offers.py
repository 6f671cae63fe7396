"""Listings, the texts of their promises, and what the checks found."""

from django.contrib import admin

from fabric.backoffice.records import RecordAdmin
from fabric.backoffice.site import operator_site
from listings.models import Listing, Revision, RevisionCheck


@admin.register(Listing, site=operator_site)
class ListingAdmin(RecordAdmin):
    """What providers offer."""

    list_display = (
        "title",
        "provider",
        "state",
        "class_slug",
        "unit_count",
        "price_micros_per_hour",
        "simulated",
    )
    list_filter = ("state", "tier", "simulated")
    list_select_related = ("provider",)
    search_fields = ("title", "class_slug", "provider__name")
    money_fields = ("price_micros_per_hour",)


@admin.register(Revision, site=operator_site)
class RevisionAdmin(RecordAdmin):
    """Texts of promises; never edited."""

    list_display = ("public_id", "listing", "number", "digest_hex", "created_by", "created_at")
    list_select_related = ("listing",)
    search_fields = ("listing__title",)


@admin.register(RevisionCheck, site=operator_site)
class RevisionCheckAdmin(RecordAdmin):
    """Comparisons of promises with what nodes have shown."""

    list_display = ("public_id", "revision", "accepted", "checked_at")
    list_filter = ("accepted",)
    list_select_related = ("revision",)
