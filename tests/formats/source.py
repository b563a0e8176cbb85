"""Formats that only the source tells: words and names that are stored or sent, wherever they are written.

All modules are read alike, and no path is kept: a function or class that moves changes nothing here. What is computed
stands as `{}` in a text.
"""

import ast
import gc
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeGuard

from remuda.app import registry
from remuda.identity.login.browser_state import BrowserState
from tests.formats.program import modules

_CONDITION, _FIND_CONDITION = "Condition", "find_condition"
_RESULTS: Final = {"Requeue": 1, "Blocked": 0, "Failed": 0}
"""Results of a reconciler, and which argument is the reason."""
_EVENTS: Final = {"event": 1, "requested_event": 3}
"""Functions that make an entry of a timeline, and which argument is the event."""
_RECORD, _EVENT_KEY = "Record", "event"
_DERIVED_ID = "derived_id"
_SEALS: Final = ("seal", "open")
"""Methods that seal and open, with `context`, or with a state whose name is part of the context, and `browser`."""
_SENT: Final = "sse_event"
"""The function that writes an event of a stream, whose type is the first argument."""
_THREAD: Final = "ThreadExecutor"
"""The class that is given the name of a thread, which is no format."""
# The names above are those of helpers in the program: a commit that renames one changes it here, and nothing else.

UNKNOWN = "{}"
_DEPTH = 6
_HEADER = r"[a-z]+(-[a-z]+)+"
_CHOICE = r"[A-Z][a-z]+([A-Z][a-z]+)*"
_WORD = r"[A-Z][a-z]+([A-Z][a-z]+)+"
_SHAPES: Final = {
    "headers": r"[A-Z][A-Za-z]*(-[A-Z][A-Za-z]*)+",
    "names of ours": r"__Host-|remuda[-/][\w/-]+",
    "names of the contract": r"unikorn|uni-.*|unikorn-.*|.*unikorn-cloud\.org.*",
    "words": _WORD,
}

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_INNER = (
    ast.expr,
    ast.stmt,
    ast.keyword,
    ast.arguments,
    ast.comprehension,
    ast.ExceptHandler,
    ast.withitem,
    ast.match_case,
)
"""Nodes that can have a call in them."""


class _Text(ast.Constant):
    """A constant that is a text, for the type checker."""

    value: str


@dataclass(frozen=True)
class _Scope:
    """The module and the functions around an expression."""

    module: ModuleType
    tree: ast.Module
    functions: tuple[_Function, ...] = ()

    @property
    def namespace(self) -> Mapping[str, Any]:
        return vars(self.module)


@dataclass(frozen=True)
class _Call:
    scope: _Scope
    node: ast.Call
    name: str = field(default="")

    def texts(self, place: int, keyword: str = "") -> set[str]:
        """Return what an argument can be."""
        found = self.argument(place, keyword)
        return set() if found is None else _texts(found, self.scope)

    def argument(self, place: int, keyword: str = "") -> ast.expr | None:
        by_name = [each.value for each in self.node.keywords if each.arg == keyword]
        if by_name:
            return by_name[0]
        return self.node.args[place] if 0 <= place < len(self.node.args) else None


def conditions() -> Any:
    """Return the types and the reasons of conditions."""
    types, reasons = set(), set()
    for call in _calls():
        if call.name == _CONDITION:
            types |= call.texts(-1, "type")
            reasons |= call.texts(-1, "reason")
        elif call.name == _FIND_CONDITION:
            types |= call.texts(1, "type")
        elif call.name in _RESULTS:
            reasons |= call.texts(_RESULTS[call.name], "reason")
    return {"types": _known(types), "reasons": _known(reasons)}


