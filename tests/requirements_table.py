"""Makes docs/requirements.md: which tests show which requirement, through which interface.

A test names rows in its docstring as `R-C1 (api, page): what is shown`. `--check` compares the
committed table, `--write` renews it. A row that claims to be done without a test is an error, as
is a row that does not exist or a mention without an interface.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.local.checks import generated_is_current

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "docs" / "requirements.toml"
TABLE = ROOT / "docs" / "requirements.md"
INTERFACES = ("page", "api", "agent", "sdk")
_MENTION = re.compile(r"\bR-[A-Z]\d+\b")
_LEAD = re.compile(r"((?:R-[A-Z]\d+(?:,\s*|\s+and\s+)?)+)\s*\(([^)]*)\)")


@dataclass(frozen=True)
class Row:
    """A requirement: its id, our short title, and whether it claims to be whole."""

    id: str
    title: str
    done: bool


@dataclass(frozen=True)
class Shown:
    """A test that shows a requirement through some interfaces."""

    row: str
    path: str
    test: str
    interfaces: frozenset[str]


class TableError(Exception):
    """The rows and the tests contradict each other."""


def read_rows(text: str) -> dict[str, list[Row]]:
    """Return the rows by chapter title."""
    chapters: dict[str, list[Row]] = {}
    for letter, chapter in tomllib.loads(text).items():
        rows = [Row(row["id"], row["title"], row.get("done", False)) for row in chapter["rows"]]
        chapters[f"{letter}. {chapter['title']}"] = rows
    return chapters


def read_tests(folder: Path, root: Path) -> list[Shown]:
    """Return every mention of a requirement in the docstrings of tests under a folder."""
    found: list[Shown] = []
    for path in sorted(folder.rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        for test, docstring in _docstrings(ast.parse(path.read_text())):
            found.extend(_mentions(name, test, docstring))
    return found


def build_table(chapters: dict[str, list[Row]], tests: list[Shown]) -> str:
    """Return the Markdown of the table, or raise TableError."""
    by_row: dict[str, list[Shown]] = defaultdict(list)
    for shown in tests:
        by_row[shown.row].append(shown)
    rows = [row for chapter in chapters.values() for row in chapter]
    unknown = sorted(set(by_row) - {row.id for row in rows})
    if unknown:
        first = by_row[unknown[0]][0]
        raise TableError(f"{first.path}::{first.test} names {unknown[0]}, which does not exist")
    empty = [row.id for row in rows if row.done and not by_row[row.id]]
    if empty:
        raise TableError(f"{', '.join(empty)} claims to be done without a test that shows it")
    lines = [
        "# Requirements and the tests that show them",
        "",
        "Made by `python -m tests.requirements_table --write` from `docs/requirements.toml` and the",
        "docstrings of the tests; do not edit. *Begun* means tests show a part of the row.",
    ]
    for title, chapter in chapters.items():
        lines += ["", f"## {title}", "", "| row | subject | state | interfaces | tests |"]
        lines.append("|---|---|---|---|---|")
        lines += [_line(row, by_row[row.id]) for row in chapter]
    return "\n".join(lines) + "\n"


def _line(row: Row, tests: list[Shown]) -> str:
    state = "done" if row.done else "begun" if tests else "not begun"
    through = [name for name in INTERFACES if any(name in test.interfaces for test in tests)]
    counts: dict[str, int] = defaultdict(int)
    for test in tests:
        counts[test.path] += 1
    listed = ", ".join(
        f"[{path.removeprefix('tests/')}](../{path}) ({count})"
        for path, count in sorted(counts.items())
    )
    return f"| {row.id} | {row.title} | {state} | {', '.join(through)} | {listed} |"


def _docstrings(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test_"
        ):
            yield node.name, ast.get_docstring(node) or ""


def _mentions(path: str, test: str, docstring: str) -> Iterator[Shown]:
    named = set(_MENTION.findall(docstring))
    for rows, inside in _LEAD.findall(docstring):
        interfaces = frozenset(part.strip() for part in inside.split(","))
        strange = interfaces - set(INTERFACES)
        if strange:
            raise TableError(f"{path}::{test} names {sorted(strange)}, not one of {INTERFACES}")
        for row in _MENTION.findall(rows):
            named.discard(row)
            yield Shown(row, path, test, interfaces)
    if named:
        raise TableError(f"{path}::{test} names {sorted(named)} without an interface")


def main() -> int:
    """Write or check the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew docs/requirements.md")
    parser.add_argument("--check", action="store_true", help="fail when it is out of date")
    asked = parser.parse_args()
    try:
        text = build_table(read_rows(ROWS.read_text()), read_tests(ROOT / "tests", ROOT))
    except TableError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if asked.write:
        TABLE.write_text(text)
        return 0
    return generated_is_current(TABLE, text, "python -m tests.requirements_table --write")


if __name__ == "__main__":
    sys.exit(main())
