"""Content policies by path: the back office needs more than the product's own pages."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase


class OperatorPolicyMiddleware:
    """Gives the back office its own policy: its theme evaluates expressions and styles inline.

    Everything else keeps `'self'` only, so an injected script runs nowhere a tenant looks.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Serve the request; widen the policy below `/operator/`."""
        response = self.get_response(request)
        if request.path_info.startswith("/operator/"):
            response._csp_replace = settings.FABRIC_OPERATOR_POLICY  # type: ignore[attr-defined]  # noqa: SLF001 - how django-csp takes a policy
        return response
