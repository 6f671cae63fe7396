"""Errors for programs: RFC 9457 problem details with a stable code."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from fabric.accounts.domain.problems import title_of
from fabric.lib.errors import DomainError, FieldError
from fabric.lib.requests import current_request_id

CONTENT_TYPE = "application/problem+json"
log = structlog.get_logger(__name__)

_CODES: dict[type[exceptions.APIException], str] = {
    exceptions.ParseError: "MALFORMED_BODY",
    exceptions.AuthenticationFailed: "NOT_AUTHENTICATED",
    exceptions.NotAuthenticated: "NOT_AUTHENTICATED",
    exceptions.PermissionDenied: "NOT_ALLOWED",
    exceptions.NotFound: "NOT_FOUND",
    exceptions.MethodNotAllowed: "METHOD_NOT_ALLOWED",
    exceptions.NotAcceptable: "NOT_ACCEPTABLE",
    exceptions.UnsupportedMediaType: "UNSUPPORTED_MEDIA_TYPE",
    exceptions.Throttled: "TOO_MANY_REQUESTS",
}


def handle_exception(exc: Exception, context: Mapping[str, Any]) -> Response | None:
    """Turn what a view raised into a problem; called by DRF for every failure of an endpoint."""
    request = context.get("request")
    path = request.path if request is not None else ""
    set_rollback()
    if isinstance(exc, DomainError):
        body = problem_of_refusal(exc, path=path)
        response = problem_answer(body)
        if exc.retryable:
            response["Retry-After"] = str(exc.metadata.get("retry_after_seconds", 1))
        return response
    if isinstance(exc, Http404):
        return problem_answer(problem("NOT_FOUND", 404, "There is nothing here.", path=path))
    if isinstance(exc, PermissionDenied):
        return problem_answer(problem("NOT_ALLOWED", 403, "This is not allowed.", path=path))
    if isinstance(exc, exceptions.APIException):
        return _answer_framework(exc, path)
    log.error("an endpoint failed", path=path, exc_info=exc)
    unreachable = isinstance(exc, OperationalError)
    body = problem(
        "UNAVAILABLE" if unreachable else "INTERNAL_ERROR",
        503 if unreachable else 500,
        "Something failed on our side; nothing was changed.",
        path=path,
        retryable=True,
        suggestion="Send the same request again; name the request id if it keeps failing.",
    )
    response = problem_answer(body)
    response["Retry-After"] = "2"
    return response


def problem(
    code: str,
    status: int,
    detail: str,
    *,
    path: str = "",
    errors: Sequence[Mapping[str, str]] = (),
    retryable: bool = False,
    suggestion: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the body of a problem; `type` leads to the page that explains the code."""
    return {
        "type": f"{settings.FABRIC_PUBLIC_URL}/docs/errors/{code.lower()}/",
        "title": title_of(code),
        "status": status,
        "detail": detail,
        "instance": path,
        "code": code,
        "errors": list(errors),
        "request_id": current_request_id(),
        "retryable": retryable,
        "suggestion": suggestion,
        "metadata": dict(metadata or {}),
    }


def problem_of_refusal(exc: DomainError, *, path: str) -> dict[str, Any]:
    """Return the body for a refusal of a service."""
    return problem(
        exc.code,
        exc.status,
        exc.message,
        path=path,
        errors=[_field_entry(error) for error in exc.errors],
        retryable=exc.retryable,
        suggestion=exc.suggestion,
        metadata=exc.metadata,
    )


def problem_answer(body: dict[str, Any]) -> Response:
    """Return a DRF response that carries a problem."""
    return Response(body, status=body["status"], content_type=CONTENT_TYPE)


def problem_response(request: HttpRequest, code: str, status: int, detail: str) -> JsonResponse:
    """Return a problem outside of DRF: error handlers and middleware below `/api/`."""
    body = problem(code, status, detail, path=request.path)
    return JsonResponse(body, status=status, content_type=CONTENT_TYPE)


def _answer_framework(exc: exceptions.APIException, path: str) -> Response:
    if isinstance(exc, exceptions.ValidationError):
        entries = list(_entries(exc.detail, ""))
        body = problem(
            "INVALID_INPUT", 400, "Some fields cannot be accepted.", path=path, errors=entries
        )
        return problem_answer(body)
    code = next((_CODES[kind] for kind in type(exc).__mro__ if kind in _CODES), "REFUSED")
    wait = getattr(exc, "wait", None)
    body = problem(code, exc.status_code, str(exc.detail), path=path, retryable=wait is not None)
    response = problem_answer(body)
    if wait is not None:
        response["Retry-After"] = str(int(wait))
    if header := getattr(exc, "auth_header", None):
        response["WWW-Authenticate"] = header
    return response


def _field_entry(error: FieldError) -> dict[str, str]:
    return {
        "pointer": pointer_of(error.field),
        "code": error.code,
        "detail": error.reason,
        "accepted": error.accepted,
    }


def pointer_of(field: str) -> str:
    """Return a JSON pointer for `price.amount_micros`; a text that is one already stays."""
    if field.startswith("/") or not field:
        return field
    return "/" + field.replace("~", "~0").replace("/", "~1").replace(".", "/")


def _entries(detail: Any, pointer: str) -> Iterator[dict[str, str]]:
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            escaped = str(name).replace("~", "~0").replace("/", "~1")
            yield from _entries(
                inner, pointer if name == "non_field_errors" else f"{pointer}/{escaped}"
            )
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            nested = isinstance(inner, (Mapping, list))
            yield from _entries(inner, f"{pointer}/{index}" if nested else pointer)
    else:
        code = str(getattr(detail, "code", "invalid")).upper()
        yield {"pointer": pointer, "code": code, "detail": str(detail), "accepted": ""}
