"""The tray: where steps leave, for whoever runs the operation, what they wrote and the token that goes with it.

Answers are made of that. What is stored may be gone again when it is read, if somebody else removes it in that very
moment, and whoever asked would be told that there is no such user, of one that it has just made. And a token must not
be stored at all. Nothing is lost with the memory: an operation whose process dies is undone, and its token was never
shown to anybody.
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from remuda.identity.kinds.users import OrganizationUser, ServiceAccount
from remuda.identity.tokens.service import Issued

T = TypeVar("T")


class Shelf(Generic[T]):
    """Things of one kind, by the operations that they were made for."""

    def __init__(self) -> None:
        self._things: dict[str, T] = {}

    def put(self, operation: str, thing: T) -> None:
        """Leave something."""
        self._things[operation] = thing

    def take(self, operation: str | None) -> T | None:
        """Take it away; there is nothing if the operation was done earlier (None), or elsewhere."""
        return None if operation is None else self._things.pop(operation, None)


@dataclass(frozen=True, slots=True)
class Tray:
    """All of it."""

    memberships: Shelf[OrganizationUser] = field(default_factory=Shelf)
    accounts: Shelf[ServiceAccount] = field(default_factory=Shelf)
    tokens: Shelf[Issued] = field(default_factory=Shelf)
