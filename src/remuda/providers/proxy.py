"""Ports, servers, their consoles and snapshots, through a provider's calls.

A provider whose every call goes through one `providers.calls.Calls`.

**Keys.** A call is about what it names: its handle's name, a tenancy's, or an image's (`image_key`). A server and its
port have keys of their own: neither order of two calls about them does harm, since a provider refuses to remove a port
with a server behind it and to put two servers behind one port.

**Reads** are safe calls. So is each part of a listing, but only the first may be asked for again: an iterator that has
failed is at its end, and to go on with it would make what is missing look absent.

**Errors** pass unchanged. Events are no call: one listens to them for ever, and they go past.

Listings, part by part: each part is a call of its own, so none holds a slot while its reader thinks.

Load balancers, through a provider's calls.

What a provider offers, through its calls.

Tenancies, networks and security groups, through a provider's calls.

File storage, through a provider's calls.

A whole provider, through its calls.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from remuda.providers.calls import Calls
from remuda.providers.contract.catalogue import (
    Catalogue,
    ExternalNetwork,
    ExternalNetworks,
    Flavor,
    Image,
    Images,
    NewImage,
)
from remuda.providers.contract.common import Handle
from remuda.providers.contract.filestorage import FileStorage, FileStorages, FileStorageSpec, StorageClass
from remuda.providers.contract.loadbalancers import LoadBalancer, LoadBalancers, LoadBalancerSpec
from remuda.providers.contract.networks import (
    Network,
    Networks,
    NetworkSpec,
    SecurityGroup,
    SecurityGroups,
    Tenancies,
    Tenancy,
)
from remuda.providers.contract.provider import Provider
from remuda.providers.contract.servers import (
    Consoles,
    Port,
    Ports,
    PortSpec,
    Server,
    Servers,
    ServerSpec,
    Sighting,
    Snapshots,
)

ItemT = TypeVar("ItemT")

EVERYTHING = "everything"
"""The key of reads that are about nothing in particular."""


async def listed(
    calls: Calls, verb: str, begin: Callable[[], AsyncIterator[Sequence[ItemT]]]
) -> AsyncGenerator[Sequence[ItemT], None]:
    """Yield the parts of a listing. Raises as soon as one is missing; the next listing begins anew."""
    parts = begin()

    async def first() -> Sequence[ItemT] | None:
        nonlocal parts
        parts = begin()
        return await anext(parts, None)

    async def following() -> Sequence[ItemT] | None:
        return await anext(parts, None)

    try:
        part = await calls.call(EVERYTHING, verb, first, safe=True)
        while part is not None:
            yield part
            part = await calls.call(EVERYTHING, verb, following, safe=True, once=True)
    finally:
        await _close(parts)


async def _close(parts: AsyncIterator[Sequence[ItemT]]) -> None:
    if isinstance(parts, AsyncGenerator):
        with suppress(RuntimeError):  # a part that came too late is still on its way, and ends by itself
            await parts.aclose()


BALANCER_VERBS = ("converge_balancer", "find_balancer", "remove_balancer", "balancers")
"""What is asked about load balancers."""


class CalledLoadBalancers:
    """Load balancers."""

    def __init__(self, balancers: LoadBalancers, calls: Calls) -> None:
        self._balancers, self._calls = balancers, calls

    async def converge_balancer(self, wanted: LoadBalancerSpec) -> LoadBalancer:
        """Make a load balancer, or bring it up to date."""
        return await self._calls.call(
            wanted.handle.name, "converge_balancer", lambda: self._balancers.converge_balancer(wanted)
        )

    async def find_balancer(self, handle: Handle) -> LoadBalancer | None:
        return await self._calls.call(
            handle.name, "find_balancer", lambda: self._balancers.find_balancer(handle), safe=True
        )

    async def remove_balancer(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "remove_balancer", lambda: self._balancers.remove_balancer(handle))

    def balancers(self) -> AsyncIterator[Sequence[LoadBalancer]]:
        return listed(self._calls, "balancers", self._balancers.balancers)


CATALOGUE_VERBS = ("flavors",)
"""What a catalogue is asked."""
EXTERNAL_NETWORK_VERBS = ("external_networks",)
"""What is asked about ways out."""
IMAGE_VERBS = ("images", "find_image", "create_image", "remove_image")
"""What is asked about images."""
UPLOAD_S = 3600.0
"""How long the content of an image may take to arrive: it is far longer than any other call."""


def image_key(image: str) -> str:
    """Return the key of calls about an image."""
    return f"image-{image}"


class CalledCatalogue:
    """Flavors."""

    def __init__(self, catalogue: Catalogue, calls: Calls) -> None:
        self._catalogue, self._calls = catalogue, calls

    async def flavors(self) -> Sequence[Flavor]:
        """Return what is offered now."""
        return await self._calls.call(EVERYTHING, "flavors", self._catalogue.flavors, safe=True)


class CalledExternalNetworks:
    """Ways out."""

    def __init__(self, networks: ExternalNetworks, calls: Calls) -> None:
        self._networks, self._calls = networks, calls

    async def external_networks(self) -> Sequence[ExternalNetwork]:
        """Return what is offered now."""
        return await self._calls.call(EVERYTHING, "external_networks", self._networks.external_networks, safe=True)


class CalledImages:
    """Images."""

    def __init__(self, images: Images, calls: Calls) -> None:
        self._images, self._calls = images, calls

    async def images(self) -> Sequence[Image]:
        return await self._calls.call(EVERYTHING, "images", self._images.images, safe=True)

    async def find_image(self, image: str) -> Image | None:
        return await self._calls.call(image_key(image), "find_image", lambda: self._images.find_image(image), safe=True)

    async def create_image(self, wanted: NewImage, content: AsyncIterator[bytes]) -> Image:
        return await self._calls.call(
            image_key(wanted.id),
            "create_image",
            lambda: self._images.create_image(wanted, content),
            deadline_s=UPLOAD_S,
        )

    async def remove_image(self, image: str) -> None:
        await self._calls.call(image_key(image), "remove_image", lambda: self._images.remove_image(image))


TENANCY_VERBS = ("converge_tenancy", "find_tenancy", "remove_tenancy", "tenancies")
"""What is asked about tenancies."""
NETWORK_VERBS = ("converge_network", "find_network", "remove_network", "networks")
"""What is asked about networks."""
GROUP_VERBS = ("converge_group", "find_group", "remove_group", "groups")
"""What is asked about security groups."""


class CalledTenancies:
    """Tenancies."""

    def __init__(self, tenancies: Tenancies, calls: Calls) -> None:
        self._tenancies, self._calls = tenancies, calls

    async def converge_tenancy(self, wanted: Tenancy) -> None:
        """Make a tenancy, or mend it."""
        await self._calls.call(wanted.name, "converge_tenancy", lambda: self._tenancies.converge_tenancy(wanted))

    async def find_tenancy(self, name: str) -> Tenancy | None:
        return await self._calls.call(name, "find_tenancy", lambda: self._tenancies.find_tenancy(name), safe=True)

    async def remove_tenancy(self, name: str) -> None:
        await self._calls.call(name, "remove_tenancy", lambda: self._tenancies.remove_tenancy(name))

    def tenancies(self) -> AsyncIterator[Sequence[Tenancy]]:
        return listed(self._calls, "tenancies", self._tenancies.tenancies)


class CalledNetworks:
    """Networks."""

    def __init__(self, networks: Networks, calls: Calls) -> None:
        self._networks, self._calls = networks, calls

    async def converge_network(self, wanted: NetworkSpec) -> Network:
        """Make a network, or bring it up to date."""
        return await self._calls.call(
            wanted.handle.name, "converge_network", lambda: self._networks.converge_network(wanted)
        )

    async def find_network(self, handle: Handle) -> Network | None:
        return await self._calls.call(
            handle.name, "find_network", lambda: self._networks.find_network(handle), safe=True
        )

    async def remove_network(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "remove_network", lambda: self._networks.remove_network(handle))

    def networks(self) -> AsyncIterator[Sequence[Network]]:
        return listed(self._calls, "networks", self._networks.networks)


class CalledSecurityGroups:
    """Security groups."""

    def __init__(self, groups: SecurityGroups, calls: Calls) -> None:
        self._groups, self._calls = groups, calls

    async def converge_group(self, wanted: SecurityGroup) -> SecurityGroup:
        """Make a group, or bring its rules up to date."""
        return await self._calls.call(wanted.handle.name, "converge_group", lambda: self._groups.converge_group(wanted))

    async def find_group(self, handle: Handle) -> SecurityGroup | None:
        return await self._calls.call(handle.name, "find_group", lambda: self._groups.find_group(handle), safe=True)

    async def remove_group(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "remove_group", lambda: self._groups.remove_group(handle))

    def groups(self) -> AsyncIterator[Sequence[SecurityGroup]]:
        return listed(self._calls, "groups", self._groups.groups)


PORT_VERBS = ("converge_port", "find_port", "remove_port", "ports")
"""What is asked about ports."""
SERVER_VERBS = (
    "create_server",
    "find_server",
    "remove_server",
    "start_server",
    "stop_server",
    "reboot_server",
    "rebuild_server",
    "sightings",
)
"""What is asked about servers."""
CONSOLE_VERBS = ("open_console", "console_output")
"""What is asked about consoles."""
SNAPSHOT_VERBS = ("snapshot_server",)
"""What is asked about snapshots."""


class CalledPorts:
    """Ports."""

    def __init__(self, ports: Ports, calls: Calls) -> None:
        self._ports, self._calls = ports, calls

    async def converge_port(self, wanted: PortSpec) -> Port:
        """Make a port, or bring it up to date."""
        return await self._calls.call(wanted.handle.name, "converge_port", lambda: self._ports.converge_port(wanted))

    async def find_port(self, handle: Handle) -> Port | None:
        return await self._calls.call(handle.name, "find_port", lambda: self._ports.find_port(handle), safe=True)

    async def remove_port(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "remove_port", lambda: self._ports.remove_port(handle))

    def ports(self) -> AsyncIterator[Sequence[Port]]:
        return listed(self._calls, "ports", self._ports.ports)


class CalledServers:
    """Servers."""

    def __init__(self, servers: Servers, calls: Calls) -> None:
        self._servers, self._calls = servers, calls

    async def create_server(self, wanted: ServerSpec) -> Server:
        return await self._calls.call(wanted.handle.name, "create_server", lambda: self._servers.create_server(wanted))

    async def find_server(self, handle: Handle) -> Server | None:
        return await self._calls.call(handle.name, "find_server", lambda: self._servers.find_server(handle), safe=True)

    async def remove_server(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "remove_server", lambda: self._servers.remove_server(handle))

    async def start_server(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "start_server", lambda: self._servers.start_server(handle))

    async def stop_server(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "stop_server", lambda: self._servers.stop_server(handle))

    async def reboot_server(self, handle: Handle, *, hard: bool) -> None:
        await self._calls.call(handle.name, "reboot_server", lambda: self._servers.reboot_server(handle, hard=hard))

    async def rebuild_server(self, handle: Handle, image: str, user_data: bytes | None = None) -> None:
        rebuild = self._servers.rebuild_server
        await self._calls.call(handle.name, "rebuild_server", lambda: rebuild(handle, image, user_data))

    def sightings(self) -> AsyncIterator[Sequence[Sighting]]:
        return listed(self._calls, "sightings", self._servers.sightings)


class CalledConsoles:
    """Consoles. To open one changes nothing about its server."""

    def __init__(self, consoles: Consoles, calls: Calls) -> None:
        self._consoles, self._calls = consoles, calls

    async def open_console(self, handle: Handle) -> str:
        """Return where a browser sees the screen."""
        return await self._calls.call(
            handle.name, "open_console", lambda: self._consoles.open_console(handle), safe=True
        )

    async def console_output(self, handle: Handle, *, lines: int | None = None) -> str:
        """Return what a server wrote to its console."""
        return await self._calls.call(
            handle.name, "console_output", lambda: self._consoles.console_output(handle, lines=lines), safe=True
        )


class CalledSnapshots:
    """Snapshots. Each is about the image that it makes, which alone can be made twice."""

    def __init__(self, snapshots: Snapshots, calls: Calls) -> None:
        self._snapshots, self._calls = snapshots, calls

    async def snapshot_server(self, handle: Handle, wanted: NewImage) -> Image:
        """Begin to make an image of a server."""
        return await self._calls.call(
            image_key(wanted.id), "snapshot_server", lambda: self._snapshots.snapshot_server(handle, wanted)
        )


STORAGE_VERBS = ("storage_classes", "converge_storage", "find_storage", "remove_storage", "storages")
"""What is asked about file storage."""


class CalledFileStorages:
    """File storage."""

    def __init__(self, storages: FileStorages, calls: Calls) -> None:
        self._storages, self._calls = storages, calls

    async def storage_classes(self) -> Sequence[StorageClass]:
        """Return what is offered now."""
        return await self._calls.call(EVERYTHING, "storage_classes", self._storages.storage_classes, safe=True)

    async def converge_storage(self, wanted: FileStorageSpec) -> FileStorage:
        """Make a storage, or bring it up to date."""
        return await self._calls.call(
            wanted.handle.name, "converge_storage", lambda: self._storages.converge_storage(wanted)
        )

    async def find_storage(self, handle: Handle) -> FileStorage | None:
        return await self._calls.call(
            handle.name, "find_storage", lambda: self._storages.find_storage(handle), safe=True
        )

    async def remove_storage(self, handle: Handle) -> None:
        """Remove a storage and all that is on it."""
        await self._calls.call(handle.name, "remove_storage", lambda: self._storages.remove_storage(handle))

    def storages(self) -> AsyncIterator[Sequence[FileStorage]]:
        return listed(self._calls, "storages", self._storages.storages)


CapabilityT = TypeVar("CapabilityT")
CalledT = TypeVar("CalledT")

VERBS: Mapping[str, tuple[str, ...]] = {
    "catalogue": CATALOGUE_VERBS,
    "external_networks": EXTERNAL_NETWORK_VERBS,
    "images": IMAGE_VERBS,
    "tenancies": TENANCY_VERBS,
    "networks": NETWORK_VERBS,
    "security_groups": GROUP_VERBS,
    "ports": PORT_VERBS,
    "servers": SERVER_VERBS,
    "consoles": CONSOLE_VERBS,
    "snapshots": SNAPSHOT_VERBS,
    "load_balancers": BALANCER_VERBS,
    "file_storages": STORAGE_VERBS,
    "events": (),
}
"""What each capability is asked, by its name in `Provider`."""


def verbs_of(provider: Provider) -> tuple[str, ...]:
    """Return all that a provider can be asked: what its `Calls` has to be declared with."""
    return tuple(verb for capability in provider.capabilities for verb in VERBS[capability])


def called(provider: Provider, calls: Calls) -> Provider:
    """Return a provider with the same capabilities, whose every call goes through `calls`."""
    return Provider(
        type=provider.type,
        lag_s=provider.lag_s,
        catalogue=CalledCatalogue(provider.catalogue, calls),
        external_networks=_through(calls, CalledExternalNetworks, provider.external_networks),
        images=_through(calls, CalledImages, provider.images),
        tenancies=_through(calls, CalledTenancies, provider.tenancies),
        networks=_through(calls, CalledNetworks, provider.networks),
        security_groups=_through(calls, CalledSecurityGroups, provider.security_groups),
        ports=_through(calls, CalledPorts, provider.ports),
        servers=_through(calls, CalledServers, provider.servers),
        consoles=_through(calls, CalledConsoles, provider.consoles),
        snapshots=_through(calls, CalledSnapshots, provider.snapshots),
        load_balancers=_through(calls, CalledLoadBalancers, provider.load_balancers),
        file_storages=_through(calls, CalledFileStorages, provider.file_storages),
        events=provider.events,
    )


def _through(
    calls: Calls, wrapper: Callable[[CapabilityT, Calls], CalledT], capability: CapabilityT | None
) -> CalledT | None:
    return None if capability is None else wrapper(capability, calls)
