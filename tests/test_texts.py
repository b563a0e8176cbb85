"""Texts that users read: every sentence in the source, as `tests/golden/texts/source` has it, a file for each package.

Texts are no format: they may change at any time. One place shows how they change, so that other tests assert the code,
the reason and the facts, and not the sentence.
"""

import ast
import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "remuda"
GOLDEN = Path(__file__).parent / "golden" / "texts" / "source"
IS_WRITTEN = os.environ.get("REMUDA_WRITE_GOLDEN") == "1"
REMEDY = (
    "Texts have changed. Regenerate with REMUDA_WRITE_GOLDEN=1 .venv/bin/pytest tests/test_texts.py, and read the diff."
)
PACKAGES = sorted({path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")})

_WORDS = 3
"""Fewer words are a name, not a text."""
_CODE = re.compile(
    r"^[A-Z_]{4,} |[<>|\\;=]|\b(SELECT|INSERT|PRAGMA|CREATE|UPDATE|DELETE) |^\W|^-|\b(def|lambda) \b|/\S+/\S+/"
)
"""SQL, Python, markup, patterns, commands and paths."""
_LOGS = {"debug", "info", "warning", "error", "exception"}


def text_of(node: ast.AST) -> str | None:
    """Return a literal, with what is filled in named in braces."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = (
            str(each.value) if isinstance(each, ast.Constant) else f"{{{ast.unparse(each.value)}}}"
            for each in node.values
            if isinstance(each, ast.Constant | ast.FormattedValue)
        )
        return "".join(parts)
    return None


def texts_below(node: ast.AST) -> Iterator[str]:
    """Yield the texts of a tree, but for docstrings, annotations and lines of the log."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LOGS:
        return
    found = text_of(node)
    if found is not None:
        line = " ".join(found.split())
        if len(line.split()) >= _WORDS and not _CODE.search(line):
            yield line
        return
    for child in ast.iter_child_nodes(node):
        yield from texts_below(child)


def texts_of(package: str) -> str:
    """Return all texts of a package, by module."""
    paths = sorted((SOURCE / package).rglob("*.py")) or [SOURCE / f"{package}.py"]
    parts = []
    for path in paths:
        found = sorted(set(texts_below(ast.parse(path.read_text()))))
        if found:
            parts.append("\n".join([f"# {path.relative_to(SOURCE)}", *found]))
    return "\n\n".join(parts)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_texts_of_a_package_are_as_they_were_read(package: str) -> None:
    path, text = GOLDEN / f"{package}.txt", texts_of(package)
    if IS_WRITTEN and text:
        path.write_text(f"{text}\n")
    elif IS_WRITTEN:
        path.unlink(missing_ok=True)
    before = path.read_text() if path.exists() else ""
    now = f"{text}\n" if text else ""
    if now != before:
        lines = difflib.unified_diff(before.splitlines(), now.splitlines(), path.name, "now", lineterm="")
        pytest.fail("\n".join([*lines, "", REMEDY]), pytrace=False)


def test_every_golden_file_has_its_package() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} <= set(PACKAGES)
