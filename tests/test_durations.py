"""The longest files come first, by what was recorded of the cases that are going to run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.kit.durations import Durations, longest_first


def case(nodeid: str, *, is_thorough: bool = False) -> pytest.Item:
    """Return as much of a test case as has to do with its place."""
    mark = object() if is_thorough else None
    item: Any = SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda _name: mark)
    return cast("pytest.Item", item)


def test_the_longest_file_comes_first_and_keeps_the_order_of_its_cases() -> None:
    items = [case("new.py::a"), case("short.py::a"), case("long.py::b"), case("long.py::a")]
    longest_first(items, Durations(usual={"short.py": 1.0, "long.py": 3.0}))
    assert [each.nodeid for each in items] == ["long.py::b", "long.py::a", "short.py::a", "new.py::a"]


def test_only_cases_that_run_count() -> None:
    recorded = Durations(usual={"a.py": 1.0, "b.py": 2.0}, thorough={"a.py": 9.0})
    usual = [case("b.py::x"), case("a.py::x")]
    longest_first(usual, recorded)
    assert [each.nodeid for each in usual] == ["b.py::x", "a.py::x"]
    every = [case("b.py::x"), case("a.py::x"), case("a.py::y", is_thorough=True)]
    longest_first(every, recorded)
    assert [each.nodeid for each in every] == ["a.py::x", "a.py::y", "b.py::x"]


def test_what_is_recorded_replaces_only_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "durations.json"
    Durations(usual={"a.py": 1.0, "b.py": 2.0}, thorough={"a.py": 5.0}).record(path)
    Durations(usual={"b.py": 4.04, "c.py": 0.01}).record(path)
    recorded = Durations.read(path)
    assert recorded.usual == {"a.py": 1.0, "b.py": 4.0}
    assert recorded.thorough == {"a.py": 5.0}
    assert recorded.slowest(1) == [("a.py", 6.0)]
