"""A provider's own listings: all of them, a new one, and one with its findings."""

from datetime import datetime

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Case, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from fabric.accounts.access import actor_for, signed_in
from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError
from listings.access import access_listing
from listings.domain.states import ListingState
from listings.models import Listing
from listings.selectors import check_of
from listings.services.drafts import draft_listing
from listings.services.publishing import publish, version_of, withdraw
from listings.web.facets import class_words, name_classes
from listings.web.forms import ListingForm
from listings.web.listing import history_of
from listings.web.promises import build_promise_table
from providers.access import access_node, access_provider
from providers.domain.nodes import NodeState
from providers.models import Node, Provider

ROWS_PER_PAGE = 25


@require_GET
@signed_in
def list_own(request: HttpRequest) -> HttpResponse:
    """Show every listing of the provider, whatever its state."""
    provider = access_provider(actor=actor_for(request))
    rows = Listing.objects.filter(provider=provider).select_related("node", "current_revision")
    page = Paginator(rows.order_by("-created_at", "-id"), ROWS_PER_PAGE).get_page(
        request.GET.get("page", "1")
    )
    class_names = name_classes()
    context = {
        "now": utc_now(),
        "page": page,
        "rows": [(listing, class_words(listing, class_names)) for listing in page],
        "has_nodes": Node.objects.standing().filter(provider=provider).exists(),
    }
    return render(request, "listings/listing_list.html", context)


@require_http_methods(["GET", "POST"])
@signed_in
def create_listing(request: HttpRequest) -> HttpResponse:
    """Write a new listing; the form begins with what the node has shown."""
    actor = actor_for(request)
    provider = access_provider(actor=actor)
    nodes = _node_choices(provider)
    if request.method == "POST":
        form = ListingForm(request.POST, nodes=nodes)
        node = access_node(actor=actor, public_id=request.POST.get("node", ""))
        listing, status = _publish(form, actor=actor, node=node, now=utc_now())
        if listing is not None:
            messages.success(request, "Written down. It is on sale once its check has accepted it.")
            return redirect("listings:manage", listing_id=listing.public_id)
        return _render_form(request, form, nodes, node=node, status=status)
    chosen = request.GET.get("node") or (nodes[0][0] if nodes else "")
    if not chosen:
        return _render_form(request, ListingForm(nodes=nodes), nodes)
    node = access_node(actor=actor, public_id=chosen)
    form = ListingForm(nodes=nodes, node=node.public_id, body=draft_listing(node=node))
    return _render_form(request, form, nodes, node=node)


@require_http_methods(["GET", "POST"])
@signed_in
def manage_listing(request: HttpRequest, listing_id: str) -> HttpResponse:
    """Show one listing to its provider, with what its check found; post its next revision."""
    actor = actor_for(request)
    listing = access_listing(actor=actor, public_id=listing_id)
    newest = listing.revisions.all()[0]
    nodes = [(listing.node.public_id, listing.node.name)]
    status = 200
    if request.method == "POST":
        form = ListingForm(request.POST, nodes=nodes)
        version = request.POST.get("version", "")
        changed, status = _publish(
            form, actor=actor, node=listing.node, now=utc_now(), listing=listing, version=version
        )
        if changed is not None:
            messages.success(request, "Written down as a new revision. Leases keep theirs.")
            return redirect("listings:manage", listing_id=listing_id)
    else:
        form = ListingForm(nodes=nodes, node=listing.node.public_id, body=newest.body)
    check = check_of(newest)
    context = {
        "now": utc_now(),
        "listing": listing,
        "newest": newest,
        "offer": class_words(listing, name_classes()),
        "check": check,
        "table": build_promise_table(newest, check),
        "is_waiting": listing.state == ListingState.CHECKING,
        "is_on_sale": listing in Listing.objects.on_sale().filter(pk=listing.pk),
        "falls_back": listing.state == ListingState.PUBLISHED
        and listing.current_revision_id != newest.pk,
        "can_withdraw": listing.state != ListingState.WITHDRAWN,
        "may_change": actor.is_operator or Right.PROVIDE in actor.rights,
        "steps": history_of(listing, accepted_only=False),
        "version": version_of(listing),
        "form": form,
    }
    is_part = bool(request.headers.get("HX-Request"))
    template = "listings/listing_manage.html"
    return render(request, f"{template}#findings" if is_part else template, context, status=status)


@require_POST
@signed_in
def withdraw_listing(request: HttpRequest, listing_id: str) -> HttpResponse:
    """Take a listing off the catalogue."""
    actor = actor_for(request)
    listing = access_listing(actor=actor, public_id=listing_id)
    withdraw(actor=actor, listing=listing, now=utc_now())
    messages.success(request, "Off the catalogue. Leases on it run on to their end.")
    return redirect("listings:manage", listing_id=listing_id)


def _publish(
    form: ListingForm,
    *,
    actor: Actor,
    node: Node,
    now: datetime,
    listing: Listing | None = None,
    version: str = "",
) -> tuple[Listing | None, int]:
    """Call the service; a refusal goes into the form, with the status it answers with."""
    try:
        published = publish(
            actor=actor,
            provider=node.provider,
            node=node,
            body=form.body(),
            listing=listing,
            expected_version=version,
            now=now,
        )
    except DomainError as refusal:
        if refusal.status in {403, 404}:
            raise
        form.refuse(refusal)
        return None, refusal.status
    return published, 200


def _render_form(
    request: HttpRequest,
    form: ListingForm,
    nodes: list[tuple[str, str]],
    *,
    node: Node | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {"form": form, "node": node, "has_nodes": bool(nodes)}
    return render(request, "listings/listing_new.html", context, status=status)


def _node_choices(provider: Provider) -> list[tuple[str, str]]:
    admitted_first = Case(When(state=NodeState.ADMITTED, then=0), default=1)
    nodes = Node.objects.standing().filter(provider=provider).order_by(admitted_first, "name")
    return [(node.public_id, f"{node.name} ({node.state.replace('_', ' ')})") for node in nodes]
