"""One room of identity for tests: its routes over a real store, on the simulated machine, with principals to order.

::

    def test_…() -> None:
        async def scenario(room: Room) -> None:
            reply = await room.ask(administrator(ORG)).post("/api/v1/…", {…})

        in_a_room(lambda world, store: Tenancy(…), tenancy.ROUTES, scenario)

Every answer is held against the document of those routes, and against the wire contract.
"""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Generic

from remuda.http.routes import AnyRoute
from remuda.identity.kinds import KINDS
from remuda.store.kinds import Registry
from remuda.store.sqlite.store import SqliteStore
from tests.kit import resource_api as common
from tests.kit.resource_api import (
    ORG,
    OTHER_ORG,
    PROJECT,
    ByName,
    ServiceT,
    everywhere,
    member,
    rights,
    run_in_room,
    with_machinery,
)
from tests.kit.simulation.runner import World

__all__ = [
    "ORG",
    "OTHER_ORG",
    "PROJECT",
    "ByName",
    "Room",
    "everywhere",
    "in_a_room",
    "member",
    "registry",
    "rights",
]


def registry() -> Registry:
    """Return every kind that identity needs."""
    return with_machinery(KINDS)


class Room(common.Room[ServiceT], Generic[ServiceT]):
    """A room of identity, mounted."""

    of = "identity"


def in_a_room(
    service: Callable[[World, SqliteStore], ServiceT],
    routes: Iterable[AnyRoute],
    scenario: Callable[[Room[ServiceT]], Coroutine[Any, Any, None]],
    *,
    seeds: int = 1,
) -> None:
    """Run a scenario in simulated time on a store of its own."""
    run_in_room(
        registry(), lambda world, store: Room(world, store, service(world, store), routes), scenario, seeds=seeds
    )
