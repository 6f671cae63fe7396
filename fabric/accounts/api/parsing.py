"""Reading requests strictly: what is not understood is refused, never guessed."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.http import QueryDict
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from fabric.lib.errors import FieldError, InvalidInput

MAX_BODY_BYTES = 1024 * 1024
_MAX_DEPTH = 32


class StrictJsonParser(BaseParser):
    """One JSON object in UTF-8: no repeated names, no NaN, no lone surrogates, no deep nests."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the object, or raise ParseError."""
        raw = stream.read(MAX_BODY_BYTES + 1)
        if len(raw) > MAX_BODY_BYTES:
            raise ParseError("The body is larger than 1 MiB.")
        try:
            value = json.loads(
                raw.decode("utf-8"),
                object_pairs_hook=_refuse_repeated,
                parse_constant=_refuse_constant,
            )
        except (ValueError, RecursionError) as exc:
            raise ParseError("The body is not one valid JSON object.") from exc
        if not isinstance(value, dict):
            raise ParseError("The body must be a JSON object.")
        _check_texts(value, depth=0)
        return value


def read_fields(
    serializer_class: type[serializers.BaseSerializer[Any]], data: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the validated input; raises on unknown names at any depth, and on bad values."""
    serializer = serializer_class(data=data)
    unknown = list(_unknown_names(serializer, data, ""))
    serializer.is_valid(raise_exception=not unknown)
    if unknown:
        raise InvalidInput(
            f"Not known here: {', '.join(error.field for error in unknown)}.",
            errors=tuple(unknown),
        )
    validated: dict[str, Any] = serializer.validated_data
    return validated


def read_query(
    serializer_class: type[serializers.BaseSerializer[Any]],
    query: QueryDict,
    *,
    also: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the validated query parameters; `also` names those that something else reads."""
    ignored = set(also)
    data = {}
    fields = getattr(serializer_class(), "fields", {})
    for name, values in query.lists():
        if name not in ignored:
            is_list = isinstance(
                fields.get(name), (serializers.ListField, serializers.MultipleChoiceField)
            )
            data[name] = values if is_list else values[-1]
    return read_fields(serializer_class, data)


def _unknown_names(serializer: Any, data: Any, path: str) -> Iterable[FieldError]:
    if isinstance(serializer, serializers.ListSerializer):
        if isinstance(data, list):
            for index, item in enumerate(data):
                yield from _unknown_names(serializer.child, item, f"{path}/{index}")
        return
    if not isinstance(serializer, serializers.Serializer) or not isinstance(data, Mapping):
        return
    for name, value in data.items():
        field = serializer.fields.get(name)
        here = f"{path}/{str(name).replace('~', '~0').replace('/', '~1')}"
        if field is None or field.read_only:
            accepted = ", ".join(n for n, f in serializer.fields.items() if not f.read_only)
            yield FieldError(here, "There is no such field.", accepted, code="UNKNOWN_FIELD")
        else:
            yield from _unknown_names(field, value, here)


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name is repeated")
    return value


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _check_texts(value: Any, *, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ParseError("The body nests too deeply.")
    if isinstance(value, str):
        if "\x00" in value or not _is_unicode(value):
            raise ParseError("A text holds a character that cannot be stored.")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_texts(name, depth=depth + 1)
            _check_texts(inner, depth=depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_texts(inner, depth=depth + 1)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
