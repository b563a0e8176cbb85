"""A cloud whose answers are lost, late and wrong: what is desired is there once, and after its removal not at all.

`REMUDA_OPENSTACK_SEEDS=200` runs more seeds than usual, `REMUDA_OPENSTACK_SEED=7` only that one.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest

from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import AlreadyExists, Unavailable
from remuda.kernel.randomness import SystemRandomness
from remuda.providers.circuit_breaker import CallSettings, CircuitBreakerSettings
from remuda.providers.contract.common import Handle, InUse
from remuda.providers.contract.networks import Tenancy
from remuda.providers.contract.provider import Provider
from remuda.providers.contract.servers import CloudServer, CloudServerSpec
from remuda.providers.openstack.provider import open_cloud
from remuda.providers.openstack.tenancies import project_name
from tests.kit.providers.candidates import through_calls
from tests.kit.providers.conformance import network_spec, port_spec
from tests.openstack.cloud import Cloud, MemoryCredentials
from tests.openstack.fault_proxy import LATE_S, faulty
from tests.openstack.plane.api import Session

pytestmark = pytest.mark.openstack

T = TypeVar("T")

SEEDS = (
    [int(os.environ["REMUDA_OPENSTACK_SEED"])]
    if "REMUDA_OPENSTACK_SEED" in os.environ
    else list(range(int(os.environ.get("REMUDA_OPENSTACK_SEEDS", "20"))))
)
AT_ONCE = 4
ATTEMPTS = 3000
PAUSE_S = 0.3
CALLS = CallSettings(
    deadline_s=LATE_S - 2.0,
    breaker=CircuitBreakerSettings(failures_in_a_row=1000, failure_share=1.0),  # so many faults are no reason to wait
)


@dataclass(frozen=True)
class Desired:
    """A server with a public address, in a tenancy and a network of its own."""

    provider: Provider
    seed: int
    flavor: str
    image: str

    @property
    def tenancy(self) -> str:
        return f"identity-{self.seed}.faults"

    async def create(self) -> None:
        provider = self.provider
        assert provider.tenancies
        assert provider.networks
        assert provider.ports
        tenancies, networks, ports = provider.tenancies, provider.networks, provider.ports
        wanted = Tenancy(name=self.tenancy, organization="o", project="p", public_key="")
        await eventually(lambda: tenancies.converge_tenancy(wanted))
        await eventually(lambda: networks.converge_network(replace(network_spec(), handle=self._handle("network"))))
        port = replace(port_spec(), handle=self._handle("port"), network=self._handle("network").name, is_public=True)
        await eventually(lambda: ports.converge_port(port))
        found = await eventually(self._server, until=lambda server: server is not None and server.state == "running")
        assert found is not None

    async def remove(self) -> None:
        provider = self.provider
        assert provider.tenancies
        assert provider.networks
        assert provider.ports
        assert provider.servers
        servers, ports, networks = provider.servers, provider.ports, provider.networks
        tenancies = provider.tenancies
        await removed(servers.find_server, servers.remove_server, self._handle("server"))
        await removed(ports.find_port, ports.remove_port, self._handle("port"))
        await removed(networks.find_network, networks.remove_network, self._handle("network"))
        await removed(tenancies.find_tenancy, tenancies.remove_tenancy, self.tenancy)

    async def _server(self) -> CloudServer | None:
        """Look for the server, and create it if there is none, as a controller does."""
        servers, handle = self.provider.servers, self._handle("server")
        assert servers is not None
        found = await servers.find_server(handle)
        if found is not None:
            return found
        spec = CloudServerSpec(
            handle=handle, hostname="web", flavor=self.flavor, image=self.image, port=self._handle("port").name
        )
        return await servers.create_server(spec)

    def _handle(self, kind: str) -> Handle:
        suffix = ".0" if kind == "server" else ""
        return Handle(self.tenancy, f"{kind}-{self.seed}.faults{suffix}")


async def eventually(attempt: Callable[[], Awaitable[T]], until: Callable[[T], bool] = lambda _: True) -> T:
    """Repeat an attempt as long as it says that another one may help."""
    for _ in range(ATTEMPTS):
        try:
            found = await attempt()
            if until(found):
                return found
        except (Unavailable, AlreadyExists, InUse):
            pass
        await asyncio.sleep(PAUSE_S)
    raise AssertionError("no attempt succeeded")


async def removed(find: Callable[[Any], Awaitable[Any]], remove: Callable[[Any], Awaitable[None]], name: Any) -> None:
    async def attempt() -> bool:
        if await find(name) is None:
            return True
        await remove(name)
        return False

    await eventually(attempt, until=bool)


def counts(given: Cloud, tenancy: str) -> dict[str, int]:
    """Return what the cloud has of a tenancy, as its administrator sees it."""
    admin = Session.admin(given.plane.configuration)
    query = f"name={project_name(tenancy)}&domain_id={given.settings.manager.domain}"
    projects = [each["id"] for each in admin.get("keystone", f"/projects?{query}")["projects"]]
    users = admin.get("keystone", f"/users?{query}")["users"]
    found = {"projects": len(projects), "users": len(users)}
    for service, path, key in (
        ("nova", "/servers/detail?all_tenants=1", "servers"),
        ("neutron", "/v2.0/networks", "networks"),
        ("neutron", "/v2.0/routers", "routers"),
        ("neutron", "/v2.0/ports", "ports"),
        ("neutron", "/v2.0/floatingips", "floatingips"),
    ):
        items = admin.get(service, path)[key]
        own = [each for each in items if each.get("project_id", each.get("tenant_id")) in projects]
        found[key] = len([each for each in own if not each.get("device_owner", "").startswith("network:")])
    return found


ONE = dict.fromkeys(("projects", "users", "servers", "networks", "routers", "ports", "floatingips"), 1)
NONE = dict.fromkeys(ONE, 0)


async def run_seed(given: Cloud, seed: int) -> None:
    async with faulty(seed) as proxy:
        opened = open_cloud(
            replace(given.settings, address=given.behind(proxy.url)),
            MemoryCredentials(),
            clock=SystemClock(),
            randomness=SystemRandomness(),
        )
        try:
            provider = through_calls(opened.provider, SystemClock(), SystemRandomness(), CALLS)
            desired = Desired(provider, seed, given.flavor, given.image)
            await desired.create()
            assert await asyncio.to_thread(counts, given, desired.tenancy) == ONE, proxy.faults
            await desired.remove()
            assert await asyncio.to_thread(counts, given, desired.tenancy) == NONE, proxy.faults
            assert sum(proxy.faults.values()) > proxy.faults["none"], "the cloud was faulty"
        finally:
            await opened.close()


def test_m23_each_server_is_created_once_on_a_cloud_that_fails(cloud: Cloud) -> None:
    async def run_all() -> None:
        slots = asyncio.Semaphore(AT_ONCE)

        async def run(seed: int) -> None:
            async with slots:
                await run_seed(cloud, seed)

        results = await asyncio.gather(*map(run, SEEDS), return_exceptions=True)
        failed = {seed: result for seed, result in zip(SEEDS, results, strict=True) if result is not None}
        assert not failed, failed

    asyncio.run(run_all())
