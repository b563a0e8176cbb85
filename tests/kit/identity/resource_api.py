"""API of one resource package of identity: its routes over a real store, on the simulated machine, with any principal.

::

    def test_…() -> None:
        async def scenario(api: IdentityApi[Groups]) -> None:
            reply = await api.ask(administrator(ORG)).post("/api/v1/…", {…})

        in_an_api(lambda world, store: Tenancy(…), tenancy.ROUTES, scenario)

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
    permission_set,
    run_resource_api,
    with_machinery,
)
from tests.kit.simulation.runner import World

__all__ = [
    "ORG",
    "OTHER_ORG",
    "PROJECT",
    "ByName",
    "IdentityApi",
    "everywhere",
    "member",
    "permission_set",
    "registry",
    "run_identity_api",
]


def registry() -> Registry:
    """Return every kind that identity needs."""
    return with_machinery(KINDS)


class IdentityApi(common.ResourceApi[ServiceT], Generic[ServiceT]):
    """Routes of a resource package, mounted."""

    of = "identity"


def run_identity_api(
    service: Callable[[World, SqliteStore], ServiceT],
    routes: Iterable[AnyRoute],
    scenario: Callable[[IdentityApi[ServiceT]], Coroutine[Any, Any, None]],
    *,
    seeds: int = 1,
) -> None:
    """Run a scenario in simulated time on a store of its own."""
    run_resource_api(
        registry(), lambda world, store: IdentityApi(world, store, service(world, store), routes), scenario, seeds=seeds
    )
