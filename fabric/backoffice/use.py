"""Orders, leases, streams, readings and disputes; a dispute is ruled on from here."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from unfold.decorators import action

from fabric.backoffice import rulings
from fabric.backoffice.records import RecordAdmin
from fabric.backoffice.site import operator_site
from leases.domain.states import DisputeState
from leases.models import (
    Batch,
    Dispute,
    Lease,
    LeaseTransition,
    LeaseWindow,
    Order,
    Reading,
    Stream,
    WitnessReading,
)


@admin.register(Order, site=operator_site)
class OrderAdmin(RecordAdmin):
    """Funded wishes for units."""

    list_display = (
        "public_id",
        "organisation",
        "listing",
        "unit_count",
        "budget_micros_money",
        "placed_at",
    )
    list_select_related = ("organisation", "listing")
    search_fields = ("organisation__name", "placed_by")
    money_fields = ("price_cap_micros_per_hour",)


@admin.register(Lease, site=operator_site)
class LeaseAdmin(RecordAdmin):
    """Exact units in a buyer's hands."""

    list_display = (
        "public_id",
        "organisation",
        "provider",
        "node",
        "state",
        "isolation",
        "created_at",
        "ended_at",
    )
    list_filter = ("state", "end_reason", "isolation")
    list_select_related = ("organisation", "provider", "node")
    search_fields = ("organisation__name", "provider__name", "node__name")


@admin.register(LeaseTransition, site=operator_site)
class LeaseTransitionAdmin(RecordAdmin):
    """Moves of leases from one state to the next."""

    list_display = ("lease", "from_state", "to_state", "actor", "reason", "at")
    list_filter = ("to_state",)
    list_select_related = ("lease",)
    search_fields = ("actor", "reason")


@admin.register(LeaseWindow, site=operator_site)
class LeaseWindowAdmin(RecordAdmin):
    """Windows, or parts of them, whose price was reserved before they ran."""

    list_display = ("lease", "window_index", "starts_at", "ends_at", "state")
    list_filter = ("state",)
    list_select_related = ("lease",)


@admin.register(Stream, site=operator_site)
class StreamAdmin(RecordAdmin):
    """Chains of signed batches."""

    list_display = ("public_id", "node", "lease", "state", "epoch", "next_seq")
    list_filter = ("state",)
    list_select_related = ("node", "lease")
    search_fields = ("node__name",)


@admin.register(Batch, site=operator_site)
class BatchAdmin(RecordAdmin):
    """Signed batches as received, refused ones too."""

    list_display = ("public_id", "stream", "epoch", "seq", "state", "reason", "received_at")
    list_filter = ("state", "reason")
    list_select_related = ("stream",)


@admin.register(Reading, site=operator_site)
class ReadingAdmin(RecordAdmin):
    """What meters saw, window by window, and how it compares."""

    list_display = ("public_id", "lease", "window_index", "ready_seconds", "starts_at")
    list_select_related = ("lease",)


@admin.register(WitnessReading, site=operator_site)
class WitnessReadingAdmin(RecordAdmin):
    """What somebody other than the meter saw."""

    list_display = ("lease", "kind", "window_index", "at")
    list_filter = ("kind",)
    list_select_related = ("lease",)


@admin.register(Dispute, site=operator_site)
class DisputeAdmin(RecordAdmin):
    """Claims that a reading is wrong, and the operator's ruling."""

    list_display = (
        "public_id",
        "lease",
        "opened_side",
        "state",
        "stands_bps",
        "opened_at",
        "closed_at",
    )
    list_filter = ("state", "opened_side")
    list_select_related = ("lease",)
    search_fields = ("statement", "ruling", "opened_by")
    actions_detail = ("go_to_ruling",)

    @action(description="Rule on this dispute", url_path="to-ruling", permissions=["go_to_ruling"])
    def go_to_ruling(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Lead to the form that decides the dispute."""
        return redirect(reverse("admin:leases_dispute_rule", args=[object_id]))

    def get_urls(self) -> list[URLPattern]:
        """Add the ruling's own page."""
        view = self.admin_site.admin_view(rulings.rule_on_dispute)
        return [
            path("<uuid:key>/rule/", view, name="leases_dispute_rule"),
            *super().get_urls(),
        ]

    def has_go_to_ruling_permission(self, request: HttpRequest, object_id: str = "") -> bool:
        """Offer the ruling only while the dispute is open."""
        return Dispute.objects.filter(pk=object_id, state=DisputeState.OPEN).exists()
