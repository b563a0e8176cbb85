"""Regions and what their providers offer: the service that the API's routes call.

Every method takes the context of the call and checks the caller's permissions itself. Version 1 of the API names an
organization, in which the caller needs the permission; version 2 names none, and the permission in any organization is
enough. In both, `ProviderRegistry` decides which regions are visible to a caller.
"""

from dataclasses import dataclass, field
from functools import partial

from remuda.access.checks import require_in_organization, require_somewhere
from remuda.access.principal import Context
from remuda.kernel.memo import IdentityMemo
from remuda.providers.contract.catalogue import CloudFlavor
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.catalogue.rules import (
    read_detail,
    read_external_network,
    read_flavor,
    read_region,
    usable_flavors,
)
from remuda.region.catalogue.schema import ExternalNetworkRead, RegionDetailRead
from remuda.region.names import permission
from remuda.resources.schema import FlavorRead, RegionRead

_MAX_VIEWS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Regions, flavors and external networks."""

    providers: ProviderRegistry
    flavor_views: IdentityMemo[CloudFlavor, FlavorRead] = field(
        default_factory=lambda: IdentityMemo(partial(read_flavor, with_free=True), limit=_MAX_VIEWS)
    )
    """Views of flavors with their free capacity: each new instance lists the flavors of its region."""

    async def regions(self, context: Context, organization: str | None = None) -> list[RegionRead]:
        _allow(context, "regions", organization)
        found = await self.providers.visible_regions(context.principal)
        return [read_region(region, self.providers.capabilities(region)) for region in found]

    async def region(self, context: Context, region: str) -> RegionRead:
        _allow(context, "regions", None)
        found = await self.providers.visible_region(context.principal, region)
        return read_region(found, self.providers.capabilities(found))

    async def detail(self, context: Context, organization: str, region: str) -> RegionDetailRead:
        _allow(context, "regions/detail", organization)
        found = await self.providers.visible_region(context.principal, region)
        return read_detail(found, self.providers.capabilities(found))

    async def flavors(self, context: Context, region: str, *, fresh: bool = False) -> list[FlavorRead]:
        """Return the flavors that the caller can use, smallest first; with `fresh`, read from the provider now."""
        _allow(context, "flavors", None)
        cloud = await self.providers.get_visible(context.principal, region)
        found = await (cloud.uncached_flavors() if fresh else cloud.flavors())
        return [self.flavor_views(each) for each in usable_flavors(found, context.principal)]

    async def flavors_in(self, context: Context, organization: str, region: str) -> list[FlavorRead]:
        """Return the flavors of a region that the caller can use, the smallest first, without their free capacity."""
        _allow(context, "flavors", organization)
        cloud = await self.providers.get_visible(context.principal, region)
        found = usable_flavors(await cloud.flavors(), context.principal)
        return [read_flavor(each, with_free=False) for each in found]

    async def external_networks(
        self, context: Context, region: str, organization: str | None = None
    ) -> list[ExternalNetworkRead]:
        _allow(context, "externalnetworks", organization)
        cloud = await self.providers.get_visible(context.principal, region)
        found = sorted(await cloud.external_networks(), key=lambda network: (network.name, network.id))
        return [read_external_network(each) for each in found]


def _allow(context: Context, endpoint: str, organization: str | None) -> None:
    required = permission(endpoint, "read")
    if organization is None:
        require_somewhere(context.principal, required)
    else:
        require_in_organization(context.principal, required, organization)
