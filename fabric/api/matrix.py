"""The table of access: every operation, who may call it, and with which scope.

It is read off the views that enforce it, committed as `docs/api/access.md`, and tested row by row.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver

from fabric.accounts.api.base import ApiView
from fabric.accounts.domain.roles import Right, Role, rights_of
from fabric.accounts.domain.scopes import SCOPES
from fabric.api.docs import read_operations

_METHODS = ("get", "post", "put", "patch", "delete")
_CONVERTER = re.compile(r"<(?:\w+:)?(\w+)>")


class RowMissing(Exception):
    """An operation does not say who may call it."""


@dataclass(frozen=True)
class Row:
    """One operation of the REST API."""

    operation: str
    method: str
    path: str
    scope: str
    right: Right | None
    """None where everybody may, with or without a key, or where only operators may."""
    idempotency: str
    is_for_operators: bool = False

    def allows(self, role: Role) -> bool:
        """Return whether this role may, given the scope."""
        if self.is_for_operators:
            return False
        return self.right is None or self.right in rights_of(role)

    @property
    def is_open(self) -> bool:
        """Whether everybody may, with or without a key."""
        return self.right is None and not self.is_for_operators


@dataclass(frozen=True)
class Page:
    """One address for people."""

    path: str
    name: str
    needs_sign_in: bool


def read_rows() -> list[Row]:
    """Return a row for every operation; raises RowMissing for one that does not declare itself."""
    named = {
        (operation.method, operation.path): operation.id
        for operations in read_operations().values()
        for operation in operations
    }
    return [
        row
        for path, pattern in addresses()
        if path.startswith("/api/v1/")
        for row in _rows_of(path, pattern, named)
    ]


def read_pages() -> list[Page]:
    """Return every address for people, outside the back office and the sign-in library."""
    outside = ("/api/v1/", "/agent/", "/webhooks/", "/operator/", "/accounts/", "/healthz/")
    return [
        Page(path, pattern.callback.__name__, getattr(pattern.callback, "needs_sign_in", False))
        for path, pattern in addresses()
        if not path.startswith((*outside, "/metrics"))
    ]


def addresses() -> Iterator[tuple[str, URLPattern]]:
    """Yield every address of the project as `/leases/{lease_id}/`, with its pattern."""
    yield from _walk(get_resolver(), "/")


def write_matrix() -> str:
    """Return the table of access as Markdown."""
    roles = list(Role)
    lines = [
        "# Who may do what",
        "",
        "Generated from the code by `python -m deploy.local.openapi --write`; every row is tested.",
        "",
        "A key needs the scope **and** its maker's role needs the right, both at the time of the call;",
        "a page's session has every scope. Objects of another organisation do not exist (404).",
        "",
        "## Operations of the REST API",
        "",
        "| Operation | Method and path | Scope | Right | "
        + " | ".join(roles)
        + " | no key | Idempotency-Key |",
        "|---" * (6 + len(roles)) + "|",
    ]
    for row in read_rows():
        may = " | ".join("yes" if row.allows(role) else "no" for role in roles)
        right = row.right.value if row.right else "none"
        if row.is_for_operators:
            right = "operator"
        lines.append(
            f"| `{row.operation}` | `{row.method} {row.path}` | `{row.scope}` | {right} | {may} "
            f"| {'yes' if row.is_open else 'no'} | {row.idempotency} |"
        )
    lines += ["", "## Pages", "", "| Path | View | Who |", "|---|---|---|"]
    lines += [
        f"| `{page.path}` | `{page.name}` | {'signed in' if page.needs_sign_in else 'anyone'} |"
        for page in read_pages()
    ]
    return "\n".join(lines) + "\n"


def _rows_of(path: str, pattern: URLPattern, named: dict[tuple[str, str], str]) -> Iterator[Row]:
    view = getattr(pattern.callback, "cls", None)
    if view is None or not issubclass(view, ApiView):
        return
    for method in _METHODS:
        if not hasattr(view, method):
            continue
        operation = named.get((method.upper(), path))
        scope = view.scopes.get(method, "")
        right = view.rights.get(method, Right.SEE if method == "get" else None)
        is_open = view.is_public and method == "get"
        if view.is_for_operators:
            right = None
        elif right is None and not is_open:
            raise RowMissing(f"{method.upper()} {path}: name its right")
        if operation is None or scope not in SCOPES:
            raise RowMissing(f"{method.upper()} {path}: name its operation and scope")
        repeats = view.idempotency if method == "post" else "optional"
        yield Row(
            operation,
            method.upper(),
            path,
            scope,
            None if is_open else right,
            "no effect" if method == "get" else repeats,
            view.is_for_operators,
        )


def _walk(resolver: URLResolver, prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        path = prefix + _CONVERTER.sub(r"{\1}", str(entry.pattern)).removeprefix("^")
        if isinstance(entry, URLResolver):
            yield from _walk(entry, path)
        elif isinstance(entry, URLPattern):
            yield path, entry
