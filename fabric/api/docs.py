"""Pages for developers: the reference, drawn from the schema, and what every error code means."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator

from fabric.accounts.api.base import API_VERSION
from fabric.accounts.api.problems import problem_response
from fabric.accounts.domain.problems import PROBLEMS, ProblemKind
from fabric.accounts.domain.scopes import SCOPES
from fabric.lib.errors import DomainError

_METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Field:
    """One parameter, or one field of a body."""

    name: str
    kind: str
    required: bool
    meaning: str
    place: str = "body"


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    id: str
    method: str
    path: str
    summary: str
    meaning: str
    parameters: list[Field] = field(default_factory=list)
    body: list[Field] = field(default_factory=list)
    answer: list[Field] = field(default_factory=list)
    answer_status: str = ""


@require_safe
def show_reference(request: HttpRequest) -> HttpResponse:
    """Show every operation, grouped by the noun it is about."""
    context = {
        "groups": read_operations(),
        "scopes": SCOPES,
        "version": API_VERSION,
        "address": f"{settings.FABRIC_PUBLIC_URL}/api/v1/",
        "limits": settings.FABRIC_RATE_LIMITS["default"],
    }
    return render(request, "api/reference_show.html", context)


@require_safe
@cache_control(public=True, max_age=300)
def show_schema(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document, the same that is committed."""
    text = yaml.safe_dump(_schema(), sort_keys=False, allow_unicode=True)
    return HttpResponse(text, content_type="application/yaml")


def show_unknown(request: HttpRequest) -> HttpResponse:
    """Answer an unknown address below `/api/v1/` as a problem, whatever the method."""
    detail = "There is no such endpoint; every address of the API ends with a slash."
    return problem_response(request, "NOT_FOUND", 404, detail)


@require_safe
def list_errors(request: HttpRequest) -> HttpResponse:
    """List every error code."""
    return render(request, "api/error_list.html", {"problems": sorted(catalogue().items())})


@require_safe
def show_error(request: HttpRequest, code: str) -> HttpResponse:
    """Explain one code; `type` of every problem leads here."""
    kind = catalogue().get(code.upper())
    if kind is None:
        raise Http404
    return render(request, "api/error_show.html", {"code": code.upper(), "problem": kind})


@lru_cache(maxsize=1)
def catalogue() -> dict[str, ProblemKind]:
    """Return what every code means: the listed ones, and those of refusals by their docstring."""
    known = dict(PROBLEMS)
    for refusal in _refusals(DomainError):
        words = (refusal.__doc__ or "").split("\n\n")[0]
        title = refusal.code.replace("_", " ").capitalize()
        known.setdefault(
            refusal.code,
            ProblemKind(title, " ".join(words.split()), "`detail` and `suggestion` say more."),
        )
    return known


@lru_cache(maxsize=1)
def read_operations() -> dict[str, list[Operation]]:
    """Return the schema's operations by tag."""
    schema = _schema()
    groups: dict[str, list[Operation]] = {}
    for path, methods in schema["paths"].items():
        for method in _METHODS:
            if method in methods:
                operation = methods[method]
                tag = operation.get("tags", ["other"])[0].replace("-", " ")
                groups.setdefault(tag, []).append(_operation(schema, path, method, operation))
    return dict(sorted(groups.items()))


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return schema


def _operation(
    schema: dict[str, Any], path: str, method: str, operation: dict[str, Any]
) -> Operation:
    words, _, rest = operation.get("description", "").partition("\n")
    status, answer = next(
        ((code, given) for code, given in operation["responses"].items() if code.startswith("2")),
        ("", {}),
    )
    return Operation(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=words.replace("`", ""),
        meaning=rest.strip().replace("`", ""),
        parameters=[
            Field(
                given["name"],
                _kind(given.get("schema", {})),
                given.get("required", False),
                given.get("description", ""),
                given["in"],
            )
            for given in operation.get("parameters", [])
        ],
        body=_fields(schema, operation.get("requestBody", {})),
        answer=_fields(schema, answer),
        answer_status=status,
    )


def _fields(schema: dict[str, Any], container: dict[str, Any]) -> list[Field]:
    for content in container.get("content", {}).values():
        shape = _resolve(schema, content.get("schema", {}))
        required = set(shape.get("required", ()))
        return [
            Field(name, _kind(given), name in required, given.get("description", ""))
            for name, given in shape.get("properties", {}).items()
        ]
    return []


def _resolve(schema: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in shape:
        shape = schema["components"]["schemas"][shape["$ref"].rsplit("/", 1)[-1]]
    return shape


def _kind(shape: dict[str, Any]) -> str:
    if "$ref" in shape:
        return str(shape["$ref"].rsplit("/", 1)[-1])
    for word in ("allOf", "oneOf", "anyOf"):
        if word in shape:
            return " or ".join(_kind(part) for part in shape[word])
    if "enum" in shape:
        return " | ".join(str(value) for value in shape["enum"])
    if shape.get("type") == "array":
        return f"list of {_kind(shape.get('items', {}))}"
    kind = shape.get("type", "any")
    text = " or ".join(kind) if isinstance(kind, list) else str(kind)
    return f"{text} ({shape['format']})" if "format" in shape else text


def _refusals(base: type[DomainError]) -> list[type[DomainError]]:
    found = [base]
    for kind in base.__subclasses__():
        found += _refusals(kind)
    return found
