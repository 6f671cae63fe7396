"""The operators' site: who may enter, and the desk they find."""

from collections.abc import Mapping
from typing import Any

from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from unfold.sites import UnfoldAdminSite

from fabric.accounts.models import User
from fabric.backoffice import desk
from fabric.lib.clock import utc_now


class OperatorSite(UnfoldAdminSite):
    """Open to operators of the exchange, where settings say so only with a second factor."""

    index_title = "Desk"
    index_template = "operator/index.html"
    enable_nav_sidebar = True

    def has_permission(self, request: HttpRequest) -> bool:
        """Say whether the person is an operator who has shown enough."""
        user = request.user
        if not isinstance(user, User) or not (user.is_active and user.is_staff):
            return False
        return not settings.FABRIC_OPERATOR_MFA or bool(is_mfa_enabled(user))

    def login(
        self, request: HttpRequest, extra_context: Mapping[str, Any] | None = None
    ) -> HttpResponse:
        """Send people to the product's own sign-in; for a tenant there is no such page."""
        if not request.user.is_authenticated:
            return redirect_to_login(request.GET.get("next", reverse("admin:index")))
        if not getattr(request.user, "is_staff", False):
            raise Http404
        if self.has_permission(request):
            return redirect("admin:index")
        messages.warning(request, "Operators need a second factor. Set one up, then come back.")
        return redirect("mfa_index")

    def index(
        self, request: HttpRequest, extra_context: Mapping[str, Any] | None = None
    ) -> HttpResponse:
        """Show what waits for an operator, oldest first, and whether the ledger balances."""
        context = {"desk": desk.read_desk(now=utc_now()), **(extra_context or {})}
        answer: HttpResponse = super().index(request, context)
        return answer


operator_site = OperatorSite(name="admin")
