"""Sagas whose every step can be stopped, failed and repeated."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from remuda.operations.saga import AnySaga, AnyStep, Work
from tests.kit.proofs.crashing_store import MOMENTS, Moment
from tests.kit.proofs.saga_environment import FIRST

Verb = Literal["do", "undo"]
Again = Callable[[], Awaitable[None]]


class InjectedError(Exception):
    """A step was told to fail."""


@dataclass(frozen=True)
class Point:
    """A place in a run: before or after the effect of a step or its undo."""

    verb: Verb
    step: str
    moment: Moment

    def __str__(self) -> str:
        return f"{self.moment} {self.verb} {self.step}"


Hook = Callable[[Point, Again], Awaitable[None]]
"""Called at each point of the first operation, with the way to have the effect once more."""


def points(saga: AnySaga, verb: Verb) -> Iterator[Point]:
    """Yield the points of a run, or of its undoing, in their order."""
    for step in saga.steps if verb == "do" else reversed(saga.steps):
        for moment in MOMENTS:
            yield Point(verb, step.name, moment)


def hooked(saga: AnySaga, hook: Hook, *, operation: str = FIRST) -> AnySaga:
    """Return the saga with a hook at every point of one operation."""
    return replace(saga, steps=tuple(_hooked(step, hook, operation) for step in saga.steps))


def _hooked(step: AnyStep, hook: Hook, operation: str) -> AnyStep:
    def wrapped(verb: Verb) -> Callable[[Any, Work[Any]], Awaitable[None]]:
        effect = step.do if verb == "do" else step.undo

        async def run(ports: Any, work: Work[Any]) -> None:
            async def again() -> None:
                await effect(ports, work)

            if work.id != operation:
                await again()
                return
            await hook(Point(verb, step.name, "before"), again)
            await again()
            await hook(Point(verb, step.name, "after"), again)

        return run

    return replace(step, do=wrapped("do"), undo=wrapped("undo"))


def failing(*at: Point, once: bool = False) -> Hook:
    """Fail at these points, always or once each."""
    left = set(at)

    async def fail(point: Point, _again: Again) -> None:
        if point in left:
            if once:
                left.discard(point)
            raise InjectedError(str(point))

    return fail


def repeating(at: Point) -> Hook:
    """Have the effect once more at this point."""

    async def repeat(point: Point, again: Again) -> None:
        if point == at:
            await again()

    return repeat


def meanwhile(at: Point, act: Callable[[], Awaitable[None]]) -> Hook:
    """Do something else at this point, the first time it is reached."""
    reached: list[Point] = []

    async def do_it(point: Point, _again: Again) -> None:
        if point == at and not reached:
            reached.append(point)
            await act()

    return do_it


def both(one: Hook, other: Hook) -> Hook:
    """Apply one hook and then another."""

    async def apply(point: Point, again: Again) -> None:
        await one(point, again)
        await other(point, again)

    return apply
