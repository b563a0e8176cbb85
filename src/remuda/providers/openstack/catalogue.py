"""Catalogue of a region of OpenStack: flavors and external networks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid5

import msgspec

from remuda.providers.contract.catalogue import CloudExternalNetwork, CloudFlavor, CloudGpu
from remuda.providers.contract.common import Architecture
from remuda.providers.openstack.tenancies import TenancyAccess

FLAVORS = UUID("5b6f7c1e-8a2c-4b7e-9a53-2f4d1f7c9a10")
"""Namespace of the ids of flavors whose id at the cloud is no UUID."""

_MIB, _GIB = 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorOverride:
    """Properties of a flavor that the cloud does not report, or reports wrongly."""

    cpus: int | None = None
    cpu_family: str = ""
    architecture: Architecture | None = None
    memory_bytes: int | None = None
    gpu: CloudGpu | None = None
    is_baremetal: bool = False
    is_pinned_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorSelection:
    """Flavors that a region offers, and what is known of them besides. Ids are those of the cloud."""

    ids: frozenset[str] = frozenset()
    """Without ids, all public flavors are offered."""
    overrides: Mapping[str, FlavorOverride] = field(default_factory=dict)


class NovaFlavor(msgspec.Struct, frozen=True):
    """A flavor as Nova describes it."""

    id: str
    name: str
    vcpus: int
    ram: int
    disk: int
    extra_specs: dict[str, str] = {}


def flavor_id(cloud_id: str) -> str:
    """Return our id of a flavor: its own if it is a UUID, otherwise one that is derived from it."""
    try:
        return str(UUID(cloud_id))
    except ValueError:
        return str(uuid5(FLAVORS, cloud_id))


class OpenStackFlavors:
    """Capability of offering flavors."""

    def __init__(self, access: TenancyAccess, selection: FlavorSelection) -> None:
        self._access, self._selection = access, selection
        self._by_id: Mapping[str, NovaFlavor] = {}
        self._by_name: Mapping[str, NovaFlavor] = {}

    async def flavors(self) -> Sequence[CloudFlavor]:
        return [_cloud_flavor(each, self._selection) for each in await self._read()]

    async def find(self, our_id: str) -> NovaFlavor | None:
        """Return a flavor by our id; one that was just created is found too."""
        if our_id not in self._by_id:
            await self._read()
        return self._by_id.get(our_id)

    async def id_of_name(self, name: str) -> str:
        """Return our id of the flavor that a server names, or an empty string if it is no longer offered."""
        if name not in self._by_name:
            await self._read()
        found = self._by_name.get(name)
        return "" if found is None else flavor_id(found.id)

    async def _read(self) -> Sequence[NovaFlavor]:
        session = await self._access.own()
        found = await session.all("compute", "/flavors/detail", "flavors", NovaFlavor, is_public=True)
        offered = [each for each in found if not self._selection.ids or each.id in self._selection.ids]
        self._by_id = {flavor_id(each.id): each for each in offered}
        self._by_name = {each.name: each for each in found}
        return offered


def _cloud_flavor(record: NovaFlavor, selection: FlavorSelection) -> CloudFlavor:
    override = selection.overrides.get(record.id, FlavorOverride())
    memory = override.memory_bytes if override.memory_bytes is not None else record.ram * _MIB
    return CloudFlavor(
        id=flavor_id(record.id),
        name=record.name,
        cpus=override.cpus if override.cpus is not None else record.vcpus,
        memory_bytes=memory,
        disk_bytes=record.disk * _GIB,
        architecture=override.architecture or "x86_64",
        cpu_family=override.cpu_family,
        is_baremetal=override.is_baremetal,
        is_pinned_only=override.is_pinned_only,
        gpu=override.gpu,
    )


class _Network(msgspec.Struct, frozen=True):
    id: str
    name: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenStackExternalNetworks:
    """Capability of offering external networks: any of the ids, with all of the tags."""

    access: TenancyAccess
    ids: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    async def external_networks(self) -> Sequence[CloudExternalNetwork]:
        query: dict[str, object] = {"router:external": True, "sort_key": "name", "sort_dir": "asc"}
        session = await self.access.own()
        found = await session.all("network", "/networks", "networks", _Network, **query)
        return [
            CloudExternalNetwork(id=each.id, name=each.name)
            for each in found
            if (not self.ids or each.id in self.ids) and self.tags <= set(each.tags)
        ]

    async def first(self) -> CloudExternalNetwork | None:
        """Return the network of routers and public addresses."""
        return next(iter(await self.external_networks()), None)
