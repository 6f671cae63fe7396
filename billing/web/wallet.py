"""The buyer's money: what is where, every line of it, and each line worked out again."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from billing.access import access_transfer, access_usage_record
from billing.models import TopUp
from billing.selectors import recompute, statement_lines, statement_rows, wallet_state
from fabric.accounts.access import access_organisation, actor_for, signed_in
from fabric.accounts.domain.roles import Right
from fabric.lib.clock import utc_now

ROWS_PER_PAGE = 25
TOP_UPS_SHOWN = 5


@signed_in
@require_safe
def show_wallet(request: HttpRequest) -> HttpResponse:
    """Show where the organisation's money is and the statement that adds up to it."""
    actor = actor_for(request)
    organisation = access_organisation(actor=actor)
    actor.require(Right.SEE)
    rows = statement_rows(organisation)
    page = Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page", "1"))
    state = wallet_state(organisation)
    context = {
        "now": utc_now(),
        "state": state,
        "in_escrow": state.total - state.available,
        "page": page,
        "lines": statement_lines(page.object_list),
        "top_ups": TopUp.objects.filter(organisation=organisation)[:TOP_UPS_SHOWN],
        "may_pay": Right.PAY in actor.rights,
    }
    return render(request, "billing/wallet_show.html", context)


@signed_in
@require_safe
def show_line(request: HttpRequest, transfer_id: int) -> HttpResponseBase:
    """Show the legs of a booked transfer; a charge is shown with its window."""
    transfer = access_transfer(actor=actor_for(request), transfer_id=transfer_id)
    if transfer.record is not None:
        return redirect("billing:usage", usage_record_id=transfer.record.public_id)
    context = {
        "now": utc_now(),
        "transfer": transfer,
        "legs": transfer.entries.select_related("account"),
    }
    return render(request, "billing/line_show.html", context)


@signed_in
@require_safe
def show_usage(request: HttpRequest, usage_record_id: str) -> HttpResponse:
    """Show a metered window, its amount worked out from the terms, and what was booked."""
    record = access_usage_record(actor=actor_for(request), public_id=usage_record_id)
    booked = record.transfers.prefetch_related("entries__account").first()
    context: dict[str, Any] = {
        "now": utc_now(),
        "record": record,
        "terms": record.terms,
        "agreement": record.agreement,
        "worked_out": recompute(record),
        "booked": booked,
        "legs": list(booked.entries.all()) if booked else [],
        "reserved": record.pending,
    }
    return render(request, "billing/usage_show.html", context)