def timeline() -> Any:
    """Return every event of a timeline and its facts, and the facts of every entry by what makes it.

    Where an event is computed, its facts stand with those of others of the kind.
    """
    events: dict[str, set[str]] = {}
    for call in _calls():
        if call.name in _EVENTS and len(call.node.args) > _EVENTS[call.name]:
            for event, facts in _entries(call):
                if re.fullmatch(_CHOICE, event) or (event == UNKNOWN and facts):  # the store has entries, too
                    events.setdefault(event, set()).update(facts)
    common: set[tuple[str, ...]] = set()
    for node, scope in _nodes():
        if isinstance(node, ast.Dict):
            found = {key.value: value for key, value in zip(node.keys, node.values, strict=True) if _is_text(key)}
            if _EVENT_KEY in found and isinstance(found[_EVENT_KEY], ast.Name):
                common.add(tuple(sorted(found)))
                for event in _known(_texts(found[_EVENT_KEY], _Scope(scope.module, scope.tree))):
                    events.setdefault(event, set()).update(found.keys() - {_EVENT_KEY})
    return {"events": {event: sorted(events[event]) for event in sorted(events)}, "common": sorted(common)}


def _entries(call: _Call) -> Iterator[tuple[str, set[str]]]:
    """Yield the events of a call, each with its facts: if both are passed on, as the callers give them."""
    event = call.node.args[_EVENTS[call.name]]
    function = call.scope.functions[-1] if call.scope.functions else None
    if function is None or not isinstance(event, ast.Name) or event.id not in _parameters(function):
        yield from ((each, {*_facts(call)}) for each in _texts(event, call.scope))
        return
    own = {each.arg for each in call.node.keywords if each.arg is not None}
    for outer in _callers(function, call.scope):
        facts = own | {each.arg for each in outer.node.keywords if each.arg and each.arg not in _parameters(function)}
        yield from ((each, facts) for each in outer.texts(_place(function, event.id), event.id))


def _is_text(node: ast.AST | None) -> TypeGuard[_Text]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def streams() -> Any:
    """Return the streams of the log, and the subjects where these are texts."""
    records = [call for call in _calls() if call.name == _RECORD]
    return _pairs((call.texts(-1, "stream"), call.texts(-1, "subject")) for call in records)


def derived_ids() -> Any:
    """Return from what ids are derived: namespace and name."""
    calls = [call for call in _calls() if call.name == _DERIVED_ID]
    return _pairs((call.texts(0), call.texts(1)) for call in calls)


def _pairs(found: Iterable[tuple[set[str], set[str]]]) -> list[tuple[str, str]]:
    return sorted({pair for one, other in found for pair in product(one, other)})


def sealed_contexts() -> Any:
    """Return what sealed texts are bound to, and the names of states that are part of that."""
    calls = [call for call in _calls() if call.name in _SEALS]
    states = {name for call in calls if call.argument(-1, "browser") for name in _state_names(call)}
    return {"contexts": sorted(set().union(*(call.texts(-1, "context") for call in calls))), "states": sorted(states)}


def stream_events() -> Any:
    """Return the types of events that a stream of server-sent events has."""
    written = set().union(*(call.texts(0) for call in _calls() if call.name == _SENT))
    joined = {match for text in _literals().bytes for match in re.findall(r"event: (\w+)\n", text)}
    return _known(written | joined)


def literals() -> Any:
    """Return the texts of certain shapes, wherever they stand."""
    found = _literals()
    shapes = {shape: sorted(filter(re.compile(form).fullmatch, found.texts)) for shape, form in _SHAPES.items()}
    sent = sorted(filter(re.compile(_HEADER).fullmatch, found.bytes))
    words = {*shapes["words"], *filter(re.compile(_CHOICE).fullmatch, found.choices)}
    kinds = {kind.name for kind in registry().kinds}
    return {**shapes, "words": sorted(words - kinds), "headers in bytes": sent}


def _state_names(call: _Call) -> Iterator[str]:
    state = call.argument(0)
    made = state.func if isinstance(state, ast.Call) else state
    found = call.scope.namespace.get(made.id) if isinstance(made, ast.Name) else None
    if inspect.isclass(found) and issubclass(found, BrowserState):
        yield found.context


