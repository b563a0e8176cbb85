"""Every row of what we promise has a test that carries its id, and every id is that of a row."""

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.kit.rows import OTHERS, ROWS

TESTS = Path(__file__).parent
_IDS = re.compile(r"test((?:_[mcb]\d\d)+)_")


def ids_of(test: str) -> list[str]:
    """Return the rows that a test shows, by its name."""
    found = _IDS.match(test)
    return found[1].split("_")[1:] if found else []


def names_in(source: str) -> list[str]:
    """Return the names of the tests of a file."""
    functions = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return [node.name for node in functions if node.name.startswith("test_")]


@cache
def shown() -> Mapping[str, list[str]]:
    """Return the tests that show each row. A file in which no text looks like such a name is not parsed."""
    found = defaultdict(list)
    for path in TESTS.rglob("test_*.py"):
        for test in names_in(source) if _IDS.search(source := path.read_text()) else ():
            for name in ids_of(test):
                found[name].append(f"{path.relative_to(TESTS)}::{test}")
    return found


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_a_test(row: str) -> None:
    assert shown().get(row), f"no test shows that {ROWS[row]} ({row})"


def test_every_id_in_a_name_is_that_of_a_row() -> None:
    assert {name: tests for name, tests in shown().items() if name not in ROWS | OTHERS} == {}


def test_ids_are_found_at_the_beginning_of_a_name_alone() -> None:
    source = "def test_m07_c01_a(): ...\nasync def test_c05_b(): ...\ndef test_of_m09_c(): ...\ndef m01_d(): ..."
    assert [ids_of(name) for name in names_in(source)] == [["m07", "c01"], ["c05"], []]
