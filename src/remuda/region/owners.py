"""Owners: the organizations of region's objects and images, for the audit of requests that name them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from remuda.http.audit import FindOwner
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.images import ImageImport
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import Server
from remuda.region.recovery.rules import KIND_OF
from remuda.region.recovery.schema import RecoverableKind
from remuda.resources.owners import no_owner, organization_label, owner_by_label
from remuda.store.contract import Store
from remuda.store.objects import Resource

_KINDS: Mapping[str, type[Resource]] = {
    "filestorageID": FileStorage,
    "loadBalancerID": LoadBalancer,
    "networkID": Network,
    "securityGroupID": SecurityGroup,
    "serverID": Server,
    "sshCertificateAuthorityID": SSHCertificateAuthority,
}
"""Kinds of the objects that path parameters name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnersInRegion:
    """Owners of what is found otherwise than by a label of one kind."""

    store: Store
    providers: ProviderRegistry

    async def of_recoverable(self, named: Mapping[str, str]) -> str | None:
        kind = KIND_OF[cast("RecoverableKind", named["kind"])]
        return await organization_label(self.store, kind, named["id"])

    async def of_image(self, named: Mapping[str, str]) -> str | None:
        """Return the organization of an image, from its import or else from the cached list of the provider."""
        image = named["imageID"]
        importing = await organization_label(self.store, ImageImport, image)
        if importing is not None:
            return importing
        images = await (await self.providers.get(named["regionID"])).images()
        return next((each.organization or None for each in images if each.id == image), None)


def owners_in_region(store: Store, providers: ProviderRegistry) -> Mapping[str, FindOwner]:
    """Return a function for each path parameter of region that names an object; regions and orphans have no owner."""
    others = _OwnersInRegion(store=store, providers=providers)
    return {
        **{name: owner_by_label(store, kind, name) for name, kind in _KINDS.items()},
        "id": others.of_recoverable,
        "imageID": others.of_image,
        "orphanID": no_owner,
        "regionID": no_owner,
    }
