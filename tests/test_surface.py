"""Docstrings: every module has one, and public packages document every name. Imports: none is private."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import ParamSpec, TypeVar

import pytest

import remuda

ROOT = Path(__file__).parents[1]
PUBLIC = (
    "remuda.kernel",
    "remuda.store.contract",
    "remuda.http.routes",
    "remuda.reconcile",
    "remuda.operations",
    "remuda.providers.contract",
    "remuda.resources",
)
"""Packages and modules that others build on: every public name in them is documented."""


def modules() -> list[ModuleType]:
    found = [importlib.import_module(module.name) for module in pkgutil.walk_packages(remuda.__path__, "remuda.")]
    return [remuda, *found]


def is_public(module: ModuleType) -> bool:
    return any(module.__name__ == name or module.__name__.startswith(f"{name}.") for name in PUBLIC)


def test_m29_every_module_has_a_docstring() -> None:
    assert [module.__name__ for module in modules() if not module.__doc__] == []


def test_m29_public_packages_document_every_name() -> None:
    public = [module for module in modules() if is_public(module)]
    assert len(public) > len(PUBLIC)
    assert [f"{module.__name__}.{name}" for module in public for name in undocumented(module)] == []


def undocumented(module: ModuleType) -> Iterator[str]:
    """Yield the public functions and classes of a module that have no docstring, and the constants without a text."""
    tree = ast.parse(inspect.getsource(module))
    explained = set(assignments_with_a_sentence(tree))
    for name in defined(tree):
        value = getattr(module, name)
        is_named_for_itself = name.startswith("_") or isinstance(value, TypeVar | ParamSpec)
        if not is_named_for_itself and name not in explained and not has_a_sentence(value):
            yield name


def defined(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id


def assignments_with_a_sentence(module: ast.Module) -> Iterator[str]:
    """Yield the constants and aliases of a module that have a text right below them."""
    for assignment, below in zip(module.body, module.body[1:], strict=False):
        if is_text(below):
            targets = (
                assignment.targets if isinstance(assignment, ast.Assign) else [getattr(assignment, "target", None)]
            )
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def has_a_sentence(value: object) -> bool:
    """Tell whether a class or function has a docstring of its own that somebody wrote."""
    if inspect.isfunction(inspect.unwrap(value) if callable(value) else value):
        return bool(value.__doc__)
    if not inspect.isclass(value):
        return False
    written, generated = value.__dict__.get("__doc__") or "", f"{value.__name__}("
    return bool(written) and not (dataclasses.is_dataclass(value) and written.startswith(generated))


@pytest.mark.parametrize("folder", ["src", "tests", "bench", "tools"])
def test_no_private_module_of_a_dependency_is_imported(folder: str) -> None:
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{path}: {name}" for name in names if "._" in name or name.startswith("_")]
    assert [each for each in found if not each.endswith(": __future__")] == []


SAMPLE = '''
BARE = 1
EXPLAINED = 2
"""Why two."""
Alias: TypeAlias = int
"""What it counts."""
BEFORE = 3
def between(): ...
"""Orphan."""
'''


def test_a_constant_is_explained_by_the_text_right_below_it() -> None:
    assert list(assignments_with_a_sentence(ast.parse(SAMPLE))) == ["EXPLAINED", "Alias"]


def test_a_generated_docstring_is_no_sentence() -> None:
    @dataclasses.dataclass
    class Bare:
        value: int

    @dataclasses.dataclass
    class Explained(Bare):
        """Something."""

    class Heir(Explained):
        pass

    assert [has_a_sentence(each) for each in (Bare, Explained, Heir, 1)] == [False, True, False, False]
