"""Providers, nodes, what was measured on them, and who holds what."""

from django.contrib import admin

from fabric.backoffice.records import RecordAdmin
from fabric.backoffice.site import operator_site
from providers.models import (
    Challenge,
    Device,
    EnrolmentToken,
    HardwareClass,
    HardwareReport,
    Hold,
    Node,
    Observation,
    Provider,
    Unit,
)


@admin.register(Provider, site=operator_site)
class ProviderAdmin(RecordAdmin):
    """Organisations that offer capacity."""

    list_display = ("name", "organisation", "country", "region", "pool", "created_at")
    list_filter = ("pool", "country")
    list_select_related = ("organisation",)
    search_fields = ("name", "slug")


@admin.register(Node, site=operator_site)
class NodeAdmin(RecordAdmin):
    """Machines with an agent: where they stand and what holds them back."""

    list_display = ("name", "provider", "state", "hardware_class", "tier", "simulated", "beat_at")
    list_filter = ("state", "tier", "simulated", "hardware_class")
    list_select_related = ("provider", "hardware_class", "beat")
    search_fields = ("name", "provider__name")

    @admin.display(description="last beat")
    def beat_at(self, node: Node) -> str:
        """Say when the node was last heard."""
        beat = getattr(node, "beat", None)
        return f"{beat.last_beat_at:%Y-%m-%d %H:%M:%S} UTC" if beat else "not heard yet"


@admin.register(HardwareClass, site=operator_site)
class HardwareClassAdmin(RecordAdmin):
    """Reference models and the ranges that measurements must fall into."""

    list_display = ("slug", "name", "vendor", "kind", "memory_mib", "tier", "synthetic")
    list_filter = ("vendor", "kind", "tier", "synthetic")
    search_fields = ("slug", "name")


@admin.register(HardwareReport, site=operator_site)
class HardwareReportAdmin(RecordAdmin):
    """What nodes said they are, signed."""

    list_display = ("public_id", "node", "digest_hex", "received_at")
    list_select_related = ("node",)
    search_fields = ("node__name",)


@admin.register(Challenge, site=operator_site)
class ChallengeAdmin(RecordAdmin):
    """Questions put to machines, and what came of them."""

    list_display = ("public_id", "node", "purpose", "state", "verdict", "issued_at", "judged_at")
    list_filter = ("purpose", "state", "verdict")
    list_select_related = ("node",)
    search_fields = ("node__name",)


@admin.register(Device, site=operator_site)
class DeviceAdmin(RecordAdmin):
    """Physical accelerators."""

    list_display = ("node", "ordinal", "hardware_class", "memory_mib", "slots", "present")
    list_filter = ("hardware_class", "present")
    list_select_related = ("node", "hardware_class")
    search_fields = ("identity", "node__name")


@admin.register(Unit, site=operator_site)
class UnitAdmin(RecordAdmin):
    """What is rented."""

    list_display = ("public_id", "device", "kind", "slots", "memory_mib", "active")
    list_filter = ("kind", "active")
    list_select_related = ("device",)


@admin.register(Hold, site=operator_site)
class HoldAdmin(RecordAdmin):
    """Slots taken for a time, and by whom."""

    list_display = ("public_id", "kind", "holder", "device", "slots", "period", "live")
    list_filter = ("kind", "live")
    list_select_related = ("device",)
    search_fields = ("holder",)


@admin.register(EnrolmentToken, site=operator_site)
class EnrolmentTokenAdmin(RecordAdmin):
    """Tokens by their owner and fate; the token itself nobody has."""

    list_display = ("provider", "simulated", "accepts_unisolated", "expires_at", "used_at")
    list_filter = ("simulated",)
    list_select_related = ("provider",)
    search_fields = ("provider__name",)
    hidden_fields = ("digest",)


@admin.register(Observation, site=operator_site)
class ObservationAdmin(RecordAdmin):
    """Facts about nodes' conduct."""

    list_display = ("node", "kind", "value", "weight", "counterparty", "evidence", "at")
    list_filter = ("kind",)
    list_select_related = ("node",)
    search_fields = ("evidence", "node__name")
