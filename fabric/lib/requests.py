"""One id for every request, on its reply and on every line it logs."""

import re
from collections.abc import Callable
from contextvars import ContextVar

import structlog
from django.http import HttpRequest, HttpResponseBase

from fabric.lib import ids

HEADER = "Request-Id"
_ACCEPTABLE = re.compile(r"^[A-Za-z0-9_-]{8,64}$")
_current: ContextVar[str] = ContextVar("request_id", default="")


def current_request_id() -> str:
    """Return the id of the request being served, or an empty text outside of one."""
    return _current.get()


class RequestIdMiddleware:
    """Gives each request an id, or keeps the caller's where it cannot corrupt a log line."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Serve the request under its id."""
        given = request.headers.get(HEADER, "")
        request_id = given if _ACCEPTABLE.match(given) else ids.to_public("req", ids.uuid7())
        token = _current.set(request_id)
        try:
            with structlog.contextvars.bound_contextvars(request_id=request_id):
                response = self.get_response(request)
        finally:
            _current.reset(token)
        response[HEADER] = request_id
        return response
