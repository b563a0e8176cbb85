"""Ports of region and identity: every method fits its route; one that does not is found when a client is built."""

from collections.abc import AsyncGenerator
from typing import Any, Protocol

import pytest

from remuda.access.principal import Context, Principal
from remuda.clients.transport import local, remote
from remuda.clients.watch import LocalWatch, WatchMessage
from remuda.http.client import Client
from remuda.http.routes import Table
from remuda.http.transport import ServiceCredentials
from remuda.identity.api import IdentityApi
from remuda.identity.app import TABLE as IDENTITY
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.region.api import RegionApi
from remuda.region.app import TABLE as REGION
from remuda.region.networks.schema import NetworkRead
from remuda.region.servers.schema import ReplaceWrite, ServerCreate, ServerRead
from remuda.resources.query import NetworkedQuery
from remuda.resources.schema import RegionRead


async def nobody() -> Principal:
    return Principal(subject="unikorn-compute", type="system")


WATCH = LocalWatch(reader=nobody, clock=SystemClock(), randomness=SystemRandomness())


@pytest.mark.parametrize(("port", "table"), [(RegionApi, REGION), (IdentityApi, IDENTITY)])
async def test_every_method_of_a_port_fits_its_route(port: type, table: Table) -> None:
    methods = {name for name in vars(port) if not name.startswith("_")}
    routes = {route.name: route for route in table.routes}
    services = {route.service: _instance(route.service) for route in table.routes if route.service is not None}
    here: Any = local(port, table, services, watch=WATCH)
    async with Client(
        "http://127.0.0.1:9",
        credentials=ServiceCredentials("unikorn-compute"),
        clock=SystemClock(),
        randomness=SystemRandomness(),
    ) as client:
        there: Any = remote(port, table, client, clock=SystemClock(), randomness=SystemRandomness())
    assert set(vars(here)) == set(vars(there)) == methods
    assert {name.replace("watch_", "list_") for name in methods} <= set(routes)


def _instance(service: type) -> Any:
    return object.__new__(service)


class Unknown(Protocol):
    async def get_nothing(self, context: Context) -> None: ...


class OtherArgument(Protocol):
    async def get_network(self, context: Context, id_: str) -> NetworkRead: ...


class OtherType(Protocol):
    async def get_network(self, context: Context, network: int) -> NetworkRead: ...


class LeftOut(Protocol):
    async def replace_server(self, context: Context, server: str, body: ReplaceWrite) -> ServerRead: ...


class OtherBody(Protocol):
    async def create_server(self, context: Context, body: ReplaceWrite) -> ServerRead: ...


class OtherOrder(Protocol):
    async def create_server(self, body: ServerCreate, context: Context) -> ServerRead: ...


class OtherResponse(Protocol):
    async def get_network(self, context: Context, network: str) -> ServerRead: ...


class AwaitedList(Protocol):
    async def list_servers(self, context: Context, query: NetworkedQuery) -> list[ServerRead]: ...


class WatchedArray(Protocol):
    def watch_regions(self) -> AsyncGenerator[WatchMessage[RegionRead]]: ...


class OtherWatch(Protocol):
    def watch_servers(self) -> AsyncGenerator[WatchMessage[NetworkRead]]: ...


class FilteredWatch(Protocol):
    def watch_servers(self, query: NetworkedQuery) -> AsyncGenerator[WatchMessage[ServerRead]]: ...


@pytest.mark.parametrize(
    ("port", "fault"),
    [
        (Unknown, "get_nothing is no route"),
        (OtherArgument, "get_network takes the argument id_, which the route does not have"),
        (OtherType, "get_network takes network as int"),
        (LeftOut, "replace_server does not take the argument revision"),
        (OtherBody, "create_server takes body as ReplaceWrite"),
        (OtherOrder, "create_server takes its arguments otherwise than Servers.create"),
        (OtherResponse, "get_network returns .*ServerRead.*, and should return .*NetworkRead"),
        (AwaitedList, "list_servers returns list.*, and should return .*AsyncGenerator"),
        (WatchedArray, "watch_regions is a list that cannot be watched"),
        (OtherWatch, "watch_servers returns .*NetworkRead.*, and should return .*ServerRead"),
        (FilteredWatch, "watch_servers takes arguments"),
    ],
)
def test_a_port_that_does_not_fit_is_a_value_error(port: type, fault: str) -> None:
    with pytest.raises(ValueError, match=f"{port.__name__} does not fit the routes of region: {fault}"):
        local(port, REGION, {}, watch=WATCH)
