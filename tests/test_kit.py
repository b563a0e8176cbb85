"""Layout of the tests: what several test modules share is in `tests/kit`."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def test_no_module_imports_a_test_module() -> None:
    found = [
        f"{path.relative_to(TESTS)} imports {name}"
        for path in TESTS.rglob("*.py")
        for name in imports_of(path)
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split(".")[:-1])
    ]
    assert not found
