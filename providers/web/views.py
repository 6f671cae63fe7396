"""A provider's pages about nodes: the list, one node with its evidence, and enrolling."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from fabric.accounts.access import actor_for, signed_in
from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.accounts.web.refusals import add_refusal
from fabric.journal.services.parameters import get_operational
from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError
from providers.access import access_enrolment_token, access_node, access_provider
from providers.domain.inventory import INVENTORY_CHANGED
from providers.domain.nodes import NodeState
from providers.models import Enrolment, EnrolmentToken, Hold, Node, Unit
from providers.selectors import beat_of, liveness_now, path_of
from providers.services.capacity import list_free_units
from providers.services.challenges import retest_node
from providers.services.enrolment import create_token, revoke_token, token_state
from providers.services.nodes import measured_facts, retire_node, revoke_keys
from providers.services.profile import change_profile
from providers.web.evidence import show_checks, show_facts
from providers.web.forms import EnrolmentForm, ProfileForm, RevocationForm

ROWS_PER_PAGE = 50
TOKENS_SHOWN = 20
_FORM = require_http_methods(["GET", "HEAD", "POST"])
_MOVING = {NodeState.ENROLLED, NodeState.PROVING, NodeState.FENCED}


@signed_in
@require_safe
def list_nodes(request: HttpRequest) -> HttpResponse:
    """Show every node of the provider: state, health, tier, and what holds it back."""
    actor, now = actor_for(request), utc_now()
    access_provider(actor=actor)
    nodes = (
        Node.objects.filter(provider__organisation=actor.organisation_id)
        .select_related("hardware_class", "beat")
        .order_by("name", "id")
    )
    rules = get_operational(now=now)
    shows_retired = request.GET.get("retired") == "1"
    page = Paginator(nodes if shows_retired else nodes.standing(), ROWS_PER_PAGE).get_page(
        request.GET.get("page", "1")
    )
    context = {
        "page": page,
        "rows": [
            (node, liveness_now(node=node, now=now, rules=rules), beat_of(node)) for node in page
        ],
        "shows_retired": shows_retired,
        "may_change": _may_change(actor),
        "now": now,
    }
    return render(request, "providers/node_list.html", context)


@signed_in
@require_safe
def show_node(request: HttpRequest, node_id: str) -> HttpResponse:
    """Show one node: how far it has come, what was measured, and what to do next."""
    actor = actor_for(request)
    node = access_node(actor=actor, public_id=node_id)
    context = _node_context(actor, node)
    is_part = request.headers.get("HX-Request") and not request.headers.get("HX-Boosted")
    template = "providers/node_detail.html"
    return render(request, f"{template}#standing" if is_part else template, context)


@signed_in
@require_POST
def retest(request: HttpRequest, node_id: str) -> HttpResponse:
    """Have a node tested again."""
    actor = actor_for(request)
    node = access_node(actor=actor, public_id=node_id)
    try:
        retest_node(actor=actor, node=node, now=utc_now())
    except DomainError as refusal:
        return _refused(request, actor, node, refusal)
    messages.success(request, "A new challenge waits for the agent. Nothing is placed meanwhile.")
    return redirect("providers:node", node_id=node_id)


@signed_in
@require_POST
def retire(request: HttpRequest, node_id: str) -> HttpResponse:
    """Take a node out of service for good."""
    actor = actor_for(request)
    node = access_node(actor=actor, public_id=node_id)
    try:
        retire_node(actor=actor, node=node, now=utc_now())
    except DomainError as refusal:
        return _refused(request, actor, node, refusal)
    messages.success(request, f"{node.name} is retired. Its machine may enrol anew.")
    return redirect("providers:node", node_id=node_id)


@signed_in
@require_POST
def revoke(request: HttpRequest, node_id: str) -> HttpResponse:
    """End every key of a node."""
    actor = actor_for(request)
    node = access_node(actor=actor, public_id=node_id)
    form = RevocationForm(request.POST)
    if not form.is_valid():
        context = _node_context(actor, node) | {"revocation": form}
        return render(request, "providers/node_detail.html", context, status=400)
    try:
        ended = revoke_keys(
            actor=actor, node=node, reason=form.cleaned_data["reason"], now=utc_now()
        )
    except DomainError as refusal:
        return _refused(request, actor, node, refusal)
    messages.success(
        request, f"{ended} key{'s' if ended != 1 else ''} ended. Retire the node next."
    )
    return redirect("providers:node", node_id=node_id)


@signed_in
@_FORM
def enrol(request: HttpRequest) -> HttpResponse:
    """Make an enrolment token and show the commands, once; list the tokens there are."""
    actor, now = actor_for(request), utc_now()
    provider = access_provider(actor=actor)
    form = EnrolmentForm(request.POST if request.method == "POST" else None)
    text, made, status = "", None, 200
    if request.method == "POST" and form.is_valid():
        try:
            text, made = create_token(
                provider=provider,
                actor=actor,
                now=now,
                accepts_unisolated=form.cleaned_data.get("accepts_unisolated", False),
            )
        except DomainError as refusal:
            if refusal.status == 403:
                raise
            add_refusal(form, refusal)
            status = refusal.status
    tokens = EnrolmentToken.objects.filter(provider=provider).select_related("enrolment__node")
    context = {
        "form": form,
        "made": made,
        "commands": _commands(text) if text else [],
        "tokens": [
            (token, token_state(token, now=now), _enrolled_by(token))
            for token in tokens[:TOKENS_SHOWN]
        ],
        "may_change": _may_change(actor),
        "now": now,
    }
    return render(request, "providers/enrolment_new.html", context, status=status)


@signed_in
@require_POST
def withdraw_token(request: HttpRequest, token_id: str) -> HttpResponse:
    """Revoke an unused token."""
    actor = actor_for(request)
    token = access_enrolment_token(actor=actor, public_id=token_id)
    try:
        revoke_token(actor=actor, token=token, now=utc_now())
    except DomainError as refusal:
        if refusal.status in {403, 404}:
            raise
        messages.error(request, f"{refusal.message} {refusal.suggestion}".strip())
    else:
        messages.success(request, "The token is worth nothing now.")
    return redirect("providers:enrol")


@signed_in
@_FORM
def edit_profile(request: HttpRequest) -> HttpResponse:
    """Change what the provider declares."""
    actor = actor_for(request)
    provider = access_provider(actor=actor)
    actor.require(Right.PROVIDE)
    names = ("name", "country", "region", "pool", "facility")
    form = ProfileForm(
        request.POST if request.method == "POST" else None,
        initial={name: getattr(provider, name) for name in names},
    )
    if request.method == "POST" and form.is_valid():
        try:
            change_profile(actor=actor, provider=provider, now=utc_now(), **form.cleaned_data)
        except DomainError as refusal:
            add_refusal(form, refusal)
        else:
            messages.success(request, "Changed. Listings keep what their revisions say.")
            return redirect("provider-overview")
    status = 400 if form.errors else 200
    return render(request, "providers/profile_edit.html", {"form": form}, status=status)


def _node_context(actor: Actor, node: Node) -> dict[str, Any]:
    now = utc_now()
    held = Hold.objects.in_force(now=now).filter(
        device=OuterRef("device"), slots__overlap=OuterRef("slots")
    )
    units = (
        Unit.objects.offered()
        .filter(device__node=node)
        .annotate(is_held=Exists(held))
        .select_related("device")
        .order_by("device__ordinal", "slots")
    )
    free = {unit.pk for unit in list_free_units(node=node, now=now)}
    path = path_of(node=node)
    return {
        "node": node,
        "now": now,
        "health": liveness_now(node=node, now=now),
        "beat": beat_of(node),
        "path": path,
        "took": next((step.since_start for step in reversed(path) if step.since_start), None),
        "checks": show_checks(node),
        "report": node.reports.first(),
        "facts": show_facts(measured_facts(node=node)),
        "units": [(unit, unit.pk in free) for unit in units],
        "is_changed": any(
            reason.get("code") == INVENTORY_CHANGED for reason in node.held_back_reasons
        ),
        "keys": node.keys.order_by("-active_from"),
        "history": node.transitions.order_by("-id")[:12],
        "moves": node.state in _MOVING,
        "may_test": node.state in {NodeState.HELD_BACK, NodeState.ADMITTED},
        "may_change": _may_change(actor),
        "is_retired": node.state == NodeState.RETIRED,
        "revocation": RevocationForm(),
    }


def _refused(request: HttpRequest, actor: Actor, node: Node, refusal: DomainError) -> HttpResponse:
    if refusal.status in {403, 404}:
        raise refusal
    context = _node_context(actor, node) | {"refusal": refusal}
    return render(request, "providers/node_detail.html", context, status=refusal.status)


def _commands(token: str) -> list[tuple[str, str]]:
    url = settings.FABRIC_PUBLIC_URL
    return [
        ("Enrol this machine", f"fabric-agent enroll --url {url} --token {token}"),
        ("See what would pass and fail", "fabric-agent doctor"),
        ("Start: report, prove, take leases", "fabric-agent run"),
    ]


def _enrolled_by(token: EnrolmentToken) -> Node | None:
    enrolment: Enrolment | None = getattr(token, "enrolment", None)
    return enrolment.node if enrolment else None


def _may_change(actor: Actor) -> bool:
    return actor.is_operator or Right.PROVIDE in actor.rights
