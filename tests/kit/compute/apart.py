"""Three services as if each were in a process of its own: nothing is shared but the network between them.

Each has its own store, with its own kinds and no others. Region and compute ask identity who stands behind a request,
and whatever else a service wants of another it asks over HTTP, by the same client and server as in production: on real
sockets in real time (`apart`), or on simulated ones in simulated time (`apart_in`).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from remuda.access.principal import Context, Principal
from remuda.clients.delegation import Delegation
from remuda.clients.transport import remote
from remuda.compute.kinds import KINDS as COMPUTE_KINDS
from remuda.compute.ports import RegionClient
from remuda.http.asgi import ASGIApp, ClientDisconnect, Receive, Scope, Send
from remuda.http.client import Client
from remuda.http.server.server import BoundSocket, HttpServer, ListenAddress
from remuda.http.transport import ClientCredentials, ClientSettings, ServiceCredentials
from remuda.identity.api import IdentityApi
from remuda.identity.app import TABLE as IDENTITY
from remuda.identity.federation.provider_client import Fetcher
from remuda.identity.kinds import KINDS as IDENTITY_KINDS
from remuda.identity.rbac.remote_authenticator import RemoteAuthenticator
from remuda.identity.rbac.revocation_feed import RevocationFeed
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.errors import RemudaError
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.outbound.addresses import SystemResolver
from remuda.outbound.fetch import GuardedFetcher
from remuda.quota.client import QuotaClient
from remuda.region.api import RegionApi
from remuda.region.app import TABLE as REGION
from remuda.region.kinds import KINDS as REGION_KINDS
from remuda.store.kinds import Registry
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.both_transports import QUICK, free_port
from tests.kit.compute.environment import (
    SERVICE,
    ComputeEnvironment,
    ComputeOptions,
    running,
    with_compute,
)
from tests.kit.compute.stores import Stores
from tests.kit.environment import run_inline
from tests.kit.identity.environment import ISSUER
from tests.kit.identity.service_credentials import certified
from tests.kit.outbound_servers import HERE
from tests.kit.region.environment import region_environment
from tests.kit.resource_api import with_machinery
from tests.kit.simulation.network import SimNetwork
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER, sim_ports

_OF_REGION = "unikorn-region"
_GRACE_S = 0.1
_KINDS = {"identity": IDENTITY_KINDS, "region": REGION_KINDS, "compute": COMPUTE_KINDS}

Place = ListenAddress | BoundSocket
"""Where something answers."""


@dataclass(frozen=True, kw_only=True)
class MachinePorts:
    """What the services run on."""

    clock: Clock
    randomness: Randomness
    opened: Callable[[str, Registry], SqliteStore]
    """Opens a store by its name."""
    urls: tuple[str, str]
    """Where identity and region are reached."""
    issuer: str = ISSUER
    directory: Path | None = None
    settings: ClientSettings = field(default_factory=ClientSettings)
    identity_ports: Mapping[str, Any] = field(default_factory=dict)


@asynccontextmanager
async def apart(directory: Path) -> AsyncIterator[ComputeEnvironment]:
    """Run everything in real time for the time of a block."""

    def opened(name: str, kinds: Registry) -> SqliteStore:
        return open_store(directory / f"{name}.db", kinds, SEALER)

    places = ListenAddress("127.0.0.1", free_port()), ListenAddress("127.0.0.1", free_port())
    machine = MachinePorts(
        clock=SystemClock(),
        randomness=SystemRandomness(),
        opened=opened,
        urls=(f"http://{places[0]}", f"http://{places[1]}"),
        directory=directory,
        settings=QUICK,
    )
    async with _apart(machine, places, ComputeOptions(is_instant=True)) as compute:
        yield compute


EITHER_WAY = pytest.mark.parametrize(
    "begun",
    [pytest.param(running, id="together"), pytest.param(apart, id="apart", marks=pytest.mark.thorough)],
)
"""Runs a test in real time in both deployments: `async with begun(tmp_path) as compute`."""
Begun = Callable[[Path], AbstractAsyncContextManager[ComputeEnvironment]]


def databases(directory: Path) -> list[Path]:
    """Return all files of the services' stores there."""
    return sorted(path for name in ("remuda", *_KINDS) for path in directory.glob(f"{name}.db*"))


@asynccontextmanager
async def apart_in(world: World, given: ComputeOptions) -> AsyncIterator[ComputeEnvironment]:
    """Run everything in simulated time for the time of a block."""

    def opened(name: str, kinds: Registry) -> SqliteStore:
        return open_store(world.disk.directory / f"{name}.db", kinds, SEALER, ports=sim_ports(world))

    with SimNetwork(world.loop) as network:
        machine = MachinePorts(
            clock=world.clock,
            randomness=world.randomness,
            opened=opened,
            urls=(network.url(1), network.url(2)),
            identity_ports={"run_blocking": run_inline},
        )
        async with _apart(machine, (network.listener(1), network.listener(2)), given) as compute:
            yield compute


