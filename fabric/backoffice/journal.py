"""What happened, who changed what, and the rules everybody trades under."""

from django.contrib import admin

from fabric.backoffice.records import RecordAdmin
from fabric.backoffice.site import operator_site
from fabric.journal.models import AuditEntry, Event, IdempotencyKey, ProtocolParameters


@admin.register(Event, site=operator_site)
class EventAdmin(RecordAdmin):
    """The feed."""

    list_display = ("at", "kind", "subject", "actor")
    search_fields = ("kind", "subject", "actor")
    ordering = ("-id",)


@admin.register(AuditEntry, site=operator_site)
class AuditEntryAdmin(RecordAdmin):
    """Who changed what and why."""

    list_display = ("at", "actor", "action", "subject", "reason")
    search_fields = ("actor", "action", "subject", "reason")


@admin.register(ProtocolParameters, site=operator_site)
class ProtocolParametersAdmin(RecordAdmin):
    """Versions of the rules, content-addressed."""

    list_display = ("kind", "version", "digest_hex", "effective_at", "proposed_by", "approved_by")
    list_filter = ("kind",)


@admin.register(IdempotencyKey, site=operator_site)
class IdempotencyKeyAdmin(RecordAdmin):
    """First answers to requests that may be repeated; the answers themselves are not shown."""

    list_display = ("tenant", "route", "key", "status", "claimed_at", "expires_at")
    search_fields = ("tenant", "key")
    hidden_fields = ("body",)
