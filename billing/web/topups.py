"""Adding money to the balance by card: the form, and the page one comes back to."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from billing.access import access_top_up
from billing.domain.states import TopUpState
from billing.models import TopUp, Transfer
from billing.services import topups
from billing.services.wallet import available_micros
from billing.stripe_gateway import PaymentsRefused, PaymentsUnavailable, is_standin
from billing.web.forms import TopUpForm
from fabric.accounts.access import access_organisation, actor_for, signed_in
from fabric.accounts.domain.roles import Right
from fabric.accounts.web.refusals import add_refusal
from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError


class SeeOther(HttpResponseRedirect):
    """Leads from a posted form to the processor's payment page."""

    status_code = 303


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def create_top_up(request: HttpRequest) -> HttpResponse:
    """Ask for an amount; a POST opens a payment page and leads there."""
    actor = actor_for(request)
    organisation = access_organisation(actor=actor)
    actor.require(Right.PAY)
    form = TopUpForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            top_up = topups.start_top_up(
                actor=actor,
                organisation=organisation,
                amount_micros=form.cleaned_data["amount_micros"],
                key=f"form:{form.cleaned_data['key']}",
                now=utc_now(),
            )
        except DomainError as refusal:
            add_refusal(form, refusal)
        else:
            return SeeOther(top_up.checkout_url)
    context = {
        "form": form,
        "available": available_micros(organisation),
        "is_standin": is_standin(),
    }
    status = 400 if form.errors else 200
    return render(request, "billing/topup_new.html", context, status=status)


@signed_in
@require_safe
def show_top_up(request: HttpRequest, top_up_id: str) -> HttpResponse:
    """Show a top-up; coming back from the payment page, ask the processor at once.

    The webhook does the same, sooner or later; whoever is first credits the balance.
    """
    actor = actor_for(request)
    top_up = access_top_up(actor=actor, public_id=top_up_id)
    cannot_ask = False
    if top_up.state == TopUpState.CREATED and _comes_back(request, top_up):
        try:
            top_up = topups.fulfil(session_id=str(top_up.checkout_session), now=utc_now())
        except (PaymentsUnavailable, PaymentsRefused):
            cannot_ask = True
    context = {
        "now": utc_now(),
        "top_up": top_up,
        "cannot_ask": cannot_ask,
        "line": Transfer.objects.filter(idempotency_key=f"top-up:{top_up.public_id}").first(),
        "available": available_micros(top_up.organisation),
    }
    return render(request, "billing/topup_show.html", context)


def _comes_back(request: HttpRequest, top_up: TopUp) -> bool:
    return (
        top_up.checkout_session is not None
        and request.GET.get("session_id") == top_up.checkout_session
    )
