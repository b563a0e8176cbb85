"""Page on security: each line of its tables names a test that exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_TEST = re.compile(r"`(test_\w+)`")


def lines() -> list[str]:
    """Return the rows of all tables of the page, without their headings."""
    text = (ROOT / "docs" / "security.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    rulers = {at for at, row in enumerate(rows) if set(row) <= set("|-")}
    return [row for at, row in enumerate(rows) if at not in rulers and at + 1 not in rulers]


@cache
def all_tests() -> frozenset[str]:
    """Return the names of all tests."""
    found = set[str]()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found.add(node.name)
    return frozenset(found)


@pytest.mark.parametrize("line", lines(), ids=lambda line: line.split("|")[1].strip()[:40] or line.split("|")[2][:40])
def test_each_line_names_tests_that_exist(line: str) -> None:
    named = _TEST.findall(line.rstrip("|").rpartition("|")[2])
    assert named
    assert not set(named) - all_tests()


def test_the_page_has_its_parts() -> None:
    assert len(lines()) > 40
