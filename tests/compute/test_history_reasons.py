"""Every word that a controller can give for an instance, or for its server, is explained."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import remuda
from remuda.compute.history.reasons import REASONS, wait_of
from remuda.compute.history.schema import Resolver
from remuda.compute.history.timeline import EVENTS
from remuda.compute.instances.convergence import POLL_S
from remuda.reconcile.ports import ControllerSettings

SOURCES = Path(remuda.__file__).parent
WALKED = ("compute", "quota", "reconcile", "region/servers", "region/catalogue/provider_registry.py")
"""Where the controllers of instances and servers are, and what they are made of."""
NOT_REPORTED = {"Paused", "ServerFailed", "Pending", "NetworkNotFound", "ServerMissing", "RegionUnreachable"}
"""Of what no time can be told: nothing is tried, or an operator has set when, or it may be at rest."""
PLACE = {"Blocked": 0, "Failed": 0, "Requeue": 1}
"""Where each result has its reason."""


def files() -> Iterator[Path]:
    for each in WALKED:
        path = SOURCES / each
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def given_in(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each reason that a module gives, and the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PLACE:
            named = [word.value for word in node.keywords if word.arg == "reason"]
            placed = node.args[PLACE[node.func.id] :][:1]
            for argument in named or placed:
                yield from ((word, node.lineno) for word in values(argument, path))


def values(argument: ast.expr, path: Path) -> Iterator[str]:
    """Yield what an argument can be: a word as it stands, one of two, or a constant of the module."""
    match argument:
        case ast.Constant(value=str(word)):
            yield word
        case ast.IfExp(body=one, orelse=other):
            yield from values(one, path)
            yield from values(other, path)
        case ast.Name(id=name):
            module = ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts)
            found = getattr(importlib.import_module(module), name, None)
            assert isinstance(found, str), f"{path}: {name} is no constant, so nobody can tell what it will say"
            yield found
        case ast.Attribute(attr="reason") | ast.Call(func=ast.Name(id="reason_of")):
            return  # the word of somebody else, who is walked, too
        case _:
            raise AssertionError(f"{path}:{argument.lineno}: a reason that cannot be read: {ast.unparse(argument)}")


def test_the_walk_finds_the_reasons_that_are_known_to_be_there() -> None:
    found = {word for path in files() for word, _ in given_in(path)}
    assert {"QuotaExceeded", "NoCapacity", "AddressesExhausted", "DependencyNotReady", "OperationRunning"} <= found
    assert {"MassDeletion", "InUse", "HasChildren", "Errored", "Deprovisioning"} <= found


def test_every_reason_has_a_sentence_and_a_remedy() -> None:
    unknown = [
        f"{path.relative_to(SOURCES)}:{line} gives {word}"
        for path in files()
        for word, line in given_in(path)
        if word not in REASONS
    ]
    assert not unknown, "these need a line in compute/history/reasons.py"


def test_every_word_is_one_that_somebody_gives() -> None:
    given = {word for path in files() for word, _ in given_in(path)}
    found_out = {"Paused", "Stuck", "RegionUnreachable", "ServerFailed"}
    assert set(REASONS) - given == {"Provisioning", "Changed", "Pending", *found_out}, (
        "the first is what controllers say by default, the next two what is read where they have not spoken, and the "
        "others are what explain finds out by itself"
    )


@pytest.mark.parametrize("word", REASONS)
def test_a_remedy_is_a_sentence_and_what_is_the_matter_one_that_can_go_on(word: str) -> None:
    reason = REASONS[word]
    assert reason.remedy[0].isupper()
    assert reason.remedy.endswith(".")
    assert reason.text[0].isupper()
    assert not reason.text.endswith(".")
    assert (reason.retry_within_s > 0) == (word not in NOT_REPORTED), (
        "about these nothing is tried, or nobody knows when"
    )
    assert reason.resolver in get_args(Resolver)


def events_in(path: Path) -> Iterator[str]:
    """Yield the events that a module tells timelines of, as far as they stand there: the others are checked, too."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(attr="event"), args=[_, event, *_]):
                yield from event_words(event, path)
            case ast.Call(func=ast.Name(id="requested_event"), args=[_, _, _, event, *_]):
                yield from event_words(event, path)
            case ast.Call(func=ast.Attribute(attr="_record"), args=[_, _, event, *_]):
                yield from event_words(event, path)


def event_words(event: ast.expr, path: Path) -> Iterator[str]:
    known = (ast.Constant, ast.IfExp)
    if isinstance(event, known) or (isinstance(event, ast.Name) and event.id.isupper()):
        yield from values(event, path)


def test_every_event_that_is_told_of_an_instance_has_a_sentence() -> None:
    told = {event for path in files() if "region" not in path.parts for event in events_in(path)}
    assert {"ServerCreated", "ServerRecreated", "DeletionRequested", "Rebooted", "FinalizerRemoved"} <= told
    assert told <= EVENTS, "these need a sentence in compute/history/timeline.py"


def test_what_is_said_of_when_it_is_looked_at_is_what_controllers_do() -> None:
    control = ControllerSettings()
    told = {REASONS[word].retry_within_s for word in ("Provisioning", "Rebuilding", "Deprovisioning")}
    assert told == {int(POLL_S)}
    assert REASONS["QuotaExceeded"].retry_within_s == round(max(control.blocked_within_s))
    assert REASONS["NoCapacity"].retry_within_s == control.backoff.longest_s


def test_a_word_that_nobody_thought_of_is_an_operators_to_look_at() -> None:
    assert wait_of("SomethingNew").resolved_by == "operator"
