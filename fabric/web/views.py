"""Pages that belong to no single app: home, search, preferences."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from fabric.accounts.models import User
from fabric.lib.clock import utc_now
from fabric.web.errors import show_bad_request
from fabric.web.figures import read_network_figures
from fabric.web.frame import THEME_SESSION_KEY


@require_GET
def show_home(request: HttpRequest) -> HttpResponse:
    """Say what this is, with the network's figures as the database has them now."""
    figures = read_network_figures(now=utc_now())
    return render(request, "web/home.html", {"figures": figures})


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
