"""The pages of disputes: the list, opening one, taking one back."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from fabric.accounts.access import actor_for, signed_in
from fabric.accounts.domain.roles import Right
from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError, NotVisible
from leases.access import access_dispute, access_lease, access_reading, side_of
from leases.domain.states import DisputeState, Side
from leases.models import Dispute
from leases.services import disputes

ROWS_PER_PAGE = 25


@require_safe
@signed_in
def list_disputes(request: HttpRequest) -> HttpResponse:
    """Show the disputes of leases the organisation buys or provides."""
    actor = actor_for(request)
    mine = Dispute.objects.bought_by(actor) | Dispute.objects.provided_by(actor)
    rows = mine.select_related(
        "lease__provider", "lease__node", "reading__usage_record", "reading__batch"
    ).order_by("-opened_at", "-id")
    page = Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page", "1"))
    context = {
        "now": utc_now(),
        "page": page,
        "rows": [
            {
                "dispute": dispute,
                "record": dispute.reading.usage_record,
                "ours": side_of(actor, dispute.lease) == dispute.opened_side,
                "side": side_of(actor, dispute.lease) or Side.BUYER,
                "can_withdraw": dispute.state == DisputeState.OPEN
                and Right.DISPUTE in actor.rights
                and side_of(actor, dispute.lease) == dispute.opened_side,
            }
            for dispute in page
        ],
        "open_count": mine.open().count(),
    }
    return render(request, "leases/dispute_list.html", context)


@require_POST
@signed_in
def open_dispute(request: HttpRequest, lease_id: str) -> HttpResponseBase:
    """Dispute one window of a lease."""
    actor = actor_for(request)
    lease = access_lease(actor=actor, public_id=lease_id)
    chosen = request.POST.get("reading")
    if not chosen:
        messages.error(request, "Nothing is held. Choose the window that was wrong.")
        return redirect("leases:lease", lease_id=lease_id)
    reading = access_reading(actor=actor, public_id=chosen)
    if reading.lease_id != lease.pk:
        raise NotVisible(f"There is no such reading of {lease_id}.")
    try:
        dispute = disputes.open_dispute(
            actor=actor,
            reading=reading,
            statement=request.POST.get("statement", ""),
            now=utc_now(),
        )
    except DomainError as refusal:
        if refusal.status in {403, 404}:
            raise
        messages.error(request, f"Nothing is held. {refusal.message} {refusal.suggestion}".strip())
        return redirect("leases:lease", lease_id=lease_id)
    messages.success(request, f"{dispute.public_id} is open; its line waits for a ruling.")
    return redirect("leases:disputes")


@require_POST
@signed_in
def withdraw_dispute(request: HttpRequest, dispute_id: str) -> HttpResponseBase:
    """Take a dispute back."""
    actor = actor_for(request)
    dispute = access_dispute(actor=actor, public_id=dispute_id)
    disputes.withdraw(actor=actor, dispute=dispute, now=utc_now())
    messages.success(request, "Withdrawn. The line goes its way.")
    return redirect("leases:disputes")
