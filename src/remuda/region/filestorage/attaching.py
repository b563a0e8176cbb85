"""Which networks file storage can be attached to, and at which of their addresses.

It is reached at the first addresses of a network's storage range, as many as its class has in parallel. A load balancer
may have one of them, if it asked for it when that was not yet refused: then at those behind it. An attachment stays as
it was made: only networks that are new to a storage are judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from uuid import UUID

from remuda.access.checks import is_allowed_in_project
from remuda.access.principal import Principal
from remuda.kernel.errors import Invalid
from remuda.quota.ports import Place
from remuda.quota.reservation import is_provisioned
from remuda.region.filestorage.reading import parallelism_of
from remuda.region.kinds.addresses import Address, address_name
from remuda.region.kinds.filestorage import Attachment
from remuda.region.kinds.lifecycle import IpRange
from remuda.region.kinds.networks import Network
from remuda.region.kinds.storageclasses import FileStorageClass
from remuda.region.networks.address_plan import AddressRange
from remuda.region.permissions import permission
from remuda.resources.conventions import is_second, organization_of, project_of, region_of
from remuda.resources.crud import each_once, find, is_there
from remuda.store.contract import Store

_FIELD = "spec.attachments.networkIds"
_NONE_USABLE = "network storage range does not contain any usable addresses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attaching:
    """Attaches storage of one class, in one project and region, for somebody."""

    store: Store
    principal: Principal
    place: Place
    region: str
    storage_class: FileStorageClass | None
    """None if it has gone: then there is nothing to go by for a new attachment."""

    async def attach(self, networks: Sequence[str], before: Sequence[Attachment] = ()) -> tuple[Attachment, ...]:
        """Return attachments to these networks, each once, or raise Invalid."""
        kept = {each.network_id: each for each in before}
        return tuple([kept.get(each) or await self._new(each) for each in each_once(networks)])

    async def _new(self, name: str) -> Attachment:
        if self.storage_class is None:
            raise Invalid("spec.storageClassId", "storage class not found")
        network = await self._network(name)
        at_cloud = network.status.openstack
        if at_cloud is None:
            raise Invalid(_FIELD, "network requested is not a suitable network")
        if at_cloud.storage_range is None:
            raise Invalid(_FIELD, "network requested does not have a storage range configured")
        wanted = parallelism_of(self.storage_class)
        used = await self._free(network, _read_range(at_cloud.storage_range), wanted)
        return Attachment(
            network_id=name,
            segmentation_id=at_cloud.vlan_id,
            ip_range=IpRange(start_ip=str(used.first), end_ip=str(used.last)),
        )

    async def _free(self, network: Network, storage_range: AddressRange, wanted: int) -> AddressRange:
        """Return the first addresses in a row that nothing else holds: as many as wanted, or the most there are."""
        best: AddressRange | None = None
        first = storage_range.first
        for ip in storage_range:
            if await is_there(self.store, Address, address_name(network.name, ip)):
                first = ip + 1
            elif best is None or int(ip) - int(first) >= len(best):
                best = AddressRange(first, ip)
            if best is not None and len(best) == wanted:
                break
        if best is None:
            raise Invalid(_FIELD, _NONE_USABLE)
        return best

    async def _network(self, name: str) -> Network:
        if not _is_uuid(name):
            raise Invalid(_FIELD, "invalid network ID")
        network = await find(self.store, Network, name)
        if network is None or not is_second(network):
            raise Invalid(_FIELD, "network not found")
        where = Place(organization_of(network), project_of(network))
        if where != self.place:
            raise Invalid(_FIELD, self._elsewhere(where))
        if region_of(network) != self.region:
            raise Invalid(_FIELD, "has a network of another region", remedy="name networks of the storage's region")
        if network.is_marked or not is_provisioned(network):
            raise Invalid(_FIELD, "network not provisioned")
        return network

    def _elsewhere(self, where: Place) -> str:
        """Say what is wrong with a network of another project, which only those hear of who may read it."""
        right = permission("networks:v2", "read")
        if is_allowed_in_project(self.principal, right, where.organization, where.project):
            return "network not available in project"
        return "network not found"


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _read_range(found: IpRange) -> AddressRange:
    try:
        first, last = IPv4Address(found.start_ip), IPv4Address(found.end_ip)
    except AddressValueError:
        raise Invalid(_FIELD, "network storage range is not a valid IPv4 range") from None
    if last < first:
        raise Invalid(_FIELD, _NONE_USABLE)
    return AddressRange(first, last)
