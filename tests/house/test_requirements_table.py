"""The table of requirements cannot claim what no test shows."""

from pathlib import Path

import pytest

from tests.requirements_table import Row, Shown, TableError, build_table, read_tests

ROWS = {"C. Money": [Row("R-C1", "Orders are funded", False), Row("R-C2", "Exact units", False)]}


def _shown(row: str, *interfaces: str) -> Shown:
    return Shown(row, "tests/leases/test_orders.py", "test_it", frozenset(interfaces))


def _tests(tmp_path: Path, docstring: str) -> list[Shown]:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_orders.py").write_text(f'def test_it():\n    """{docstring}"""\n')
    return read_tests(folder, tmp_path)


def test_a_row_lists_its_tests_and_interfaces() -> None:
    table = build_table(ROWS, [_shown("R-C1", "api"), _shown("R-C1", "page")])
    assert (
        "| R-C1 | Orders are funded | begun | page, api | "
        "[leases/test_orders.py](../tests/leases/test_orders.py) (2) |"
    ) in table
    assert "| R-C2 | Exact units | not begun |  |  |" in table


def test_a_row_that_claims_to_be_done_without_a_test_fails() -> None:
    rows = {"C. Money": [Row("R-C1", "Orders are funded", True)]}
    with pytest.raises(TableError, match="R-C1 claims to be done"):
        build_table(rows, [])
    assert "| done | api |" in build_table(rows, [_shown("R-C1", "api")])


def test_a_test_cannot_name_a_row_that_does_not_exist() -> None:
    with pytest.raises(TableError, match="names R-C99"):
        build_table(ROWS, [_shown("R-C99", "api")])


def test_several_rows_and_interfaces_are_read(tmp_path: Path) -> None:
    found = _tests(tmp_path, "R-C1, R-C2 (page, api): an order is funded.")
    assert {(shown.row, shown.interfaces) for shown in found} == {
        ("R-C1", frozenset({"page", "api"})),
        ("R-C2", frozenset({"page", "api"})),
    }


@pytest.mark.parametrize(
    "docstring", ["R-C1: an order is funded.", "R-C1 (telepathy): an order is funded."]
)
def test_a_row_without_a_known_interface_fails(tmp_path: Path, docstring: str) -> None:
    with pytest.raises(TableError, match=r"interface|telepathy"):
        _tests(tmp_path, docstring)
