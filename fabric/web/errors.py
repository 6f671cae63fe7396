"""What a person sees when something is refused or breaks: what, whether it cost, what to do."""

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string

from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError, FieldError
from fabric.lib.requests import current_request_id
from fabric.web.frame import BareFrame

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Fault:
    """An error as its page tells it."""

    status: int
    title: str
    what: str
    do: str
    code: str
    errors: tuple[FieldError, ...] = field(default=())


_KNOWN = {
    400: Fault(
        400,
        "That request could not be read",
        "Something in it was not what this page accepts.",
        "Go back, reload the page and send the form again.",
        "BAD_REQUEST",
    ),
    403: Fault(
        403,
        "Not allowed",
        "Your role in this organisation does not cover this act.",
        "Ask an owner or admin of the organisation, or switch to another one in the settings.",
        "NOT_ALLOWED",
    ),
    404: Fault(
        404,
        "Nothing here",
        "There is no such page, or it belongs to an organisation you are not acting for.",
        "Check the id, or search for it above. Ids are compared exactly.",
        "NOT_FOUND",
    ),
    500: Fault(
        500,
        "A fault of ours",
        "The page broke on our side. What you sent was either done whole or not at all.",
        "Reload the page to see where things stand; if it breaks again, send us the request id.",
        "INTERNAL",
    ),
}
_CSRF = Fault(
    403,
    "The form was too old",
    "It did not carry the token that proves it came from this site.",
    "Go back, reload the page and send the form again. Cookies must be allowed for this site.",
    "CSRF_TOKEN",
)
_TITLES = {
    400: "That was refused",
    402: "Not enough funds",
    403: "Not allowed",
    404: "Nothing here",
    409: "Things have moved on",
    422: "That was refused",
}


def show_bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 400; plainly to a name that is not ours, as no address of ours can be printed then."""
    if isinstance(exception, DisallowedHost):
        said = "Nothing is served under this name. Check the Host header.\n"
        return HttpResponse(said, status=400, content_type="text/plain; charset=utf-8")
    return _show(request, _KNOWN[400])


def show_forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 403."""
    return _show(request, _KNOWN[403])


def show_not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 404, the same for what is not there and for what is another tenant's."""
    return _show(request, _KNOWN[404])


def show_csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 to a form without its token."""
    return _show(request, _CSRF)


def show_fault(request: HttpRequest) -> HttpResponse:
    """Answer 500 without asking the database or the session, either of which may be what broke."""
    return _show_bare(request, _KNOWN[500])


class RefusalPageMiddleware:
    """Turns a service's refusal, where no page handled it, into a page that says so.

    The programs' interfaces answer their own refusals before this is reached.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Serve the request."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer a refusal with its own status; leave every other exception alone."""
        if not isinstance(exception, DomainError):
            return None
        if exception.status == 404:
            return _show(request, _KNOWN[404])
        fault = Fault(
            exception.status,
            _TITLES.get(exception.status, "That was refused"),
            exception.message,
            exception.suggestion or "Nothing was changed and nothing was charged.",
            exception.code,
            exception.errors,
        )
        return _show(request, fault)


def _show(request: HttpRequest, fault: Fault) -> HttpResponse:
    if not hasattr(request, "user"):  # Refused before anybody asked who it is.
        return _show_bare(request, fault)
    context = {"fault": fault, "request_id": current_request_id(), "as_of": utc_now()}
    return render(request, "errors/fault.html", context, status=fault.status)


def _show_bare(request: HttpRequest, fault: Fault) -> HttpResponse:
    context = {
        "fault": fault,
        "request_id": current_request_id(),
        "frame": BareFrame(request),
        "messages": [],
        "csrf_token": "",
    }
    return HttpResponse(render_to_string("errors/bare.html", context), status=fault.status)
