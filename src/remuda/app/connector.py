"""Connector to the clouds of regions that platform administrators create, by the type of the region."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remuda.kernel.errors import Invalid
from remuda.kernel.text import nearest
from remuda.providers.simulated.catalogue import SimCatalogue
from remuda.region.kinds.regions import RegionSpec
from remuda.region.ports import AccountNames, CheckedRegion

if TYPE_CHECKING:
    from remuda.app.openstack import OpenStackRegions


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """Connector of a process; implements `RegionConnector`."""

    catalogues: Mapping[str, SimCatalogue]
    """Simulated clouds by name."""
    openstack: "Callable[[], Awaitable[OpenStackRegions]] | None" = None
    """Returns the connections to OpenStack clouds, which takes long the first time."""

    async def check(self, region: str, spec: RegionSpec, names: AccountNames) -> CheckedRegion:  # noqa: ARG002  as in the protocol
        if spec.provider == "openstack" and self.openstack is not None:
            return await (await self.openstack()).check(spec, names)
        assert spec.simulated is not None, "the section of the type is there"
        return _check_simulated(spec, spec.simulated.region, self.catalogues)

    async def release(self, region: str, spec: RegionSpec) -> None:  # noqa: ARG002  as in the protocol
        """Remove what the region itself has at its cloud; a simulated cloud has nothing of it."""
        if spec.provider == "openstack" and self.openstack is not None:
            await (await self.openstack()).release(spec)


def _check_simulated(spec: RegionSpec, name: str, catalogues: Mapping[str, SimCatalogue]) -> CheckedRegion:
    found = catalogues.get(name)
    if found is None:
        known = sorted(catalogues)
        close = nearest(name, known)
        there = ", ".join(known) or "none, since region.simulated is off"
        remedy = f"did you mean {close}?" if close else f"the catalogue has {there}"
        raise Invalid("spec.simulated.catalogue", f"has no cloud {name}", remedy=remedy.removesuffix("?"))
    return CheckedRegion(
        spec=spec, flavors=found.flavors, images=found.images, external_networks=found.external_networks
    )