def _facts(call: _Call) -> Iterator[str]:
    for keyword in call.node.keywords:
        if keyword.arg is not None:
            yield keyword.arg
        else:
            yield from _keys(keyword.value, call.scope)


def _keys(node: ast.expr, scope: _Scope) -> Iterator[str]:
    """Yield the keys of a dictionary, as far as they can be told."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                yield from _keys(value, scope)
            else:
                yield from _texts(key, scope)
    elif isinstance(node, ast.BinOp | ast.IfExp):
        sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.body, node.orelse)
        for side in sides:
            yield from _keys(side, scope)
    elif isinstance(node, ast.Name) and scope.functions:
        values = [each for each, place in _assigned(scope.functions[-1], node.id) if place is None]
        values += _elements(node.id, scope.functions[-1])
        for value in values:
            yield from _keys(value, scope)
        if not values:
            yield from _passed_on(node.id, scope)
    else:
        yield UNKNOWN


def _elements(name: str, function: _Function) -> Iterator[ast.expr]:
    """Yield what a name is in a comprehension over a list that is itself a comprehension."""
    for node in ast.walk(function):
        if isinstance(node, ast.comprehension) and _names(node.target) == [name] and isinstance(node.iter, ast.Name):
            values = [value for value, _ in _assigned(function, node.iter.id)]
            yield from (value.elt for value in values if isinstance(value, ast.ListComp))


def _passed_on(name: str, scope: _Scope) -> Iterator[str]:
    """Yield the keywords that callers of this function in its module give it beyond its parameters."""
    function = scope.functions[-1]
    if function.args.kwarg is None or function.args.kwarg.arg != name:
        yield UNKNOWN
        return
    for call in _callers(function, scope):
        yield from (each.arg for each in call.node.keywords if each.arg and each.arg not in _parameters(function))


def _texts(node: ast.expr, scope: _Scope, depth: int = _DEPTH) -> set[str]:  # noqa: C901, PLR0911, PLR0912  one for each sort of expression
    """Return the texts that an expression can be."""
    if depth == 0:
        return {UNKNOWN}
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.Constant(value=bytes(raw)):
            return {raw.decode("latin-1")}
        case ast.Constant(value=None):
            return set()
        case ast.JoinedStr(values=parts):
            return _joined(parts, scope, depth)
        case ast.FormattedValue(value=value) | ast.Await(value=value) | ast.NamedExpr(value=value):
            return _texts(value, scope, depth - 1)
        case ast.IfExp(body=one, orelse=other):
            return _texts(one, scope, depth) | _texts(other, scope, depth)
        case ast.BoolOp(values=values):
            return set().union(*(_texts(each, scope, depth) for each in values))
        case ast.Tuple(elts=parts):
            return {f"[{each}]" for each in _joined(parts, scope, depth, ", ")}
        case ast.Starred():
            return {"..."}
        case ast.Name(id=name):
            return _named(name, scope, depth)
        case ast.Attribute() | ast.Subscript():
            return _as_texts(_static(node, scope))
        case ast.Call():
            return _called(node, scope, depth)
        case _:
            return {UNKNOWN}


def _joined(parts: Sequence[ast.expr], scope: _Scope, depth: int, between: str = "") -> set[str]:
    texts = [""]
    for number, part in enumerate(parts):
        before = between if number else ""
        found = sorted(_texts(part, scope, depth - 1)) or [UNKNOWN]
        texts = [f"{text}{before}{each}" for text, each in product(texts, found)]
    return {*texts}


def _named(name: str, scope: _Scope, depth: int) -> set[str]:
    if scope.functions:
        function, outside = scope.functions[-1], _Scope(scope.module, scope.tree, scope.functions[:-1])
        values = _assigned(function, name)
        if values:
            return set().union(*(_element(value, place, scope, depth) for value, place in values))
        if name in _parameters(function):
            return _given(function, name, scope, depth)
        return _named(name, outside, depth)
    return _as_texts(scope.namespace.get(name))


def _element(value: ast.expr, place: int | None, scope: _Scope, depth: int) -> set[str]:
    """Return what a name can be that is assigned to; `place` is where in a tuple of names it stands."""
    if place is None:
        return _texts(value, scope, depth - 1)
    if isinstance(value, ast.Tuple):
        return _texts(value.elts[place], scope, depth - 1)
    if isinstance(value, ast.IfExp):
        return _element(value.body, place, scope, depth) | _element(value.orelse, place, scope, depth)
    if isinstance(value, ast.Call) and (function := _function(value, scope)) is not None:
        inside = _Scope(scope.module, scope.tree, (function,))
        return set().union(*(_element(each, place, inside, depth - 1) for each in _returned(function)))
    found = _static(value, scope)
    return {text for each in found for text in _as_texts(each[place])} if isinstance(found, list) else {UNKNOWN}


def _given(function: _Function, name: str, scope: _Scope, depth: int) -> set[str]:
    """Return what callers in the same module give for a parameter."""
    found = set()
    for call in _callers(function, scope):
        argument = call.argument(_place(function, name), name)
        if argument is not None and depth > 1:
            found |= _texts(argument, call.scope, depth - 2)
    return found or {UNKNOWN}


def _place(function: _Function, name: str) -> int:
    """Return where callers give a parameter, or less than nothing where they have to name it."""
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return places.index(name) - (places[0] in {"self", "cls"}) if name in places else -1


def _called(node: ast.Call, scope: _Scope, depth: int) -> set[str]:
    function = _function(node, scope)
    if function is not None:
        inside = _Scope(scope.module, scope.tree, (function,))
        return set().union(*(_texts(each, inside, depth - 1) for each in _returned(function))) or {UNKNOWN}
    if isinstance(node.func, ast.Attribute) and node.func.attr in {"encode", "decode"}:
        return _texts(node.args[0] if node.args else node.func.value, scope, depth - 1)
    return _as_texts(_static(node, scope))


def _static(node: ast.expr, scope: _Scope) -> Any:
    """Return what an expression over the names of a module is; if it looks something up, a list of all it may find."""
    match node:
        case ast.Name(id=name):
            is_local = any(name in _parameters(each) or _assigned(each, name) for each in scope.functions)
            return None if is_local else scope.namespace.get(name)
        case ast.Attribute(value=value, attr=name):
            return getattr(_static(value, scope), name, None)
        case ast.Subscript(value=value) | ast.Call(func=ast.Attribute(value=value, attr="get")):
            found = _static(value, scope)
            return [*found.values()] if isinstance(found, Mapping) else None
        case _:
            return None


def _as_texts(value: Any) -> set[str]:
    if isinstance(value, list):
        return {text for each in value for text in _as_texts(each)}
    return {value} if isinstance(value, str) else {UNKNOWN}


def _parameters(function: _Function) -> set[str]:
    every = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return {each.arg for each in every}


def _assigned(function: _Function, name: str) -> list[tuple[ast.expr, int | None]]:
    """Return what a function assigns to a name, and where in a tuple of names the name stands."""
    return _assignments(function).get(name, [])


@cache
def _assignments(function: _Function) -> Mapping[str, list[tuple[ast.expr, int | None]]]:
    found: dict[str, list[tuple[ast.expr, int | None]]] = {}
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for place, name in enumerate(_names(target)):
                found.setdefault(name, []).append((node.value, place if isinstance(target, ast.Tuple) else None))
    return found


def _names(target: ast.expr) -> list[str]:
    """Return the names that are assigned to; one that is none, such as an attribute, is empty."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [each.id if isinstance(each, ast.Name) else "" for each in parts]


