"""What a scenario of the conformance suite has at hand: a provider, and how to wait for it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from remuda.kernel.clock import Clock
from remuda.providers.contract.catalogue import CloudImage, CloudImageSpec, CloudOperatingSystem
from remuda.providers.contract.common import Handle, network_name, port_name, server_name, tenancy_name
from remuda.providers.contract.networks import CloudAddressRange, CloudNetwork, CloudNetworkSpec, Tenancy
from remuda.providers.contract.provider import Provider
from remuda.providers.contract.servers import CloudPort, CloudPortSpec, CloudServer, CloudServerSpec

T = TypeVar("T")

TENANCY = tenancy_name("a0000000-0000-4000-8000-000000000001", "uid-1")
NETWORK = Handle(TENANCY, network_name("b0000000-0000-4000-8000-000000000001", "uid-2"))
_ATTEMPTS = 2000
DISK = bytes(446) + b"\x80\0\x02\0\x83\0\0\0\1\0\0\0\1\0\0\0" + bytes(48) + b"\x55\xaa"
"""A disk with a master boot record and one partition: a provider may look into what it is given."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A provider under test, and what of its catalogue a server can be made of."""

    provider: Provider
    clock: Clock
    flavor: str
    image: str
    other_image: str
    pause_s: float = 0.005
    """Time between two looks; longer for a provider that is slow."""

    async def until(self, look: Callable[[], Awaitable[T | None]]) -> T:
        """Return what a look returns as soon as there is something."""
        for _ in range(_ATTEMPTS):
            found = await look()
            if found:
                return found
            await self.clock.sleep(self.pause_s)
        raise AssertionError("it did not come")

    async def tenancy(self, name: str = TENANCY, *, public_key: str = "") -> str:
        assert self.provider.tenancies is not None
        wanted = Tenancy(name=name, organization="the-organization", project="the-project", public_key=public_key)
        await self.provider.tenancies.converge_tenancy(wanted)
        return name

    async def network(self, handle: Handle = NETWORK) -> CloudNetwork:
        assert self.provider.networks is not None
        await self.tenancy(handle.tenancy)
        return await self.provider.networks.converge_network(network_spec(handle))

    async def port(self, number: int = 1, *, is_public: bool = False) -> CloudPort:
        assert self.provider.ports is not None
        await self.network()
        return await self.provider.ports.converge_port(port_spec(number, is_public=is_public))

    async def server(self, number: int = 1) -> CloudServer:
        """Make a server behind its port, and wait until it runs."""
        assert self.provider.servers is not None
        await self.port(number)
        await self.provider.servers.create_server(self.server_spec(number))
        return await self.in_state(handle_of_server(number), "running")

    def server_spec(self, number: int = 1, *, replacement: int = 0) -> CloudServerSpec:
        return CloudServerSpec(
            handle=handle_of_server(number, replacement),
            hostname=f"web-{number}",
            flavor=self.flavor,
            image=self.image,
            port=handle_of_port(number).name,
            labels={"organization": "the-organization"},
        )

    async def in_state(self, handle: Handle, *states: str) -> CloudServer:
        servers = self.provider.servers
        assert servers is not None

        async def look() -> CloudServer | None:
            found = await servers.find_server(handle)
            return found if found is not None and found.state in states else None

        return await self.until(look)

    async def gone(self, handle: Handle) -> None:
        servers = self.provider.servers
        assert servers is not None

        async def look() -> bool:
            return await servers.find_server(handle) is None

        await self.until(look)

    async def image_in_state(self, image: str, state: str) -> CloudImage:
        images = self.provider.images
        assert images is not None

        async def look() -> CloudImage | None:
            found = await images.find_image(image)
            return found if found is not None and found.state == state else None

        return await self.until(look)


def network_spec(handle: Handle = NETWORK) -> CloudNetworkSpec:
    return CloudNetworkSpec(
        handle=handle,
        prefix="10.1.0.0/24",
        gateway="10.1.0.1",
        pool=CloudAddressRange("10.1.0.16", "10.1.0.254"),
        nameservers=("1.1.1.1",),
    )


def port_spec(
    number: int = 1, *, address: str = "", is_public: bool = False, network: Handle = NETWORK
) -> CloudPortSpec:
    return CloudPortSpec(
        handle=handle_of_port(number, network.tenancy),
        network=network.name,
        address=address or f"10.1.0.{20 + number}",
        mac=f"02:00:0a:01:{(20 + number) >> 8:02x}:{(20 + number) & 255:02x}",
        is_public=is_public,
    )


def handle_of_port(number: int = 1, tenancy: str = TENANCY) -> Handle:
    return Handle(tenancy, port_name(_server_id(number), "uid-3"))


def handle_of_server(number: int = 1, replacement: int = 0) -> Handle:
    return Handle(TENANCY, server_name(_server_id(number), "uid-3", replacement))


def new_image(number: int = 1) -> CloudImageSpec:
    return CloudImageSpec(
        id=f"d0000000-0000-4000-8000-{number:012d}",
        name=f"image-{number}",
        architecture="x86_64",
        virtualization="any",
        os=CloudOperatingSystem(family="debian", distro="ubuntu", version="24.04"),
        software_versions={"kubernetes": "v1.31.0"},
        tags={"team": "blue"},
        organization="the-organization",
    )


async def content(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def everything(parts: AsyncIterator[Sequence[T]]) -> list[T]:
    return [each async for part in parts for each in part]


def _server_id(number: int) -> str:
    return f"c0000000-0000-4000-8000-{number:012d}"
