"""Shape of the repository in numbers: sizes, names, the import graph, tests and documentation.

`python -m tools.shape` prints the table, `--details` also what was counted, `--json` both as one document, and
`--checkout PATH` measures another working copy.
"""

import argparse
import ast
import json
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.source import (
    NOUNS_IN_ING,
    ROOT,
    Function,
    Module,
    cycles,
    gerund_modules,
    import_graph,
    mutating_predicates,
    opens_with_a_question,
    predicates,
    public_classes,
    read_modules,
)

SMALL = 60
SERVICES = ("remuda.identity", "remuda.region", "remuda.compute")
DOCUMENT_KINDS = ("tutorial", "how-to", "reference", "explanation")
PAGES_OF_NO_KIND = frozenset({"index.md"})

SIBLINGS: Mapping[str, tuple[str, ...]] = {
    "Actions": SERVICES,
    "Catalogue": SERVICES,
    "ConsoleQuery": SERVICES,
    "IdentityPort": SERVICES,
    "Metrics": ("remuda.http", "remuda.operations"),
    "Monitor": SERVICES,
    "MonitorMetrics": SERVICES,
    "OrganizationPath": SERVICES,
    "OrganizationRegionPath": SERVICES,
    "ProjectConsumer": SERVICES,
    "ProjectController": ("remuda.identity.tenancy", "remuda.identity.users"),
    "Records": ("remuda.identity.login", "remuda.identity.oauth"),
    "Recovery": SERVICES,
    "ReferencePath": SERVICES,
    "Reporter": ("remuda.operations", "remuda.reconcile"),
    "Upkeep": ("remuda.store.kubernetes", "remuda.store.sqlite"),
    "Writer": ("remuda.store.kubernetes", "remuda.store.sqlite"),
}
"""Class names that siblings share because the role is the same, and the packages that may share them."""

_WIRING_OF_A_SERVICE = frozenset({"app", "assembly", "control", "room", "rooms", "service"})
_WIRING_BELOW = frozenset({"control", "room"})
_SCENARIOS = frozenset({"act", "scenario", "story"})


@dataclass(frozen=True)
class Measure:
    """A row of the table: its key, its title, its value and what was counted."""

    key: str
    title: str
    value: object
    details: Sequence[str] = field(default=())


def measures(root: Path) -> Iterator[Measure]:
    """Yield the rows for a checkout."""
    modules = read_modules(root)
    yield from sizes(modules)
    yield from names(modules)
    yield from structure(modules)
    yield from tests(root / "tests")
    yield documentation(root / "docs")


def sizes(modules: Sequence[Module]) -> Iterator[Measure]:
    """Yield how many files there are and how long they are."""
    lines = sorted(module.lines for module in modules)
    spread = f"{statistics.median(lines):g} / {lines[len(lines) * 9 // 10]} / {lines[-1]}"
    small = [f"{each.lines} {each.name}" for each in modules if each.lines < SMALL and not each.is_package]
    yield Measure("source_files", "Source files", len(modules))
    yield Measure("source_lines", "Source lines", sum(lines))
    yield Measure("lines_per_file", "Lines per file: median / p90 / max", spread)
    yield Measure("small_files", f"Files below {SMALL} lines, __init__ apart", len(small), small)


def names(modules: Sequence[Module]) -> Iterator[Measure]:
    """Yield how modules, classes, predicates and docstrings are named."""
    gerunds = gerund_modules(modules)
    several, siblings = homonyms(modules)
    mutating = [f"{each.module}.{each.node.name}" for each in mutating_predicates(predicates(modules))]
    questions = [each.name for each in modules if opens_with_a_question(ast.get_docstring(each.tree) or "")]
    beyond = f"Gerund module names beyond {', '.join(sorted(NOUNS_IN_ING))}"
    yield Measure("gerund_modules", beyond, len(gerunds), gerunds)
    yield Measure("homonyms", "Public class names with several meanings", len(several), several)
    yield Measure("sibling_names", "Public class names shared by siblings, same role", len(siblings), siblings)
    yield Measure("mutating_predicates", "Predicates that mutate", len(mutating), mutating)
    yield Measure("opening_questions", "Modules that open with What/How/Who/Which/Where", len(questions), questions)


