"""A linearizability checker: is there an order in which each call took effect at one moment between call and return?

Wing and Gong's search with Lowe's memory of what was tried: depth first through "this call was next", over states of a
model that is asked what each call would have returned. A call whose outcome nobody knows, because its caller died, may
have taken effect at any time after it began, or never.

Of several calls that say the same and came out the same, only the one that returned first is tried: where another could
be next, so could it. That makes short work of many equal calls at once, which would otherwise take for ever.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

StateT = TypeVar("StateT", bound=Hashable)
OpT = TypeVar("OpT", bound=Hashable)
OpT_contra = TypeVar("OpT_contra", bound=Hashable, contravariant=True)


class Unknown:
    """The outcome of a call whose caller died."""

    def __repr__(self) -> str:
        return "?"


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Call(Generic[OpT]):
    """What somebody asked, what came of it, and when: in any numbers that grow with time."""

    op: OpT
    result: Hashable
    called: int
    returned: int | None
    """None if the outcome is unknown."""


class Model(Protocol[StateT, OpT_contra]):
    """What should happen, if one thing happened after the other."""

    def start(self) -> StateT:
        """Return the state in which a history begins."""
        ...

    def step(self, state: StateT, op: OpT_contra) -> tuple[Hashable, StateT] | None:
        """Return what an operation returns, and the state after it; None if it cannot happen here."""
        ...


def linearize(history: Sequence[Call[OpT]], model: Model[StateT, OpT]) -> list[Call[OpT]] | None:
    """Return an order in which the calls may have taken effect, or None if there is none."""
    calls = sorted(history, key=lambda call: call.called)
    certain = sum(1 << number for number, call in enumerate(calls) if call.returned is not None)
    tried: set[tuple[int, Hashable]] = set()
    state, done = model.start(), 0
    path: list[tuple[int, StateT, int, list[int]]] = []
    choices = _next(calls, done)
    while done & certain != certain:
        advanced = False
        while choices:
            number = choices.pop()
            after = _after(model, state, calls[number])
            taken = done | 1 << number
            if after is None or (taken, after) in tried:
                continue
            tried.add((taken, after))
            path.append((number, state, done, choices))
            state, done, choices = after, taken, _next(calls, taken)
            advanced = True
            break
        if not advanced:
            if not path:
                return None
            _, state, done, choices = path.pop()
    return [calls[number] for number, *_ in path]


def _after(model: Model[StateT, OpT], state: StateT, call: Call[OpT]) -> StateT | None:
    stepped = model.step(state, call.op)
    if stepped is None:
        return None
    result, after = stepped
    return after if call.returned is None or result == call.result else None


def _next(calls: Sequence[Call[OpT]], done: int) -> list[int]:
    """Return which calls may be next, the likeliest last: all that began before any other of the rest returned."""
    open_ = [number for number in range(len(calls)) if not done >> number & 1]
    first = min((end for number in open_ if (end := calls[number].returned) is not None), default=None)
    distinct: dict[tuple[OpT, Hashable], int] = {}
    for number in open_:
        call = calls[number]
        if first is not None and call.called > first:
            break
        said = (call.op, call.result)
        if said not in distinct or _end(call) < _end(calls[distinct[said]]):
            distinct[said] = number
    return sorted(distinct.values(), key=lambda number: -_end(calls[number]))


def _end(call: Call[OpT]) -> float:
    return float("inf") if call.returned is None else call.returned
