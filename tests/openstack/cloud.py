"""A region on the plane, and what scenarios leave there."""

import asyncio
from dataclasses import dataclass, field

from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.secrets import Secret
from remuda.providers.circuit_breaker import CallSettings
from remuda.providers.contract.common import Handle
from remuda.providers.contract.provider import Provider
from remuda.providers.openstack.client import CloudAddress
from remuda.providers.openstack.logins import ApplicationCredential
from remuda.providers.openstack.provider import OpenStackSettings, open_cloud
from remuda.providers.openstack.tenancies import Manager
from tests.kit.providers.candidates import Scenario, through_calls
from tests.kit.providers.conformance import Bench, everything
from tests.openstack.plane.api import Session
from tests.openstack.plane.configuration import PASSWORD, REGION
from tests.openstack.plane.plane import Plane
from tests.openstack.regions import Domain

PAUSE_S = 0.3
PATIENT = CallSettings(deadline_s=300.0, unresponsive_after_s=300.0)
"""Calls as a process has them, on a machine that may be busy with something else."""


@dataclass(slots=True)
class MemoryCredentials:
    """Credentials of one run."""

    kept: dict[str, ApplicationCredential] = field(default_factory=dict)

    async def find(self, tenancy: str) -> ApplicationCredential | None:
        return self.kept.get(tenancy)

    async def put(self, tenancy: str, credential: ApplicationCredential) -> None:
        self.kept[tenancy] = credential

    async def remove(self, tenancy: str) -> None:
        self.kept.pop(tenancy, None)


@dataclass(frozen=True)
class Cloud:
    """A region on the plane."""

    plane: Plane
    settings: OpenStackSettings
    flavor: str
    image: str
    other_image: str

    def behind(self, proxy: str) -> CloudAddress:
        """Return its address through a proxy at this URL."""
        port = self.plane.configuration.ports["keystone"]
        return CloudAddress(auth_url=f"{proxy}/{port}/v3", region=REGION)

    def run(self, scenario: Scenario) -> None:
        asyncio.run(self._run(scenario))

    async def _run(self, scenario: Scenario) -> None:
        clock, randomness = SystemClock(), SystemRandomness()
        cloud = open_cloud(self.settings, MemoryCredentials(), clock=clock, randomness=randomness)
        bench = Bench(
            provider=through_calls(cloud.provider, clock, randomness, PATIENT),
            clock=clock,
            flavor=self.flavor,
            image=self.image,
            other_image=self.other_image,
            pause_s=PAUSE_S,
        )
        try:
            try:
                await scenario(bench)
            finally:
                await remove_everything(bench)
        finally:
            await cloud.close()


async def remove_everything(bench: Bench) -> None:
    """Remove what a scenario left, by the provider's own calls, the dependents first."""
    provider: Provider = bench.provider
    assert provider.servers is not None
    for version in await everything(provider.servers.server_versions()):
        await provider.servers.remove_server(version.handle)
    for version in await everything(provider.servers.server_versions()):
        await bench.gone(version.handle)
    await remove_balancers(bench)
    assert provider.ports is not None
    for port in await everything(provider.ports.ports()):
        await provider.ports.remove_port(port.spec.handle)
    assert provider.security_groups is not None
    for group in await everything(provider.security_groups.groups()):
        await provider.security_groups.remove_group(group.handle)
    assert provider.networks is not None
    for network in await everything(provider.networks.networks()):
        await provider.networks.remove_network(network.spec.handle)
    assert provider.tenancies is not None
    for tenancy in await everything(provider.tenancies.tenancies()):
        await provider.tenancies.remove_tenancy(tenancy.name)
    assert provider.images is not None
    for image in await provider.images.images():
        if image.organization or image.name.startswith("our-"):
            await provider.images.remove_image(image.id)


async def remove_balancers(bench: Bench) -> None:
    """Remove load balancers, which takes several calls for each."""
    balancers = bench.provider.load_balancers
    assert balancers is not None
    for handle in await everything(balancers.balancers()):

        async def removed(handle: Handle = handle) -> bool:
            await balancers.remove_balancer(handle)
            return await balancers.find_balancer(handle) is None

        await bench.until(removed)


def described(domain: Domain) -> Cloud:
    plane = domain.plane
    admin = Session.admin(plane.configuration)
    flavors = {each["name"]: each["id"] for each in admin.get("nova", "/flavors")["flavors"]}
    images = {each["name"]: each["id"] for each in admin.get("glance", "/v2/images?visibility=public")["images"]}
    settings = OpenStackSettings(
        address=CloudAddress(auth_url=plane.configuration.auth_url, region=REGION),
        manager=Manager(domain.user, domain.id, Secret(PASSWORD)),
        physical_network="physnet1",
    )
    return Cloud(plane, settings, flavors["m1.small"], images["debian-12"], images["ubuntu-24.04"])
