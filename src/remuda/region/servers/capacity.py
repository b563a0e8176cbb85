"""Capacity reservations for replacements, and checks that a flavor and an image fit together.

A server is not deleted before there is capacity for its replacement, and no capacity is reserved twice. The provider
reports the free capacity. What replacements need of it is known here: started ones are found by index, and those that
start just now, like servers that are being created, are kept in memory.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from remuda.kernel.errors import InsufficientCapacity, Invalid, NotFound
from remuda.providers.contract.catalogue import CloudFlavor, CloudImage
from remuda.providers.contract.common import Handle, NoCapacity
from remuda.region.catalogue.provider_registry import RegionProvider, require
from remuda.region.kinds.servers import Server, capacity_key
from remuda.resources.crud import find
from remuda.store.contract import Store

_GIB = 1 << 30
_VIRTUALIZATIONS = {"virtualized", "baremetal", "any", ""}


def find_flavor(flavors: Sequence[CloudFlavor], flavor: str) -> CloudFlavor | None:
    return next((each for each in flavors if each.id == flavor), None)


def check_fit(image: CloudImage | None, flavor: CloudFlavor | None, *, name: str, pinned_to: str) -> None:
    """Raise an error if an image is not usable, or not with this flavor; without a flavor, check the image only."""
    if image is None:
        raise NotFound("Image", name)
    if image.state != "ready":
        raise Invalid("spec.imageId", "image is not ready for use")
    if flavor is None:
        return
    if image.architecture != flavor.architecture:
        raise Invalid("spec.imageId", "image architecture is not compatible with the flavor")
    # A flavor without a disk boots from a volume, or has a disk of unknown size.
    if flavor.disk_bytes and flavor.disk_bytes < image.size_gib * _GIB:
        raise Invalid("spec.imageId", "flavor disk is too small for the image")
    _check_virtualization(image, flavor)
    if flavor.is_pinned_only and not pinned_to:
        raise Invalid("spec.infrastructureRef", "flavor requires infrastructureRef to be set")


def check_capacity(flavor: CloudFlavor | None) -> None:
    """Raise InsufficientCapacity if the provider reports no free capacity for a flavor."""
    if flavor is not None and flavor.free == 0:
        raise InsufficientCapacity(
            "flavorId",
            "has no free capacity in the region now, and nothing was changed",
            remedy="choose another flavor, or retry later",
        )


def _check_virtualization(image: CloudImage, flavor: CloudFlavor) -> None:
    if image.virtualization not in _VIRTUALIZATIONS:
        raise Invalid("spec.imageId", "image virtualization type is not recognized")
    runs_on = "baremetal" if flavor.is_baremetal else "virtualized"
    if image.virtualization not in {"any", "", runs_on}:
        raise Invalid("spec.imageId", "image virtualization is not compatible with the flavor")


@dataclass(frozen=True, slots=True)
class CapacityReservations:
    """Capacity reservations of this process, by region and flavor."""

    store: Store
    _reserved: dict[str, set[str]] = field(default_factory=dict)
    """Names of servers, by capacity key."""
    _creating: dict[str, set[str]] = field(default_factory=dict)
    """Names of servers that are being created, likewise."""

    async def reserve(self, server: Server, cloud: RegionProvider, old: Sequence[Handle]) -> bool:
        """Reserve capacity for a replacement, if it needs free capacity; return whether there is some."""
        is_another = server.status.flavor_id not in {"", server.spec.flavor_id}
        if is_another and await _exists_any(old, cloud) and not await self._probe_free(server, cloud):
            return False
        self._reserved.setdefault(capacity_key(server), set()).add(server.name)
        return True

    async def check_capacity(self, server: Server, cloud: RegionProvider) -> None:
        """Raise NoCapacity if a new server would use capacity that is reserved."""
        if self._reserved.get(capacity_key(server)) and not await self._probe_free(server, cloud):
            raise NoCapacity(f"the flavor {server.spec.flavor_id}")

    @contextmanager
    def creating(self, server: Server) -> Iterator[None]:
        """Count a server as being created, during the call to the provider."""
        creating = self._creating.setdefault(capacity_key(server), set())
        creating.add(server.name)
        try:
            yield
        finally:
            creating.discard(server.name)

    async def _probe_free(self, server: Server, cloud: RegionProvider) -> bool:
        """Return whether the free capacity exceeds the reservations of others.

        These are read before and after it: meanwhile one server may be created, and another reservation made.
        """
        key = capacity_key(server)
        waiting = await self._waiting(key)
        flavor = find_flavor(await cloud.uncached_flavors(), server.spec.flavor_id)
        waiting |= await self._waiting(key)
        waiting |= self._in_memory(key)
        return flavor is None or flavor.free is None or flavor.free > len(waiting - {server.name})

    async def _waiting(self, key: str) -> set[str]:
        for name in [*self._reserved.get(key, ())]:
            if not _is_waiting(await find(self.store, Server, name), key):
                self._reserved[key].discard(name)
        started = await self.store.list_names(Server, index=("awaited capacity", key))
        return {*started.items, *self._in_memory(key)}

    def _in_memory(self, key: str) -> set[str]:
        return self._reserved.get(key, set()) | self._creating.get(key, set())


def _is_waiting(server: Server | None, key: str) -> bool:
    """Return whether a server with a reservation still needs it."""
    if server is None or capacity_key(server) != key:
        return False
    return server.status.replacement.completed < server.spec.replacement


async def _exists_any(handles: Sequence[Handle], cloud: RegionProvider) -> bool:
    servers = require(cloud.provider.servers)
    return any([await servers.find_server(each) is not None for each in handles])