@asynccontextmanager
async def _apart(
    machine: MachinePorts, places: tuple[Place, Place], given: ComputeOptions
) -> AsyncIterator[ComputeEnvironment]:
    async with AsyncExitStack() as stack:
        identity, region, compute = (machine.opened(name, with_machinery(kinds)) for name, kinds in _KINDS.items())
        stack.push_async_callback(compute.close)
        stack.push_async_callback(region.close)
        reaching = Reaching(machine, stack)
        of_region = await reaching.identity_of(_OF_REGION, region)
        environment = await stack.enter_async_context(
            region_environment(
                identity,
                machine.clock,
                machine.randomness,
                directory=machine.directory,
                is_instant=given.is_instant,
                identity_ports=dict(machine.identity_ports),
                more=of_region | dict(machine.identity_ports) | dict(given.regional),
            )
        )
        environment.store = cast("SqliteStore", Stores(compute, region, identity))
        await reaching.serve(environment.identity.asgi, places[0], environment.identity.app.ports.closing)
        await reaching.serve(environment.asgi, places[1], environment.app.ports.closing)
        of_compute = await reaching.identity_of(SERVICE, compute)
        of_compute["region"] = await reaching.region_of(SERVICE)
        await reaching.until_believed()
        yield await stack.enter_async_context(with_compute(environment, of_compute | dict(given.ports)))


class Reaching:
    """How services reach each other."""

    def __init__(self, machine: MachinePorts, stack: AsyncExitStack) -> None:
        self._machine, self._stack = machine, stack
        self._feeds: list[RevocationFeed] = []

    async def serve(self, app: ASGIApp, place: Place, closing: asyncio.Event) -> None:
        """Answer there until the end, of which streams hear."""
        machine = self._machine

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            with suppress(ClientDisconnect):  # as the outermost layer does in production
                await app(scope, receive, send)

        server = HttpServer(
            answer,
            clock=machine.clock,
            randomness=machine.randomness,
            count_closed=lambda _: None,
            closing=closing,
            grace_s=_GRACE_S,
        )
        await server.start(place)
        self._stack.push_async_callback(server.stop)

    async def identity_of(self, service: str, store: SqliteStore) -> dict[str, Any]:
        """Return the ports of a service that has this store and identity elsewhere."""
        machine, url = self._machine, self._machine.urls[0]
        client = await self._client(url, Certified(service, machine.clock))
        feed = RevocationFeed(client, machine.clock)
        self._feeds.append(feed)
        following = asyncio.create_task(feed.run())
        self._stack.push_async_callback(asyncio.wait, [following])
        self._stack.callback(following.cancel)
        guarded = GuardedFetcher(resolve=SystemResolver(), reach=HERE, tls=ssl.create_default_context())
        fetch = Fetcher(guarded)
        return {
            "store": store,
            "log": store,
            "authenticator": RemoteAuthenticator(
                issuer=machine.issuer, server=url, fetch=fetch, feed=feed, clock=machine.clock
            ),
            "identity": QuotaClient(
                identity=remote(IdentityApi, IDENTITY, client, clock=machine.clock, randomness=machine.randomness),
                delegation=self._delegation(service),
            ),
        }

    async def region_of(self, service: str) -> RegionClient:
        """Return a service's client of region elsewhere."""
        machine = self._machine
        client = await self._client(machine.urls[1], Certified(service, machine.clock))
        api = remote(RegionApi, REGION, client, clock=machine.clock, randomness=machine.randomness)
        return RegionClient(api, self._delegation(service))

    def _delegation(self, service: str) -> Delegation:
        """Return a service's contexts. It names itself; its permissions the other service looks up."""

        async def principal() -> Principal:
            return Principal(subject=service, type="system")

        return Delegation(service=principal, randomness=self._machine.randomness)

    async def until_believed(self) -> None:
        """Wait until all have heard of identity."""
        while not all(map(_is_believed, self._feeds)):
            await self._machine.clock.sleep(0.01)

    async def _client(self, url: str, credentials: ClientCredentials) -> Client:
        machine = self._machine
        made = Client(
            url,
            credentials=credentials,
            clock=machine.clock,
            randomness=machine.randomness,
            settings=machine.settings,
        )
        return await self._stack.enter_async_context(made)


class Certified:
    """The credentials of a service that a proxy vouches for."""

    def __init__(self, service: str, clock: Clock) -> None:
        self._service, self._clock = service, clock
        self._claiming = ServiceCredentials(service)

    def headers(self, context: Context | None) -> Mapping[str, str]:
        shown = certified(self._service, {}, now=self._clock.now())
        return {**shown, **{name.lower(): value for name, value in self._claiming.headers(context).items()}}


def _is_believed(feed: RevocationFeed) -> bool:
    try:
        feed.check()
    except RemudaError:
        return False
    return True
