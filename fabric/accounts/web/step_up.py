"""A new session id whenever a person proves again who they are."""

from collections.abc import Callable

from allauth.account.authentication import AUTHENTICATION_METHODS_SESSION_KEY
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase


class StepUpMiddleware:
    """Changes the session id after re-authentication, as Django does at sign-in.

    Whoever copied the cookie before must not share in what the fresh proof opens.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Serve the request; leave sessions alone that it did not strengthen."""
        if settings.SESSION_COOKIE_NAME not in request.COOKIES or request.method != "POST":
            return self.get_response(request)
        key, proofs = request.session.session_key, self._proofs(request)
        response = self.get_response(request)
        still_here = request.session.session_key == key and request.user.is_authenticated
        if still_here and self._proofs(request) > proofs:
            request.session.cycle_key()
        return response

    @staticmethod
    def _proofs(request: HttpRequest) -> float:
        """Return when the person last proved themselves in this session, 0 if never."""
        methods = request.session.get(AUTHENTICATION_METHODS_SESSION_KEY) or []
        return max((float(method.get("at", 0)) for method in methods), default=0.0)
