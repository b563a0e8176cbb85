"""What a matrix is tried on: a service over a real store, with objects in every place."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tests.kit.proofs.authorization.matrix import Caller, Row, Scope, Target
from tests.kit.proofs.authorization.transports import Request, Transport


class Subject(Protocol):
    """A service that a matrix can be tried on."""

    rows: Sequence[Row]
    callers: Sequence[Caller]

    @property
    def transports(self) -> Mapping[str, Transport]:
        """The ways in, by name."""
        ...

    async def request(self, row: Row, target: Target) -> Request:
        """Return a request about this target, whose objects are made ready."""
        ...

    def use_up(self, scope: Scope) -> None:
        """Note that what is in a place was changed: the next request about it gets fresh objects."""
        ...

    async def state(self) -> Any:
        """Return everything that is stored, with its versions."""
        ...

    async def shown(self, row: Row, scope: Scope) -> str:
        """Return the id of something that a list must show to who may see this place."""
        ...
