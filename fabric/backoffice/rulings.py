"""The ruling on a dispute: the evidence, the decision and what it does to the ledger."""

import uuid
from dataclasses import dataclass

from allauth.account.decorators import reauthentication_required
from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextareaWidget

from billing.domain.lines import split_amount
from fabric.accounts.access import actor_for
from fabric.backoffice.figures import money
from fabric.backoffice.site import operator_site
from fabric.journal.services.parameters import get_pinned_commercial
from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError
from leases.domain.states import DisputeState
from leases.models import Dispute, WitnessReading
from leases.services import disputes

WHOLE = 10_000


class ShareForm(forms.Form):
    """How much of the line stands; asked first, so that its effect can be seen."""

    stands_bps = forms.IntegerField(
        label="Part of the line that stands, in basis points (0 to 10000)",
        min_value=0,
        max_value=WHOLE,
        widget=UnfoldAdminIntegerFieldWidget,
    )


class RulingForm(ShareForm):
    """The decision itself, with its reason."""

    stands_bps = forms.IntegerField(min_value=0, max_value=WHOLE, widget=forms.HiddenInput)
    ruling = forms.CharField(
        label="Reason; both parties read it, and the audit log keeps it",
        widget=UnfoldAdminTextareaWidget,
        max_length=4000,
    )


@dataclass(frozen=True)
class Leg:
    """One movement a ruling would cause."""

    label: str
    micros: int

    @property
    def amount(self) -> str:
        """The amount with all six places."""
        return money(self.micros)


@dataclass(frozen=True)
class Effect:
    """What a ruling would do to the disputed line: legs that add up to it."""

    stands_micros: int
    line_micros: int
    legs: list[Leg]

    @property
    def stands(self) -> str:
        """What would settle."""
        return money(self.stands_micros)

    @property
    def returns(self) -> str:
        """What would go back to the buyer's escrow."""
        return money(self.line_micros - self.stands_micros)

    @property
    def total(self) -> str:
        """The sum of the legs, which is the whole line."""
        return money(sum(leg.micros for leg in self.legs))


def preview_effect(dispute: Dispute, stands_bps: int) -> Effect:
    """Return how the disputed line would be divided, by the parameters its terms pinned."""
    record = dispute.reading.usage_record
    if record is None:
        return Effect(0, 0, [])
    stands = record.amount_micros * stands_bps // WHOLE
    parameters = get_pinned_commercial(digest=bytes(record.terms.parameters_digest))
    shares = split_amount(stands, fee_shares_bps=parameters.fee_shares_bps)
    legs = [Leg(f"{name} share".replace("_", " "), part) for name, part in shares.items()]
    legs.append(Leg("back to the buyer's escrow", record.amount_micros - stands))
    return Effect(stands, record.amount_micros, legs)


@reauthentication_required(allow_get=True)
def rule_on_dispute(request: HttpRequest, key: uuid.UUID) -> HttpResponse:
    """Show a dispute with its evidence and a ruling's effect; make the ruling on POST.

    Looking needs no step-up; a ruling moves money, so it needs a recent proof of identity.
    """
    dispute = (
        Dispute.objects.select_related(
            "lease__node",
            "lease__organisation",
            "lease__provider",
            "reading__batch",
            "reading__usage_record__terms",
        )
        .filter(pk=key)
        .first()
    )
    if dispute is None:
        raise Http404
    if request.method != "POST":
        share = ShareForm(request.GET or None)
        bps = share.cleaned_data["stands_bps"] if share.is_valid() else WHOLE
        return _show(request, dispute, share, RulingForm(initial={"stands_bps": bps}), bps)
    form = RulingForm(request.POST)
    if form.is_valid():
        bps = form.cleaned_data["stands_bps"]
        try:
            disputes.rule(
                actor=actor_for(request),
                dispute=dispute,
                stands_bps=bps,
                ruling=form.cleaned_data["ruling"],
                now=utc_now(),
            )
        except DomainError as refusal:
            form.add_error(None, refusal.message)
        else:
            messages.success(request, f"Ruled on {dispute.public_id}: {bps / 100:g} % stands.")
            return redirect(reverse("admin:leases_dispute_change", args=[dispute.pk]))
    bps = form.cleaned_data.get("stands_bps", WHOLE)
    return _show(request, dispute, ShareForm(initial={"stands_bps": bps}), form, bps)


def _show(
    request: HttpRequest, dispute: Dispute, share: ShareForm, form: RulingForm, stands_bps: int
) -> HttpResponse:
    reading = dispute.reading
    if not share.is_bound:
        share.fields["stands_bps"].initial = stands_bps
    context = {
        **operator_site.each_context(request),
        "title": f"Rule on {dispute.public_id}",
        "dispute": dispute,
        "reading": reading,
        "record": reading.usage_record,
        "batch_digest": bytes(reading.batch.digest).hex() if reading.batch else "",
        "witnesses": WitnessReading.objects.filter(
            lease=dispute.lease_id, window_index=reading.window_index
        ),
        "share": share,
        "form": form,
        "percent": f"{stands_bps / 100:g} %",
        "effect": preview_effect(dispute, stands_bps),
        "is_open": dispute.state == DisputeState.OPEN,
    }
    return render(request, "operator/ruling.html", context, status=400 if form.errors else 200)
