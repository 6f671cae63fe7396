"""The pages of leases: the list, one lease, its chart, and what its parties do on it."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from billing.models import Terms
from fabric.accounts.access import actor_for, signed_in
from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.accounts.models import User
from fabric.journal.models import Event
from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError
from fabric.lib.money import format_amount
from leases.access import access_lease, side_of
from leases.domain.states import LIVE, LeaseState, Side
from leases.models import Batch, Lease, Reading, Stream
from leases.selectors import last_line, money_of
from leases.services import lifecycle
from leases.services.access_tokens import show_token
from leases.web.charts import draw_chart, write_csv
from leases.web.forms import DisputeForm, TopUpForm, new_key
from leases.web.ribbon import draw_ribbon
from leases.web.shown import (
    MOST_WINDOWS,
    SHOWN_WINDOWS,
    Quantity,
    choose_quantity,
    count_verdicts,
    hourly_micros,
    hourly_words,
    list_promises,
    list_quantities,
    list_rows,
    read_runway,
    sum_line,
)

ROWS_PER_PAGE = 25
SHOWN_EVENTS = 8
STOP_POLLING = 286
"""What htmx takes as: this part changes no more, do not ask again."""


@require_safe
@signed_in
def list_leases(request: HttpRequest) -> HttpResponse:
    """Show what the organisation buys, or provides."""
    actor = actor_for(request)
    provided = request.GET.get("side") == "provider"
    over = request.GET.get("show") == "over"
    rows = Lease.objects.provided_by(actor) if provided else Lease.objects.bought_by(actor)
    rows = rows.exclude(state__in=LIVE) if over else rows.live()
    rows = rows.with_parties().prefetch_related(
        Prefetch("agreement__terms", queryset=Terms.objects.order_by("-version"))
    )
    page = Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page", "1"))
    now = utc_now()
    context = {
        "now": now,
        "page": page,
        "rows": [
            {"lease": lease, "hourly_micros": hourly_micros(lease.agreement.terms.all()[0])}
            for lease in page
        ],
        "provided": provided,
        "over": over,
    }
    return render(request, "leases/lease_list.html", context)


@require_safe
@signed_in
def show_lease(request: HttpRequest, lease_id: str) -> HttpResponse:
    """Show one lease; asked by htmx, only the parts that change by themselves."""
    actor = actor_for(request)
    lease = access_lease(actor=actor, public_id=lease_id)
    context = _read_lease(request, actor, lease)
    if request.headers.get("HX-Request"):
        status = 200 if context["is_live"] else STOP_POLLING
        return render(request, "leases/_live.html", {**context, "swap": True}, status=status)
    return render(request, "leases/lease_detail.html", {**context, **_forms(context)})


@require_safe
@signed_in
def chart_data(request: HttpRequest, lease_id: str) -> HttpResponse:
    """Return what the chart draws."""
    lease, quantity, readings, terms = _drawn(request, lease_id)
    del lease
    return JsonResponse(draw_chart(readings, quantity, window_seconds=terms.window_seconds))


@require_safe
@signed_in
def chart_csv(request: HttpRequest, lease_id: str) -> HttpResponse:
    """Return exactly what the chart draws, as a file."""
    lease, quantity, readings, _ = _drawn(request, lease_id)
    response = HttpResponse(write_csv(readings, quantity), content_type="text/csv; charset=utf-8")
    name = f"{lease.public_id}-{quantity.name}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@require_POST
@signed_in
def end_lease(request: HttpRequest, lease_id: str) -> HttpResponseBase:
    """Stop a lease."""
    actor = actor_for(request)
    lease = access_lease(actor=actor, public_id=lease_id)
    before = money_of(lease).returned_micros
    lifecycle.end_lease(actor=actor, lease=lease, now=utc_now())
    returned = money_of(lease).returned_micros - before
    messages.success(request, f"Stopped. {_dollars(returned)} returned to your balance.")
    return redirect("leases:lease", lease_id=lease_id)


@require_POST
@signed_in
def top_up_lease(request: HttpRequest, lease_id: str) -> HttpResponseBase:
    """Give a lease more money."""
    actor = actor_for(request)
    lease = access_lease(actor=actor, public_id=lease_id)
    form = TopUpForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was moved: an amount is written like 2.40.")
        return redirect("leases:lease", lease_id=lease_id)
    try:
        lifecycle.top_up_lease(actor=actor, lease=lease, now=utc_now(), **form.cleaned_data)
    except DomainError as refusal:
        if refusal.status in {403, 404}:
            raise
        messages.error(request, f"Nothing was moved. {refusal.message} {refusal.suggestion}")
    else:
        moved = _dollars(form.cleaned_data["amount_micros"])
        messages.success(request, f"{moved} moved into the lease's escrow.")
    return redirect("leases:lease", lease_id=lease_id)


@require_POST
@signed_in
def show_access_token(request: HttpRequest, lease_id: str) -> HttpResponse:
    """Show the access token: on this page, once, and on none after it."""
    actor = actor_for(request)
    lease = access_lease(actor=actor, public_id=lease_id)
    token = show_token(actor=actor, lease=lease, now=utc_now())
    context = {"lease": lease, "token": token, "address": _address(lease)}
    return render(request, "leases/lease_token.html", context)


def _read_lease(request: HttpRequest, actor: Actor, lease: Lease) -> dict[str, Any]:
    """Return what the page shows of a lease, for one of its sides or an operator."""
    now = utc_now()
    terms = lease.agreement.terms.latest("version")
    side = side_of(actor, lease)
    money = money_of(lease)
    quantities = list_quantities(lease, terms)
    quantity = choose_quantity(quantities, request.GET.get("field", ""))
    count = Reading.objects.filter(lease=lease).count()
    shown = MOST_WINDOWS if request.GET.get("windows") == "all" else SHOWN_WINDOWS
    readings = _newest_readings(lease, shown)
    metered = next((reading for reading in readings if reading.batch_id), None)
    promises = list_promises(lease, terms, metered)
    stream = Stream.objects.filter(lease=lease).first()
    buys = side is Side.BUYER
    return {
        "now": now,
        "lease": lease,
        "terms": terms,
        "side": side,
        "buys": buys,
        "provides": side is Side.PROVIDER,
        "is_live": lease.state in LIVE,
        "can_end": buys
        and Right.ORDER in actor.rights
        and lease.state in LIVE - {LeaseState.ENDING},
        "can_dispute": side is not None and Right.DISPUTE in actor.rights,
        "can_see_token": buys
        and Right.ORDER in actor.rights
        and lease.access_shown_at is None
        and lease.state in LIVE - {LeaseState.ENDING},
        "heading": _heading(lease),
        "hourly": hourly_words(terms),
        "ribbon": draw_ribbon(lease, hourly=hourly_words(terms)),
        "runway": read_runway(lease, terms, money, now),
        "money": money,
        "quantities": quantities,
        "quantity": quantity,
        "rows": list_rows(readings, quantity, side=side, now=now),
        "reading_count": count,
        "promises": promises,
        "verdicts": count_verdicts(promises),
        "latest": metered,
        "line": sum_line(last_line(lease)),
        "stream": stream,
        "refused_batches": Batch.objects.filter(stream=stream, state="refused").count()
        if stream
        else 0,
        "address": _address(lease),
        "poll_seconds": min(60, max(2, terms.window_seconds // 2)),
        "events": _events(lease, hide=side is Side.PROVIDER),
    }


def _forms(context: dict[str, Any]) -> dict[str, Any]:
    disputable = [row.reading for row in context["rows"] if row.can_dispute]
    return {
        "top_up_form": TopUpForm(initial={"key": new_key()}),
        "dispute_form": DisputeForm(readings=disputable) if disputable else None,
    }


def _newest_readings(lease: Lease, limit: int) -> list[Reading]:
    return list(
        Reading.objects.filter(lease=lease)
        .select_related("batch", "usage_record", "dispute")
        .order_by("-window_index")[:limit]
    )


def _drawn(request: HttpRequest, lease_id: str) -> tuple[Lease, Quantity, list[Reading], Terms]:
    lease = access_lease(actor=actor_for(request), public_id=lease_id)
    terms = lease.agreement.terms.latest("version")
    quantity = choose_quantity(list_quantities(lease, terms), request.GET.get("field", ""))
    return lease, quantity, _newest_readings(lease, MOST_WINDOWS)[::-1], terms


def _events(lease: Lease, *, hide: bool) -> list[dict[str, Any]]:
    rows = list(Event.objects.filter(subject=lease.public_id).order_by("-id")[:SHOWN_EVENTS])
    names = {} if hide else _names_of(row.actor for row in rows)
    return [
        {
            "kind": row.kind.partition(".")[2].replace("_", " "),
            "noun": row.kind.partition(".")[0],
            "actor": _actor_words(row.actor, names, hide=hide),
            "reason": str(row.data.get("reason", "")),
            "at": row.at,
        }
        for row in rows
    ]


def _names_of(actors: Iterable[str]) -> dict[str, str]:
    keys = [User.key_from(actor) for actor in actors if actor.startswith("usr_")]
    return {person.public_id: str(person) for person in User.objects.filter(pk__in=keys)}


def _actor_words(actor: str, names: Mapping[str, str], *, hide: bool) -> str:
    """Name who acted; a provider is told that the buyer did, not which person."""
    if actor.startswith("nod_"):
        return "node"
    if actor.startswith("usr_"):
        return "buyer" if hide else names.get(actor, "a person")
    if actor.startswith("key_"):
        return "buyer" if hide else "an API key"
    return actor


def _heading(lease: Lease) -> str:
    hardware = lease.node.hardware_class
    name = hardware.name if hardware is not None else lease.revision.listing.title
    return f"{lease.order.unit_count} \N{MULTIPLICATION SIGN} {name}"


def _address(lease: Lease) -> str:
    access = lease.access
    return f"http://{access['host']}:{access['port']}/" if access else ""


def _dollars(micros: int) -> str:
    return f"${format_amount(micros, decimals=6)}"
