"""The order page: everything that will be agreed, on one page, before the button."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from billing.services import wallet
from fabric.accounts.access import access_organisation, actor_for, signed_in
from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.accounts.models import Project
from fabric.accounts.web.refusals import add_refusal
from fabric.journal.services import parameters
from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError, NotVisible
from leases.services.ordering import place_order
from leases.web.forms import OrderForm, new_key
from leases.web.shown import list_promised
from listings.access import read_listing
from listings.domain.bodies import price_micros
from listings.models import Listing, Revision
from listings.selectors import promise_of
from listings.web.facets import class_words, name_classes
from providers.domain.nodes import Tier

DEFAULT_HOURS = Decimal(1)


@dataclass(frozen=True)
class Offer:
    """A listing with the revision that an order would be signed on."""

    listing: Listing
    revision: Revision

    @property
    def price_micros(self) -> int:
        """Price per accelerator-hour."""
        return price_micros(self.revision.body)

    @property
    def most_units(self) -> int:
        """Units the listing promises."""
        return int(promise_of(self.revision)["unit_count"])

    @property
    def most_hours(self) -> int:
        """The longest term."""
        return int(self.revision.body["max_hours"])

    @property
    def needed_consents(self) -> frozenset[str]:
        """What the buyer has to accept before anything runs here."""
        needs = {
            "accepts_interruption": self.listing.node.tier == Tier.COMMUNITY,
            "accepts_unisolated": self.listing.node.isolation == "none",
        }
        return frozenset(name for name, needed in needs.items() if needed)

    def cost_micros(self, units: int, hours: Decimal) -> int:
        """Return what so many units cost for so long, rounded up."""
        exact = self.price_micros * units * hours
        return int(exact.to_integral_value(rounding="ROUND_CEILING"))


@dataclass(frozen=True)
class OrderSum:
    """What the order would hold, before anybody is bound."""

    units: int
    hours: Decimal
    full_term_micros: int
    hold_micros: int
    available_micros: int

    @property
    def left_micros(self) -> int:
        """What stays in the balance; negative where it does not suffice."""
        return self.available_micros - self.hold_micros


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def create_order(request: HttpRequest) -> HttpResponseBase:
    """Review an order; the button that recalculates asks by GET, the one that orders posts."""
    actor = actor_for(request)
    given = request.POST if request.method == "POST" else request.GET
    listing = read_listing(actor=actor, public_id=given.get("listing", ""))
    if listing.current_revision is None:
        raise NotVisible("There is no such listing on sale.")
    offer = Offer(listing, listing.current_revision)
    if request.method != "POST":
        return _show(request, actor, offer, _empty_form(request, actor, offer))
    form = OrderForm(request.POST, **_bounds(actor, offer))
    if not form.is_valid():
        return _show(request, actor, offer, form, status=400)
    try:
        order = place_order(
            actor=actor,
            project=form.cleaned_data["project"],
            listing=listing,
            unit_count=form.cleaned_data["unit_count"],
            budget_micros=form.cleaned_data["budget_micros"],
            accepts_interruption=form.cleaned_data.get("accepts_interruption", False),
            accepts_unisolated=form.cleaned_data.get("accepts_unisolated", False),
            price_cap_micros_per_hour=form.cleaned_data["price"],
            max_seconds=form.max_seconds,
            now=utc_now(),
            key=form.cleaned_data["key"],
        )
    except DomainError as refusal:
        add_refusal(form, refusal)
        others = refusal.metadata.get("alternatives", [])
        return _show(request, actor, offer, form, alternatives=others, status=refusal.status)
    messages.success(request, "Ordered. It charges once the exchange has reached the workload.")
    return redirect("leases:lease", lease_id=order.lease.public_id)


def _bounds(actor: Actor, offer: Offer) -> dict[str, Any]:
    return {
        "projects": Project.objects.visible_to(actor).order_by("name", "id"),
        "most_units": offer.most_units,
        "most_hours": offer.most_hours,
        "needs": offer.needed_consents,
    }


def _empty_form(request: HttpRequest, actor: Actor, offer: Offer) -> OrderForm:
    """Return the form with what the address asks for, held to what the listing allows."""
    bounds = _bounds(actor, offer)
    units = _read(request, "unit_count", 1, offer.most_units)
    hours = _read(request, "hours", DEFAULT_HOURS, Decimal(offer.most_hours))
    chosen = Project.find_public(request.GET.get("project", ""))
    initial = {
        "project": chosen if chosen in bounds["projects"] else bounds["projects"].first(),
        "unit_count": units,
        "hours": hours,
        "budget_micros": offer.cost_micros(units, hours),
        "price": offer.price_micros,
        "key": new_key(),
    }
    return OrderForm(initial=initial, **bounds)


def _read(request: HttpRequest, name: str, default: Any, most: Any) -> Any:
    try:
        value = OrderForm.base_fields[name].clean(request.GET.get(name, default))
    except forms.ValidationError:
        return default
    return min(value, most)


def _show(
    request: HttpRequest,
    actor: Actor,
    offer: Offer,
    form: OrderForm,
    *,
    alternatives: "list[dict[str, Any]] | None" = None,
    status: int = 200,
) -> HttpResponse:
    now = utc_now()
    row, rules = parameters.get_commercial(now=now)
    context = {
        "now": now,
        "offer": offer,
        "listing": offer.listing,
        "revision": offer.revision,
        "words": class_words(offer.listing, name_classes()),
        "form": form,
        "sum": _sum(actor, offer, form),
        "promises": list_promised(offer.revision.body),
        "rules": rules,
        "parameters": row,
        "alternatives": alternatives or [],
        "may_order": Right.ORDER in actor.rights,
        "is_own": actor.organisation_id == offer.listing.provider.organisation_id,
    }
    return render(request, "leases/order_new.html", context, status=status)


def _sum(actor: Actor, offer: Offer, form: OrderForm) -> OrderSum:
    read = form.cleaned_data if form.is_bound and form.is_valid() else form.initial
    units = int(read.get("unit_count", 1))
    hours = Decimal(read.get("hours", DEFAULT_HOURS))
    full = offer.cost_micros(units, hours)
    return OrderSum(
        units=units,
        hours=hours,
        full_term_micros=full,
        hold_micros=int(read.get("budget_micros", full)),
        available_micros=wallet.available_micros(access_organisation(actor=actor)),
    )
