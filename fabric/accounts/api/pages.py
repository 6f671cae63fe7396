"""Long lists, a page at a time, by opaque cursors that stay right while rows come and go."""

import hashlib
import json
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.core import signing
from django.db import models
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from fabric.lib.errors import DomainError, FieldError, InvalidInput

DEFAULT_LIMIT = 25
MAX_LIMIT = 100
PAGE_PARAMETERS = ("limit", "cursor")
_LIVES_SECONDS = 24 * 3600
M = TypeVar("M", bound=models.Model)


class InvalidCursor(DomainError):
    """The cursor was edited, or belongs to another tenant, filter or order."""

    code = "INVALID_CURSOR"
    status = 400


class CursorExpired(DomainError):
    """The cursor is older than a day."""

    code = "CURSOR_EXPIRED"
    status = 400


class CursorPage(Generic[M]):
    """One page of a queryset in a total order.

    `order` names model or annotated fields, `-` before descending ones, ends with a unique one, and
    holds no nullable field: the cursor is the place after the last row's values, so it survives the
    deletion of that row. It is bound to the tenant and to every other query parameter.
    """

    def __init__(
        self,
        request: Request,
        queryset: "models.QuerySet[M]",
        *,
        order: Sequence[str],
        tenant: uuid.UUID | None,
    ) -> None:
        self.request = request
        self.order = tuple(order)
        self.tenant = tenant
        self.limit = _read_limit(request)
        self._load(queryset)

    def response(self, represent: Callable[[M], Any]) -> Response:
        """Return the page as JSON, each row through `represent`, with links to its neighbours."""
        body = {
            "data": [represent(row) for row in self.rows],
            "has_more": self.has_more,
            "next_cursor": self.next_cursor,
            "prev_cursor": self.prev_cursor,
        }
        response = Response(body)
        links = [
            f'<{self._address(cursor)}>; rel="{rel}"'
            for rel, cursor in (("next", self.next_cursor), ("prev", self.prev_cursor))
            if cursor
        ]
        if links:
            response["Link"] = ", ".join(links)
        return response

    def _load(self, queryset: "models.QuerySet[M]") -> None:
        cursor = self._read_cursor()
        backwards = bool(cursor and cursor["back"])
        order = tuple(_flip(name) for name in self.order) if backwards else self.order
        if cursor:
            queryset = queryset.filter(_after(order, cursor["at"]))
        rows = list(queryset.order_by(*order)[: self.limit + 1])
        more, rows = len(rows) > self.limit, rows[: self.limit]
        if backwards:
            rows.reverse()
        self.rows = rows
        self.has_more = bool(rows) and (backwards or more)
        has_earlier = bool(rows) and (more if backwards else cursor is not None)
        self.next_cursor = self._write_cursor(rows[-1], back=False) if self.has_more else None
        self.prev_cursor = self._write_cursor(rows[0], back=True) if has_earlier else None

    def _salt(self) -> str:
        others = sorted(
            (name, values)
            for name, values in self.request.query_params.lists()
            if name not in PAGE_PARAMETERS
        )
        bound = json.dumps([1, str(self.tenant), self.request.path, others, self.order])
        return "cursor:" + hashlib.sha256(bound.encode()).hexdigest()

    def _write_cursor(self, row: M, *, back: bool) -> str:
        at = [_pack(getattr(row, name.lstrip("-"))) for name in self.order]
        return signing.dumps({"at": at, "back": back}, salt=self._salt(), compress=True)

    def _read_cursor(self) -> dict[str, Any] | None:
        text = self.request.query_params.get("cursor")
        if text is None:
            return None
        try:
            cursor = signing.loads(text, salt=self._salt(), max_age=_LIVES_SECONDS)
        except signing.SignatureExpired as exc:
            raise CursorExpired("This cursor is older than a day; start again without it.") from exc
        except signing.BadSignature as exc:
            raise InvalidCursor(
                "This cursor does not belong to this list.",
                suggestion="Keep the filters of the first page, or start again without a cursor.",
            ) from exc
        return {"at": [_unpack(value) for value in cursor["at"]], "back": cursor["back"]}

    def _address(self, cursor: str) -> str:
        query = self.request.query_params.copy()
        query["cursor"] = cursor
        return self.request.build_absolute_uri(f"{self.request.path}?{query.urlencode()}")


class PageQuery(serializers.Serializer[Any]):
    """The query parameters of every list; filters of a list extend it."""

    limit = serializers.IntegerField(
        required=False, min_value=1, help_text=f"Default {DEFAULT_LIMIT}; at most {MAX_LIMIT}."
    )
    cursor = serializers.CharField(required=False, max_length=1024)


def page_of(output: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """Return the schema of a page of `output`, for `extend_schema(responses=…)`."""
    name = f"{output.__name__.removesuffix('Output')}Page"
    known = _PAGES.get(name)
    if known is None:
        fields = {
            "data": output(many=True),
            "has_more": serializers.BooleanField(),
            "next_cursor": serializers.CharField(allow_null=True),
            "prev_cursor": serializers.CharField(allow_null=True),
        }
        known = _PAGES[name] = type(name, (serializers.Serializer,), fields)
    return known


_PAGES: dict[str, type[serializers.Serializer[Any]]] = {}


def _read_limit(request: Request) -> int:
    text = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise InvalidInput(
            "The limit is not acceptable.",
            errors=(FieldError("limit", "Not a whole number above 0.", f"1 to {MAX_LIMIT}"),),
        )
    return min(int(text), MAX_LIMIT)


def _flip(name: str) -> str:
    return name[1:] if name.startswith("-") else f"-{name}"


def _after(order: Sequence[str], at: Sequence[Any]) -> models.Q:
    condition = models.Q()
    for index, name in enumerate(order):
        step = models.Q(
            **{f"{earlier.lstrip('-')}": at[i] for i, earlier in enumerate(order[:index])}
        )
        compare = "lt" if name.startswith("-") else "gt"
        condition |= step & models.Q(**{f"{name.lstrip('-')}__{compare}": at[index]})
    return condition


def _pack(value: Any) -> list[Any]:
    if isinstance(value, datetime):
        return ["t", value.isoformat()]
    if isinstance(value, uuid.UUID):
        return ["u", str(value)]
    if value is None:
        raise TypeError("a list cannot be ordered by a nullable field")
    return ["v", value]


def _unpack(packed: list[Any]) -> Any:
    kind, value = packed
    if kind == "t":
        return datetime.fromisoformat(value)
    return uuid.UUID(value) if kind == "u" else value
