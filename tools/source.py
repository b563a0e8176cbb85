"""Source tree as data: modules, their names and texts, and the properties that `tools.shape` and tests measure."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "remuda"

Function = ast.FunctionDef | ast.AsyncFunctionDef
PieceKind = Literal["name", "text", "docstring", "comment"]

OPENINGS = frozenset({"What", "How", "Who", "Which", "Where", "Whatever", "Whoever", "Whom", "Whose", "Wherever"})
"""Words that no docstring opens with."""
NOUNS_IN_ING = frozenset({"binding", "encoding", "sealing"})
"""Module names in -ing that are established nouns of the field."""

_PREDICATE = re.compile(r"_*(?:is|has|can|may|was|are)_\w+")
_BOOLEAN = frozenset({"bool", "TypeGuard", "TypeIs"})
_MUTATORS = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert"}
    | {"pop", "popitem", "popleft", "put", "remove", "setdefault", "take", "update"}
)
_NAME_FIELDS = ("id", "attr", "arg", "name", "asname", "module", "rest", "names", "kwd_attrs")
_NAMED_NODES = (
    ast.Name,
    ast.Attribute,
    ast.arg,
    ast.keyword,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.alias,
    ast.ImportFrom,
    ast.Global,
    ast.Nonlocal,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
    ast.MatchMapping,
    ast.MatchClass,
)


class Piece(NamedTuple):
    """A name or a text of the source, and its position."""

    kind: PieceKind
    text: str
    path: Path
    line: int


@dataclass(frozen=True)
class Module:
    """A module of the package, parsed."""

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Return the syntax tree."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """Return the number of lines."""
        return self.text.count("\n")

    @property
    def is_package(self) -> bool:
        """Tell whether this is the `__init__` of a package."""
        return self.path.name == "__init__.py"

    @property
    def stem(self) -> str:
        """Return the last part of the module's name."""
        return self.name.rpartition(".")[2]


def read_modules(root: Path = ROOT) -> list[Module]:
    """Return the modules of the package in a checkout."""
    return [
        Module(_module_name(path.relative_to(root / "src")), path, path.read_text())
        for path in sorted((root / "src" / PACKAGE).rglob("*.py"))
    ]


def _module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def other_files(root: Path = ROOT) -> list[Path]:
    """Return the text files of the package that are ours and not Python: templates, styles, scripts and data."""
    return sorted(
        path
        for path in (root / "src" / PACKAGE).rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc", ".typed", ".gz", ".license"}
    )


def pieces_of(module: Module) -> Iterator[Piece]:
    """Yield every name, text and comment of a module; its own name is the first."""
    yield Piece("name", module.stem, module.path, 1)
    docstrings: set[int] = set()
    for node in ast.walk(module.tree):  # owners come before their docstrings
        docstrings.update(id(text) for _, text in _docstring_nodes(node))
        if isinstance(node, ast.Constant):
            yield from _constant(module, node, is_docstring=id(node) in docstrings)
        elif isinstance(node, _NAMED_NODES):
            line = getattr(node, "lineno", 1)
            yield from (Piece("name", name, module.path, line) for name in _names(node))
    if "#" in module.text:
        yield from _comments(module)


