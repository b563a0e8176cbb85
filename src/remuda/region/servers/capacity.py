"""Places for replacements: nothing goes before there is room for what comes, and no place is promised twice.

How many places are free is asked of the provider. Which of them are for replacements that have begun is for us to know:
these are found by the index `awaited place`, and one that begins in this moment is remembered until it has ended. So is
who is being made in this moment.

Whether a server can be made of this flavor and that image.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from remuda.kernel.errors import InsufficientCapacity, Invalid, NotFound
from remuda.providers.contract.catalogue import CloudFlavor, CloudImage
from remuda.providers.contract.common import Handle, NoCapacity
from remuda.region.catalogue.provider_registry import RegionProvider, need
from remuda.region.kinds.servers import ReplacementStatus, Server, capacity_key
from remuda.resources.crud import find
from remuda.store.contract import Store

_GIB = 1 << 30
_VIRTUALIZATIONS = {"virtualized", "baremetal", "any", ""}


def find_flavor(flavors: Sequence[CloudFlavor], flavor: str) -> CloudFlavor | None:
    """Return a flavor that is on offer."""
    return next((each for each in flavors if each.id == flavor), None)


def check_fit(image: CloudImage | None, flavor: CloudFlavor | None, *, name: str, pinned_to: str) -> None:
    """Refuse an image that cannot be used, or not with this flavor; without a flavor, only the image is looked at."""
    if image is None:
        raise NotFound("Image", name)
    if image.state != "ready":
        raise Invalid("spec.imageId", "image is not ready for use")
    if flavor is None:
        return
    if image.architecture != flavor.architecture:
        raise Invalid("spec.imageId", "image architecture is not compatible with the flavor")
    # A flavor without a disk boots from a volume, or has a disk of its own that nobody counts.
    if flavor.disk_bytes and flavor.disk_bytes < image.size_gib * _GIB:
        raise Invalid("spec.imageId", "flavor disk is too small for the image")
    _check_virtualization(image, flavor)
    if flavor.is_pinned_only and not pinned_to:
        raise Invalid("spec.infrastructureRef", "flavor requires infrastructureRef to be set")


def check_capacity(flavor: CloudFlavor | None) -> None:
    """Refuse a flavor of which no more fit, as far as the provider tells: whoever asks has something to lose."""
    if flavor is not None and flavor.free == 0:
        raise InsufficientCapacity(
            "flavorId",
            "has no free place in the region now, and nothing was changed",
            remedy="choose another flavor, or ask again later",
        )


def _check_virtualization(image: CloudImage, flavor: CloudFlavor) -> None:
    if image.virtualization not in _VIRTUALIZATIONS:
        raise Invalid("spec.imageId", "image virtualization type is not recognized")
    runs_on = "baremetal" if flavor.is_baremetal else "virtualized"
    if image.virtualization not in {"any", "", runs_on}:
        raise Invalid("spec.imageId", "image virtualization is not compatible with the flavor")


@dataclass(frozen=True, slots=True)
class CapacityReservations:
    """The places that this process has promised: make one for each."""

    store: Store
    _reserved: dict[str, set[str]] = field(default_factory=dict)
    """The names of servers, by the sort of place."""
    _creating: dict[str, set[str]] = field(default_factory=dict)
    """Those that are being made now, likewise."""

    async def reserve(self, server: Server, cloud: RegionProvider, old: Sequence[Handle]) -> bool:
        """Keep a place for what is wanted, beside what is there or instead of it; tell whether there is one.

        What is gone already has nothing to lose, and waits for a place as a new server does.
        """
        is_another = server.status.flavor_id not in {"", server.spec.flavor_id}
        if is_another and await _is_any_there(old, cloud) and not await self._is_free(server, cloud):
            return False
        self._reserved.setdefault(capacity_key(server), set()).add(server.name)
        return True

    async def check_capacity(self, server: Server, cloud: RegionProvider) -> None:
        """Raise NoCapacity if a new server would take a place that is promised. Seldom is anything asked for it."""
        if self._reserved.get(capacity_key(server)) and not await self._is_free(server, cloud):
            raise NoCapacity(f"the flavor {server.spec.flavor_id}")

    @contextmanager
    def creating(self, server: Server) -> Iterator[None]:
        """Note that a server is being made, while the provider is asked for it."""
        taking = self._creating.setdefault(capacity_key(server), set())
        taking.add(server.name)
        try:
            yield
        finally:
            taking.discard(server.name)

    async def _is_free(self, server: Server, cloud: RegionProvider) -> bool:
        """Tell whether more are free than others wait for.

        These are looked for before and after: meanwhile one may have taken its place, and another been promised one.
        """
        place = capacity_key(server)
        waiting = await self._waiting(place)
        flavor = find_flavor(await cloud.uncached_flavors(), server.spec.flavor_id)
        waiting |= await self._waiting(place)
        waiting |= self._remembered(place)
        return flavor is None or flavor.free is None or flavor.free > len(waiting - {server.name})

    async def _waiting(self, place: str) -> set[str]:
        for name in [*self._reserved.get(place, ())]:
            if not _awaits(await find(self.store, Server, name), place):
                self._reserved[place].discard(name)
        begun = await self.store.list_names(Server, index=("awaited place", place))
        return {*begun.items, *self._remembered(place)}

    def _remembered(self, place: str) -> set[str]:
        return self._reserved.get(place, set()) | self._creating.get(place, set())


def _awaits(server: Server | None, place: str) -> bool:
    """Tell whether a server that was promised a place has yet to take it."""
    if server is None or capacity_key(server) != place:
        return False
    return (server.status.replacement or ReplacementStatus()).done < server.spec.replacement


async def _is_any_there(handles: Sequence[Handle], cloud: RegionProvider) -> bool:
    servers = need(cloud.provider.servers)
    return any([await servers.find_server(each) is not None for each in handles])
