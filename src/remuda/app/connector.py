"""Connector to the clouds of regions that platform administrators create."""

from collections.abc import Mapping
from dataclasses import dataclass

from remuda.kernel.errors import Invalid
from remuda.kernel.text import nearest
from remuda.providers.simulated.catalogue import SimCatalogue
from remuda.region.kinds.regions import RegionSpec
from remuda.region.ports import AccountNames, CheckedRegion


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """Connector by the type of a region; implements `RegionConnector`."""

    catalogues: Mapping[str, SimCatalogue]
    """Simulated clouds by name."""

    async def check(self, region: str, spec: RegionSpec, names: AccountNames) -> CheckedRegion:  # noqa: ARG002
        assert spec.simulated is not None, "the section of the type is there"
        return _check_simulated(spec, spec.simulated.region, self.catalogues)

    async def release(self, region: str, spec: RegionSpec) -> None:
        """Do nothing: a simulated cloud has nothing of the region itself."""


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