def _constant(module: Module, node: ast.Constant, *, is_docstring: bool) -> Iterator[Piece]:
    value = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
    if isinstance(value, str) and value:
        yield Piece("docstring" if is_docstring else "text", value, module.path, node.lineno)


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names that stand in a node itself, not in its children. A dotted name counts part by part."""
    for field in _NAME_FIELDS:
        value = getattr(node, field, None)
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, str):
                yield from each.split(".")


def _comments(module: Module) -> Iterator[Piece]:
    """Yield the comments; lines of one comment belong together."""
    block: list[str] = []
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            first = first if block else token.start[0]
            block.append(token.string.lstrip("#"))
        elif block and token.type not in {tokenize.NL, tokenize.NEWLINE}:
            yield Piece("comment", "\n".join(block), module.path, first)
            block = []
    if block:
        yield Piece("comment", "\n".join(block), module.path, first)


def docstrings(module: Module) -> Iterator[tuple[ast.AST, Piece]]:
    """Yield every docstring of a module with its owner: a module, class, function or the assignment above it."""
    for node in ast.walk(module.tree):
        for owner, text in _docstring_nodes(node):
            yield owner, Piece("docstring", str(text.value), module.path, text.lineno)


def _docstring_nodes(node: ast.AST) -> Iterator[tuple[ast.AST, ast.Constant]]:
    body = getattr(node, "body", None)
    if isinstance(body, list):
        for number, statement in enumerate(body):
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield (body[number - 1] if number else node), value


def opens_with_a_question(text: str) -> bool:
    """Tell whether a docstring opens with one of the words that none may open with."""
    first = re.match(r"\W*(\w+)", text)
    return first is not None and first[1] in OPENINGS


def gerund_modules(modules: Iterable[Module]) -> list[str]:
    """Return the modules and packages whose name has a part in -ing that is no established noun."""
    return [
        module.name
        for module in modules
        if any(part.endswith("ing") and part not in NOUNS_IN_ING for part in module.stem.split("_"))
    ]


class Predicate(NamedTuple):
    """A function whose name promises a yes or no, and its module."""

    node: Function
    module: str


def predicates(modules: Iterable[Module]) -> list[Predicate]:
    """Return the predicates of modules."""
    return [
        Predicate(node, module.name)
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, Function) and _PREDICATE.fullmatch(node.name)
    ]


def untyped_predicates(found: Iterable[Predicate]) -> list[Predicate]:
    """Return the predicates that are not annotated to return a `bool`."""
    return [each for each in found if not _is_boolean(each.node.returns)]


def _is_boolean(annotation: ast.expr | None) -> bool:
    inner = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(inner, ast.Name) and inner.id in _BOOLEAN


def mutating_predicates(found: Sequence[Predicate]) -> list[Predicate]:
    """Return the predicates that change `self`, a parameter or an outer variable, or call another that does.

    An attribute of a local variable counts too: the object it belongs to usually comes from elsewhere.
    """
    mutating = {id(each.node): each for each in found if _mutates(each.node)}
    while True:
        names = {each.node.name for each in mutating.values()}
        more = [each for each in found if id(each.node) not in mutating and _calls(each.node, names)]
        if not more:
            return [each for each in found if id(each.node) in mutating]
        mutating |= {id(each.node): each for each in more}


def _mutates(function: Function) -> bool:
    own = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    return any(_changes(node, own) for node in ast.walk(function))


def _changes(node: ast.AST, own: set[str]) -> bool:
    if isinstance(node, ast.Global | ast.Nonlocal):
        return True
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        return True
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return _root(node) in own
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _MUTATORS
        and _root(node.func) in own
    )


def _calls(function: Function, names: set[str]) -> bool:
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Attribute) and called.attr in names for called in calls)


def _root(node: ast.expr) -> str | None:
    """Return the variable that a chain of attributes and items begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def public_classes(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Return the modules that define each public class name."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(module.name)
    return {name: sorted(places) for name, places in sorted(found.items())}


def import_graph(modules: Sequence[Module]) -> dict[str, set[str]]:
    """Return which modules each module imports when it is loaded."""
    known = {module.name for module in modules}
    return {module.name: set(_imported(module, known)) - {module.name} for module in modules}


def _imported(module: Module, known: set[str]) -> Iterator[str]:
    for node in _loaded(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from (names & known) | ({node.module} & known if names - known else set())


def _loaded(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when a module is loaded: not those of functions, nor those for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.Lambda):
            continue
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from _loaded(child)


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other."""
    reach = {name: _reachable(graph, name) for name in graph}
    groups = {tuple(sorted(other for other in reach[name] if name in reach[other])) for name in graph}
    return sorted(list(group) for group in groups if group)


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(graph[name])
    return found
