"""What a provider earns: by state, and line by line."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from billing.models import UsageRecord
from billing.selectors import recompute
from billing.services import earnings
from fabric.accounts.access import access_organisation, actor_for, signed_in
from fabric.accounts.domain.roles import Right
from fabric.lib.clock import utc_now

ROWS_PER_PAGE = 25


@signed_in
@require_safe
def show_earnings(request: HttpRequest) -> HttpResponse:
    """Show the organisation's share of its lines; never who the buyer is."""
    actor = actor_for(request)
    organisation = access_organisation(actor=actor)
    actor.require(Right.SEE)
    records = (
        UsageRecord.objects.filter(agreement__provider=organisation)
        .select_related("terms", "agreement")
        .order_by("-recorded_at", "-id")
    )
    page = Paginator(records, ROWS_PER_PAGE).get_page(request.GET.get("page", "1"))
    state = earnings.by_state(organisation)
    rows = [(record, recompute(record).shares[0].micros) for record in page]
    context = {
        "now": utc_now(),
        "state": state,
        "total": state.pending + state.disputed + state.earned,
        "page": page,
        "rows": rows,
    }
    return render(request, "billing/earnings_show.html", context)
