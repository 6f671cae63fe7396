"""Pages that belong to no single app: home, search, preferences."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from fabric.accounts.access import actor_for, signed_in
from fabric.accounts.domain.roles import Right
from fabric.accounts.models import User
from fabric.lib.clock import utc_now
from fabric.lib.errors import InvalidInput
from fabric.web.dashboard import read_dashboard
from fabric.web.errors import show_bad_request
from fabric.web.figures import read_network_figures
from fabric.web.forms import ProviderForm
from fabric.web.frame import THEME_SESSION_KEY, Frame
from fabric.web.provider_overview import find_provider, read_overview
from providers.services.registration import register_provider


@require_GET
def show_home(request: HttpRequest) -> HttpResponse:
    """Show the dashboard to those who act for an organisation, else what this is and its figures."""
    now = utc_now()
    organisation = Frame(request).organisation
    if organisation is not None:
        dashboard = read_dashboard(organisation=organisation, now=now)
        return render(request, "web/dashboard.html", {"dashboard": dashboard})
    return render(request, "web/home.html", {"figures": read_network_figures(now=now)})


@require_GET
def show_network(request: HttpRequest) -> HttpResponse:
    """Show the public front page to anybody, also to those who have a dashboard."""
    return render(request, "web/home.html", {"figures": read_network_figures(now=utc_now())})


@signed_in
def show_provider(request: HttpRequest) -> HttpResponse:
    """Show a provider its nodes, leases and earnings; let an organisation become a provider."""
    actor, now = actor_for(request), utc_now()
    organisation = Frame(request).organisation
    provider = find_provider(organisation) if organisation else None
    if provider is not None and actor.organisation_id is not None:
        actor.require(Right.SEE)
        overview = read_overview(provider=provider, now=now)
        return render(request, "web/provider.html", {"overview": overview})
    may = organisation is not None and Right.PROVIDE in actor.rights
    form = ProviderForm(request.POST if request.method == "POST" else None) if may else None
    if form is not None and organisation is not None and form.is_valid():
        try:
            register_provider(actor=actor, organisation=organisation, now=now, **form.cleaned_data)
        except InvalidInput as refusal:
            for error in refusal.errors:
                form.add_error(error.field, f"{error.reason}: {error.accepted}")
        else:
            messages.success(request, "You are a provider. Enrol a node next.")
            return redirect("provider-overview")
    status = 400 if form is not None and form.errors else 200
    return render(request, "web/provider_first.html", {"form": form}, status=status)


@require_GET
def show_icon(request: HttpRequest) -> HttpResponse:
    """Lead browsers that ask for the icon by its old name to the one we have."""
    return redirect(static("fabric/icon.svg"))


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Keep the chosen theme with the account, or with the session of somebody unknown."""
    theme = request.POST.get("theme", "")
    if theme not in {"system", "light", "dark"}:
        return show_bad_request(request)
    if isinstance(request.user, User):
        User.objects.filter(pk=request.user.pk).update(theme=theme)
    else:
        request.session[THEME_SESSION_KEY] = theme
    target = request.POST.get("next", "/")
    safe = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return redirect(target if safe else "/")
