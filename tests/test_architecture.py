"""The page about the architecture names layers, files and functions that exist."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "remuda"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
WALKS = {
    "A request from the socket to the provider": 30,
    "From a provider event to the status": 9,
    "The deletion of an instance": 19,
}
"""The sections that follow a request, each with the number of its lines."""

_NAMED = re.compile(r"`([\w/]+\.py)(?::([\w.]+))?`")


def named() -> list[tuple[str, str]]:
    """Return the files that the page names, each with a function, class or method, or with nothing."""
    return [(file, name) for file, name in _NAMED.findall(PAGE.read_text()) if "/" in file or name]


def section(heading: str) -> str:
    return PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@cache
def defined(file: Path) -> frozenset[str]:
    """Return the functions and classes of a file, and methods as `Class.method`."""
    tree = ast.parse(file.read_text())
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    outer = [node for node in tree.body if isinstance(node, definitions)]
    inner = {
        f"{node.name}.{each.name}"
        for node in outer
        if isinstance(node, ast.ClassDef)
        for each in node.body
        if isinstance(each, definitions)
    }
    return frozenset({node.name for node in outer} | inner)


@pytest.mark.parametrize(("file", "name"), named(), ids=lambda value: str(value).replace("/", "."))
def test_every_function_that_the_page_names_exists(file: str, name: str) -> None:
    path = ROOT / file if file.startswith("tests/") else SOURCE / file
    assert path.is_file(), file
    assert not name or name in defined(path), f"{file} does not define {name}"


def calls() -> list[tuple[str, str, str]]:
    """Return the functions of which a line of the page says that the first one calls the second."""
    found = re.findall(r"`([\w/]+\.py):([\w.]+)`[^`]*?\bcalls\s+`[\w/]+\.py:([\w.]+)`", PAGE.read_text())
    assert found
    return found


@pytest.mark.parametrize(("file", "caller", "callee"), calls())
def test_a_function_calls_what_the_page_says(file: str, caller: str, callee: str) -> None:
    node: ast.AST = ast.parse((SOURCE / file).read_text())
    for name in caller.split("."):
        node = next(each for each in ast.iter_child_nodes(node) if getattr(each, "name", "") == name)
    used = {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in ast.walk(node)}
    assert callee.rsplit(".", maxsplit=1)[-1] in used


@pytest.mark.parametrize(("heading", "lines"), WALKS.items())
def test_a_walk_has_its_lines(heading: str, lines: int) -> None:
    walk = section(heading)
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", walk, re.MULTILINE)]
    assert numbers == list(range(1, lines + 1))
    assert len(_NAMED.findall(walk)) >= lines


def test_the_lines_of_a_deletion_that_a_crash_follows_exist() -> None:
    cells = re.findall(r"^\| (\d+) \|", section("The deletion of an instance"), re.MULTILINE)
    assert cells
    assert {int(line) for line in cells} <= {*range(1, WALKS["The deletion of an instance"] + 1)}


def test_the_layers_are_those_of_the_contract() -> None:
    rows = re.findall(r"^\| (`.+?) \|", section("Layers").partition("| File |")[0], re.MULTILINE)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["name"].startswith("Layers:"))
    shown = [set(re.findall(r"`(\w+)`", row)) for row in rows]
    assert shown == [{name.removeprefix("remuda.") for name in re.split(r"[ |:]+", layer)} for layer in layers]
