"""The ledger browser, usage records, top-ups and Stripe's inbox. Money is looked at, not edited."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from unfold.admin import TabularInline
from unfold.decorators import action

from billing.models import (
    Account,
    Agreement,
    Entry,
    StripeEvent,
    Terms,
    TopUp,
    Transfer,
    UsageRecord,
)
from billing.services import inbox
from fabric.accounts.access import actor_for
from fabric.backoffice.desk import read_trial_balance
from fabric.backoffice.figures import money
from fabric.backoffice.records import RecordAdmin
from fabric.backoffice.site import operator_site
from fabric.lib.clock import utc_now

_COUNTERS = ("debits_posted", "credits_posted", "debits_pending", "credits_pending")


@admin.register(Account, site=operator_site)
class AccountAdmin(RecordAdmin):
    """Places money can be, with their four counters."""

    list_display = ("code", "kind", *(f"{name}_money" for name in _COUNTERS), "available", "legs")
    list_filter = ("kind",)
    search_fields = ("code", "owner")
    money_fields = _COUNTERS
    actions_list = ("go_to_trial_balance",)

    @admin.display(description="available, $")
    def available(self, account: Account) -> str:
        """Say what can still leave the account."""
        return money(account.available_micros)

    @admin.display(description="entries")
    def legs(self, account: Account) -> str:
        """Lead to the account's entries."""
        target = reverse("admin:billing_entry_changelist")
        return format_html(
            '<a class="fx-link" href="{}?account__id__exact={}">entries</a>', target, account.pk
        )

    @action(description="Trial balance", url_path="to-trial-balance")
    def go_to_trial_balance(self, request: HttpRequest) -> HttpResponse:
        """Lead to the trial balance."""
        return redirect("admin:trial_balance")

    def get_urls(self) -> list[URLPattern]:
        """Add the trial balance."""
        view = self.admin_site.admin_view(self.show_trial_balance)
        return [path("trial-balance/", view, name="trial_balance"), *super().get_urls()]

    def show_trial_balance(self, request: HttpRequest) -> HttpResponse:
        """Show the whole ledger by kind of account; its last line must be zero."""
        context = {
            **self.admin_site.each_context(request),
            "title": "Trial balance",
            "trial": read_trial_balance(now=utc_now()),
        }
        return render(request, "operator/trial_balance.html", context)


class EntryInline(TabularInline):
    """The legs of a transfer, which sum to zero."""

    model = Entry
    fields = readonly_fields = ("account", "amount")
    can_delete = False
    extra = 0
    tab = False

    @admin.display(description="debit +, credit -, $")
    def amount(self, entry: Entry) -> str:
        """Write the leg with all six places."""
        return money(entry.amount_micros)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Show the legs to whoever may enter the site."""
        return bool(self.admin_site.has_permission(request))

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse."""
        return False


@admin.register(Transfer, site=operator_site)
class TransferAdmin(RecordAdmin):
    """Movements of money, promises of them, and what became of the promises."""

    list_display = (
        "id",
        "kind",
        "phase",
        "amount_micros_money",
        "debit_account",
        "credit_account",
        "effective_at",
    )
    list_filter = ("phase", "kind")
    list_select_related = ("debit_account", "credit_account")
    search_fields = ("idempotency_key", "debit_account__code", "credit_account__code")
    inlines = (EntryInline,)
    ordering = ("-id",)


@admin.register(Entry, site=operator_site)
class EntryAdmin(RecordAdmin):
    """Legs of booked transfers."""

    list_display = ("id", "account", "amount_micros_money", "transfer")
    list_select_related = ("account", "transfer")
    search_fields = ("account__code",)
    ordering = ("-id",)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Let the ledger browser ask for one account's entries."""
        return lookup == "account__id__exact" or bool(
            super().lookup_allowed(lookup, value, request)
        )


@admin.register(Agreement, site=operator_site)
class AgreementAdmin(RecordAdmin):
    """Buyer, provider and the escrow between them."""

    list_display = ("public_id", "buyer", "provider", "state", "counter", "escrow", "created_at")
    list_filter = ("state",)
    list_select_related = ("buyer", "provider", "escrow")
    search_fields = ("buyer__name", "provider__name")


@admin.register(Terms, site=operator_site)
class TermsAdmin(RecordAdmin):
    """What both sides agreed, pinned by hash."""

    list_display = ("public_id", "agreement", "version", "price_micros_money", "digest_hex")
    list_select_related = ("agreement",)


@admin.register(UsageRecord, site=operator_site)
class UsageRecordAdmin(RecordAdmin):
    """Metered windows: the one source of charge and pay."""

    list_display = (
        "public_id",
        "agreement",
        "window_index",
        "amount_micros_money",
        "state",
        "stands_bps",
        "disputable_until",
        "settled_at",
    )
    list_filter = ("state", ("quarantined_at", admin.EmptyFieldListFilter))
    list_select_related = ("agreement",)


@admin.register(TopUp, site=operator_site)
class TopUpAdmin(RecordAdmin):
    """Card payments into wallets."""

    list_display = ("public_id", "organisation", "amount_micros_money", "state", "created_at")
    list_filter = ("state",)
    list_select_related = ("organisation",)
    search_fields = ("checkout_session", "payment_intent", "organisation__name")


@admin.register(StripeEvent, site=operator_site)
class StripeEventAdmin(RecordAdmin):
    """Verified webhooks; one that failed, or is doubted, can be worked off again."""

    list_display = ("id", "kind", "received_at", "processed_at", "attempts", "failure")
    list_filter = ("kind", ("processed_at", admin.EmptyFieldListFilter))
    search_fields = ("id", "kind")
    actions = ("replay",)

    @admin.action(description="Work off again")
    def replay(self, request: HttpRequest, queryset: QuerySet[StripeEvent]) -> None:
        """Hand the chosen events back to the inbox; a payment is credited once all the same."""
        actor, now = actor_for(request), utc_now()
        for event in queryset:
            inbox.replay_event(actor=actor, event=event, now=now)
        messages.success(request, f"{len(queryset)} event(s) will be worked off again.")