def homonyms(modules: Sequence[Module]) -> tuple[list[str], list[str]]:
    """Return the public class names that several modules define, and those of them that siblings may share."""
    several: list[str] = []
    siblings: list[str] = []
    for name, places in public_classes(modules).items():
        if len(places) > 1:
            is_shared = all(_is_below(place, SIBLINGS.get(name, ())) for place in places)
            (siblings if is_shared else several).append(f"{name}: {', '.join(places)}")
    return several, siblings


def _is_below(module: str, packages: Sequence[str]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def structure(modules: Sequence[Module]) -> Iterator[Measure]:
    """Yield the cycles of the import graph and the modules that wire services together."""
    groups = cycles(import_graph(modules))
    wiring = [module.name for module in modules if _is_wiring(module.name)]
    yield Measure(
        "files_in_cycles",
        "Files in cycles of the import graph",
        sum(map(len, groups)),
        [" ".join(group) for group in groups],
    )
    yield Measure("wiring_modules", "Wiring modules of the three services", len(wiring), wiring)


def _is_wiring(name: str) -> bool:
    package, _, stem = name.rpartition(".")
    return (package in SERVICES and stem in _WIRING_OF_A_SERVICE) or (
        _is_below(package, SERVICES) and stem in _WIRING_BELOW
    )


def tests(folder: Path) -> Iterator[Measure]:
    """Yield the size of the tests, and their scenarios: coroutines inside a test that another function runs."""
    texts = {path: path.read_text() for path in sorted(folder.rglob("*.py"))}
    found = [launcher for path, text in texts.items() for launcher in scenarios(ast.parse(text, str(path)))]
    by_name = Counter(launcher for launcher in found if launcher is not None)
    yield Measure("test_files", "Test files", len(texts))
    yield Measure("test_lines", "Test lines", sum(text.count("\n") for text in texts.values()))
    yield Measure("scenario_closures", "Scenario closures", len(found))
    counted = [f"{count} {name}" for name, count in by_name.most_common()]
    yield Measure("scenario_launchers", "Functions that launch scenario closures", len(by_name), counted)


def scenarios(tree: ast.Module) -> Iterator[str | None]:
    """Yield, for each scenario of a file, the function that runs it: the one it is the first argument of."""
    for outer in ast.walk(tree):
        if isinstance(outer, Function):
            for closure in outer.body:
                if isinstance(closure, ast.AsyncFunctionDef) and closure.name in _SCENARIOS:
                    yield next((name for node in outer.body if (name := _launcher(node, closure.name))), None)


def _launcher(statement: ast.stmt, closure: str) -> str | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    is_launched = isinstance(first, ast.Name) and first.id == closure
    return ast.unparse(call.func) if isinstance(call, ast.Call) and is_launched else None


def documentation(folder: Path) -> Measure:
    """Return how many pages have a place in one of the four kinds of documentation."""
    pages = [path.relative_to(folder) for path in sorted(folder.rglob("*.md")) if path.name not in PAGES_OF_NO_KIND]
    others = [str(page) for page in pages if page.parts[0] not in DOCUMENT_KINDS]
    value = f"{len(pages) - len(others)} of {len(pages)}"
    return Measure("pages", "Documentation pages with a place in the four kinds", value, others)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.shape", description="Print the shape of the repository.")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="measure this working copy")
    parser.add_argument("--details", action="store_true", help="also list what was counted")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    rows = list(measures(options.checkout.resolve()))
    if options.json:
        print(json.dumps({row.key: asdict(row) for row in rows}, indent=1))
        return
    width = max(len(row.title) for row in rows)
    for row in rows:
        print(f"{row.title:<{width}}  {row.value}")
        for detail in row.details if options.details else ():
            print(f"    {detail}")


if __name__ == "__main__":
    main()
