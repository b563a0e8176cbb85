"""Memo: results of a pure function, for arguments that are the same objects again and again."""

from collections.abc import Callable
from typing import Generic, TypeVar

ArgumentT = TypeVar("ArgumentT")
ResultT = TypeVar("ResultT")


class IdentityMemo(Generic[ArgumentT, ResultT]):
    """A pure function of an immutable object that computes each result once.

    Objects are compared by identity, which is faster than hashing them, and possible for those with a mapping. The memo
    keeps them, so that no other one gets their identity.
    """

    def __init__(self, function: Callable[[ArgumentT], ResultT], *, limit: int) -> None:
        self._function, self._limit = function, limit
        self._known: dict[int, tuple[ArgumentT, ResultT]] = {}

    def __call__(self, argument: ArgumentT) -> ResultT:
        """Return the result for an object."""
        known = self._known.get(id(argument))
        if known is not None:
            return known[1]
        if len(self._known) >= self._limit:
            self._known.clear()
        result = self._function(argument)
        self._known[id(argument)] = argument, result
        return result

    def __len__(self) -> int:
        return len(self._known)
