"""Compute with region and identity beside it and simulated clouds behind them, built as in production.

::

    async def test_…(compute: ComputeEnvironment) -> None:
        network = await compute.region.network()
        instance = await compute.instance(network)
        await compute.until(instance, "provisioned")

Such a test is run twice (`ways`): all three in one process, and `apart`, as if each had one of its own.

Every answer of all three services is held against their documents and the wire contract. `compute.root` is a client
of a platform administrator; `compute.region.organization` and `compute.region.project` are there to begin with.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from remuda.app import registry
from remuda.app.services import identity_client, region_client
from remuda.compute.app import TABLE, ComputeApp
from remuda.compute.ports import ComputePorts
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.store.sqlite.store import open_store
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.asgi.reference import response_contract
from tests.kit.asgi.validating import Validated
from tests.kit.environment import run_inline
from tests.kit.identity.environment import Carrying, expect
from tests.kit.identity.service_credentials import certified
from tests.kit.region.environment import STANDARD, TIMEOUT_S, RegionEnvironment, region_environment
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import SEALER, open_simulated

INSTANCES = "/api/v2/instances"
SERVICE = "unikorn-compute"
JAMMY = "b1f0c0de-0001-4000-8000-000000000001"
"""An image that every simulated cloud has, without a Kubernetes on it."""

_MAX_STEPS = 5_000_000

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """What a test wants otherwise."""

    is_instant: bool = False
    """The clouds take no time for anything."""
    ports: Mapping[str, Any] = field(default_factory=dict)
    """Those of `ComputePorts`."""
    regional: Mapping[str, Any] = field(default_factory=dict)
    """Those of `RegionPorts`."""


Way = Callable[[World, ComputeOptions], AbstractAsyncContextManager["ComputeEnvironment"]]
"""How the services of a simulated machine are built."""


class ComputeEnvironment:
    """All three services, and what a test needs to begin with."""

    def __init__(self, region: RegionEnvironment, app: ComputeApp) -> None:
        self.region, self.app = region, app
        self.store, self.clock = region.store, region.clock
        self.asgi = Validated(app.api, response_contract(TABLE))

    @property
    def root(self) -> Client:
        """A platform administrator."""
        return self.client(self.region.identity.root)

    def client(self, token: str | None) -> Client:
        """Return the client of whoever has this token."""
        return Client(app=self.asgi, token=token, contract=response_contract(TABLE))

    def service(self, name: str, *, impersonates: bool = False, **claim: Any) -> Client:
        """Return the client of a service that has a certificate; the claim says for whom it acts (`actor=…`)."""
        headers = certified(name, claim, impersonates=impersonates, now=self.clock.now())
        return Client(app=Carrying(self.asgi, headers), token=None, contract=response_contract(TABLE))

    def wanted(self, network: str, name: str = "instance", **spec: Any) -> dict[str, Any]:
        """Return how an instance is asked for."""
        asked = {
            "organizationId": self.region.organization,
            "projectId": self.region.project,
            "networkId": network,
            "flavorId": STANDARD,
            "imageId": JAMMY,
        }
        return {"metadata": {"name": name}, "spec": asked | spec}

    async def instance(self, network: str, name: str = "instance", **spec: Any) -> str:
        """Make an instance and return its id."""
        reply = await self.root.post(INSTANCES, self.wanted(network, name, **spec))
        return str(expect(reply, 201)["metadata"]["id"])

    async def read(self, instance: str) -> Any:
        """Return an instance as clients read it."""
        return expect(await self.root.get(f"{INSTANCES}/{instance}"), 200)

    async def until(self, instance: str, status: str) -> Any:
        """Wait until an instance has this provisioning status, and return it."""

        def has_it(reply: Reply) -> bool:
            return reply.status == 200 and reply.json["metadata"]["provisioningStatus"] == status

        return (await self.awaited(instance, has_it, status)).json

    async def until_gone(self, instance: str) -> None:
        """Wait until an instance is no longer there."""
        await self.awaited(instance, lambda reply: reply.status == 404, "gone", every_s=0.5)

    async def awaited(
        self, instance: str, holds: Callable[[Reply], bool], what: str, *, every_s: float = 0.05
    ) -> Reply:
        """Wait until what is told of an instance holds, and return it."""
        deadline = self.clock.monotonic() + TIMEOUT_S
        while not holds(reply := await self.root.get(f"{INSTANCES}/{instance}")):
            late = f"{instance} is not {what} in {TIMEOUT_S:g} s: {reply.body.decode()}"
            assert self.clock.monotonic() < deadline, late
            await self.clock.sleep(every_s)
        return reply


@asynccontextmanager
async def with_compute(region: RegionEnvironment, more: dict[str, Any]) -> AsyncIterator[ComputeEnvironment]:
    """Run compute beside the other two; `more` are ports of compute to be otherwise."""
    given, identity = region.app.ports, region.identity.app
    ports: dict[str, Any] = {
        "store": given.store,
        "log": given.log,
        "clock": given.clock,
        "randomness": given.randomness,
        "sealer": given.sealer,
        "api": given.api,
        "rate": given.rate,
        "run_blocking": given.run_blocking,
        "authenticator": identity.authenticator,
        "identity": identity_client(identity, SERVICE),
        "region": region_client(identity, region.app, SERVICE),
    }
    app = ComputeApp(ComputePorts(**ports | more))
    await app.start()
    try:
        compute = ComputeEnvironment(region, app)
        yield compute
        compute.asgi.assert_documented()
    finally:
        await app.stop()


@asynccontextmanager
async def running(
    directory: Path, *, is_instant: bool = True, regional: dict[str, Any] | None = None, **ports: Any
) -> AsyncIterator[ComputeEnvironment]:
    """Run everything in real time for the time of a block.

    `ports` are those of `ComputePorts`, and `regional` those of `RegionPorts`, to be otherwise.
    """
    store = open_store(directory / "remuda.db", registry(), SEALER)
    async with (
        region_environment(
            store,
            SystemClock(),
            SystemRandomness(),
            directory=directory,
            is_instant=is_instant,
            identity_ports={},
            more=regional or {},
        ) as region,
        with_compute(region, ports) as compute,
    ):
        yield compute


@asynccontextmanager
async def together(world: World, given: ComputeOptions) -> AsyncIterator[ComputeEnvironment]:
    """Run everything in one process, over one store, in simulated time for the time of a block."""
    store = open_simulated(world, registry())
    async with (
        region_environment(
            store,
            world.clock,
            world.randomness,
            directory=None,
            is_instant=given.is_instant,
            identity_ports={"run_blocking": run_inline},
            more={"run_blocking": run_inline} | dict(given.regional),
        ) as region,
        with_compute(region, dict(given.ports)) as compute,
    ):
        yield compute


WAY: ContextVar[Way] = ContextVar("WAY", default=together)
"""In which way scenarios are run."""


def run_compute(
    scenario: Callable[[ComputeEnvironment], Coroutine[Any, Any, None]],
    *,
    seed: int = 5,
    is_instant: bool = False,
    regional: dict[str, Any] | None = None,
    **ports: Any,
) -> None:
    """Run a scenario in simulated time.

    `ports` are those of `ComputePorts`, and `regional` those of `RegionPorts`, that a test wants otherwise.
    """

    async def run(world: World) -> None:
        given = ComputeOptions(is_instant=is_instant, ports=ports, regional=regional or {})
        async with WAY.get()(world, given) as compute:
            await scenario(compute)

    simulate(run, [seed], max_steps=_MAX_STEPS)