def _returned(function: _Function) -> Iterator[ast.expr]:
    return (node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None)


def _function(node: ast.Call, scope: _Scope) -> _Function | None:
    """Return the function of the same module that is called, if there is one of that name."""
    called = node.func
    is_own = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self"
    found = _functions(scope.tree).get(_name_of(called), ()) if is_own or isinstance(called, ast.Name) else ()
    return found[0] if len(found) == 1 else None


@cache
def _functions(tree: ast.Module) -> Mapping[str, Sequence[_Function]]:
    found: dict[str, list[_Function]] = {}
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            found.setdefault(node.name, []).append(node)
    return found


def _callers(function: _Function, scope: _Scope) -> Iterator[_Call]:
    return (call for call in _calls_by_name().get(function.name, ()) if call.scope.tree is scope.tree)


@cache
def _calls_by_name() -> Mapping[str, Sequence[_Call]]:
    found: dict[str, list[_Call]] = {}
    for call in _calls():
        found.setdefault(call.name, []).append(call)
    return found


def _name_of(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


@cache
def _calls() -> Sequence[_Call]:
    return [_Call(scope, node, _name_of(node.func)) for node, scope in _nodes() if isinstance(node, ast.Call)]


@cache
def _trees() -> Sequence[tuple[ModuleType, ast.Module]]:
    with _nothing_collected():
        return [(each, ast.parse(Path(each.__file__).read_text())) for each in modules().values() if each.__file__]


@cache
def _nodes() -> Sequence[tuple[ast.Call | ast.Dict, _Scope]]:
    with _nothing_collected():
        return [found for module, tree in _trees() for found in _below(tree, _Scope(module, tree))]


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Keep the collector away from what only grows: it would take most of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _below(tree: ast.AST, scope: _Scope) -> Iterator[tuple[ast.Call | ast.Dict, _Scope]]:
    left: list[tuple[Any, _Scope]] = [(tree, scope)]
    while left:
        node, scope = left.pop()
        if isinstance(node, ast.Call | ast.Dict):
            yield node, scope
        inside = _Scope(scope.module, scope.tree, (*scope.functions, node)) if isinstance(node, _Function) else scope
        for name in node._fields:
            part = getattr(node, name)
            children = part if isinstance(part, list) else [part]
            left.extend((child, inside) for child in children if isinstance(child, _INNER))


@cache
def _literals() -> "_Literals":
    reader = _Literals()
    for module, tree in _trees():
        reader.visit(tree)
        reader.texts.update(each for name, each in vars(module).items() if isinstance(each, str) and name[:2] != "__")
    return reader


class _Literals(ast.NodeVisitor):
    """Every text in the source but docstrings, annotations, and the names of exports, of types and of threads."""

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.bytes: set[str] = set()
        self.choices: set[str] = set()
        """Texts in a `Literal`."""
        self._words_mean = self.texts
        """The set to which a word that is read now belongs."""

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if _names(node.targets[0]) != ["__all__"]:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def _visit_function(self, node: _Function) -> None:
        for each in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(each)

    def visit_Call(self, node: ast.Call) -> None:
        if _name_of(node.func) == "cast":
            self.visit(node.args[1])
        elif _name_of(node.func) not in {_THREAD, "TypeVar"}:
            self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Take every word of a `Literal`; elsewhere a word may be the name of a type."""
        outside = self._words_mean
        self._words_mean = self.choices if _name_of(node.value) == "Literal" else set()
        self.generic_visit(node)
        self._words_mean = outside

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bytes):
            self.bytes.add(node.value.decode("latin-1"))
        elif isinstance(node.value, str):
            is_word = re.fullmatch(_WORD, node.value) is not None or self._words_mean is self.choices
            (self._words_mean if is_word else self.texts).add(node.value)


def _known(texts: set[str]) -> list[str]:
    return sorted(each for each in texts if UNKNOWN not in each)
