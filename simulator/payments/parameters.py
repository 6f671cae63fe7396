"""Reading form-encoded parameters as Stripe does, and refusing those it does not know.

What is known comes from the types of the installed `stripe` package, so that the stand-in never
accepts a request that the real service would turn away for its spelling.
"""

import re
import sys
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import stripe
from stripe import RequestOptions
from stripe.params import CustomerCreateParams
from stripe.params.checkout import SessionCreateParams

_PART = re.compile(r"\[([^\]]*)\]")
TYPES: dict[str, type] = {
    "checkout.session": SessionCreateParams,
    "customer": CustomerCreateParams,
}


class UnknownParameter(Exception):
    """A parameter that the service does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Received unknown parameter: {name}")
        self.name = name


def parse_form(text: str) -> dict[str, Any]:
    """Read `a[b][0][c]=d` into nested objects and lists; numbered objects become lists."""
    root: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        head, _, _ = name.partition("[")
        path = [head, *_PART.findall(name)]
        node = root
        for part in path[:-1]:
            node = node.setdefault(part, {})
        node[path[-1]] = value
    return {name: _as_lists(value) for name, value in root.items()}


def check_known(kind: str, parameters: Mapping[str, Any]) -> None:
    """Raise UnknownParameter for the first name, at any depth, that the type does not have."""
    _check(TYPES[kind], parameters, "")


def _check(expected: Any, given: Any, path: str) -> None:
    if isinstance(given, Mapping):
        names = _names_of(expected)
        if names is None:
            return
        for name, value in given.items():
            full = f"{path}[{name}]" if path else name
            if name not in names:
                raise UnknownParameter(full)
            _check(names[name], value, full)
    elif isinstance(given, list):
        for index, value in enumerate(given):
            _check(expected, value, f"{path}[{index}]")


def _names_of(expected: Any) -> Mapping[str, Any] | None:
    """Return the fields of a parameter type, or None where any name is allowed (metadata)."""
    for candidate in _alternatives(expected):
        if isinstance(candidate, type) and hasattr(candidate, "__total__"):
            return _fields(candidate)
    return None


def _alternatives(expected: Any) -> list[Any]:
    arguments = typing.get_args(expected)
    origin = typing.get_origin(expected)
    if origin is typing.Union or origin in (list, typing.Literal):
        return [found for argument in arguments for found in _alternatives(argument)]
    return [expected]


@cache
def _fields(typed: type) -> Mapping[str, Any]:
    module = sys.modules[typed.__module__]
    names = {**vars(typing), **vars(stripe), **vars(module), "StripeContext": object}
    hints = typing.get_type_hints(typed, globalns=names)
    options = set(RequestOptions.__annotations__)
    return {name: hint for name, hint in hints.items() if name not in options}


def _as_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    read = {name: _as_lists(item) for name, item in value.items()}
    if read and all(name.isdigit() for name in read):
        return [read[name] for name in sorted(read, key=int)]
    return read
