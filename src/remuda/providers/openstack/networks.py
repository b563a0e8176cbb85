"""Networks at OpenStack: a network with one subnet and a router to the outside, all three of the same name.

With a physical network in the region, a network is the VLAN that region assigned; without, a network of the project.
"""

from collections.abc import AsyncIterator, Sequence
from ipaddress import IPv4Address, IPv4Network

import msgspec

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import Handle, InUse, Rejected
from remuda.providers.contract.networks import CloudAddressRange, CloudNetwork, CloudNetworkSpec, CloudRoute
from remuda.providers.openstack.catalogue import OpenStackExternalNetworks
from remuda.providers.openstack.client import CloudSession
from remuda.providers.openstack.errors import ApiError
from remuda.providers.openstack.tenancies import TenancyAccess, only

_CONFLICT = 409
_INFRASTRUCTURE = ("network:router", "network:dhcp", "network:ha_router", "network:distributed")
_NAME_PREFIX = "network-"


class _Network(msgspec.Struct, frozen=True):
    id: str
    name: str
    segmentation_id: int | None = msgspec.field(name="provider:segmentation_id", default=None)


class _Pool(msgspec.Struct, frozen=True):
    start: str
    end: str


class _Route(msgspec.Struct, frozen=True):
    destination: str
    nexthop: str


class _Subnet(msgspec.Struct, frozen=True):
    id: str
    name: str
    network_id: str
    cidr: str
    gateway_ip: str | None = None
    allocation_pools: tuple[_Pool, ...] = ()
    dns_nameservers: tuple[str, ...] = ()
    host_routes: tuple[_Route, ...] = ()


class _Router(msgspec.Struct, frozen=True):
    id: str
    name: str
    external_gateway_info: dict[str, msgspec.Raw] | None = None


class _Port(msgspec.Struct, frozen=True):
    id: str
    device_owner: str = ""
    device_id: str = ""


class OpenStackNetworks:
    """Capability of managing networks, with the permissions of the manager in the tenancy."""

    def __init__(
        self, access: TenancyAccess, external: OpenStackExternalNetworks, *, physical_network: str = ""
    ) -> None:
        self._access, self._external, self._physical = access, external, physical_network

    async def converge_network(self, desired: CloudNetworkSpec) -> CloudNetwork:
        _check(desired)
        handle = desired.handle
        project = await self._access.project(handle.tenancy)
        manager = self._access.manager_in(project)
        network = await self._find(manager, project, handle)
        if network is None:
            network = await self._create(manager, desired)
        subnet = await self._subnet(manager, network)
        if subnet is None:
            subnet = await self._create_subnet(manager, network, desired)
        found = _cloud_network(handle, network, subnet)
        _reject_other(found.spec, desired)
        if (found.spec.nameservers, found.spec.routes) != (desired.nameservers, desired.routes):
            await manager.put("network", f"/subnets/{subnet.id}", {"subnet": _changeable(desired)})
        await self._converge_router(manager, project, handle, subnet)
        return CloudNetwork(spec=desired, id=network.id, subnet_id=subnet.id)

    async def find_network(self, handle: Handle) -> CloudNetwork | None:
        try:
            project = await self._access.project(handle.tenancy)
        except NotFound:
            return None
        manager = self._access.manager_in(project)
        network = await self._find(manager, project, handle)
        subnet = None if network is None else await self._subnet(manager, network)
        return None if network is None or subnet is None else _cloud_network(handle, network, subnet)

    async def remove_network(self, handle: Handle) -> None:
        try:
            project = await self._access.project(handle.tenancy)
        except NotFound:
            return
        manager = self._access.manager_in(project)
        networks = await self._named(manager, project, handle)
        routers = await self._routers(manager, project, handle)
        try:
            for network in networks:
                await self._reject_ports(manager, network, handle)
            for router in routers:
                await self._remove_router(manager, router)
            for network in networks:  # its subnet goes with it
                await manager.delete("network", f"/networks/{network.id}")
        except ApiError as error:
            if error.http_status != _CONFLICT:
                raise
            raise InUse("network", handle.name) from None

    async def networks(self) -> AsyncIterator[Sequence[CloudNetwork]]:
        async for tenancy, project, manager in self._access.sessions():
            networks = await manager.all("network", "/networks", "networks", _Network, project_id=project)
            subnets = await manager.all("network", "/subnets", "subnets", _Subnet, project_id=project)
            by_network = {(each.network_id, each.name): each for each in subnets}
            yield [
                _cloud_network(Handle(tenancy, each.name), each, by_network[each.id, each.name])
                for each in networks
                if each.name.startswith(_NAME_PREFIX) and (each.id, each.name) in by_network
            ]

    async def _find(self, manager: CloudSession, project: str, handle: Handle) -> _Network | None:
        return only(await self._named(manager, project, handle), "network", handle.name, "network")

    @staticmethod
    async def _named(manager: CloudSession, project: str, handle: Handle) -> Sequence[_Network]:
        query = {"name": handle.name, "project_id": project}
        found = await manager.items("network", "/networks", "networks", _Network, **query)
        return [each for each in found if each.name == handle.name]

    @staticmethod
    async def _subnet(manager: CloudSession, network: _Network) -> _Subnet | None:
        query = {"name": network.name, "network_id": network.id}
        found = await manager.items("network", "/subnets", "subnets", _Subnet, **query)
        return only([each for each in found if each.name == network.name], "network", network.name, "subnet")

    @staticmethod
    async def _routers(manager: CloudSession, project: str, handle: Handle) -> Sequence[_Router]:
        query = {"name": handle.name, "project_id": project}
        found = await manager.items("network", "/routers", "routers", _Router, **query)
        return [each for each in found if each.name == handle.name]

    async def _create(self, manager: CloudSession, desired: CloudNetworkSpec) -> _Network:
        body: dict[str, object] = {"name": desired.handle.name, "description": "Managed by Remuda"}
        if desired.vlan is not None:
            body |= {
                "provider:network_type": "vlan",
                "provider:physical_network": self._physical,
                "provider:segmentation_id": desired.vlan,
            }
        try:
            created: _Network = await manager.post("network", "/networks", {"network": body}, "network", _Network)
        except ApiError as error:
            if error.http_status == _CONFLICT and desired.vlan is not None:
                raise InUse("VLAN", str(desired.vlan)) from None
            raise
        return msgspec.structs.replace(created, segmentation_id=desired.vlan)

    @staticmethod
    async def _create_subnet(manager: CloudSession, network: _Network, desired: CloudNetworkSpec) -> _Subnet:
        body = {
            "name": network.name,
            "network_id": network.id,
            "ip_version": 4,
            "cidr": desired.prefix,
            "gateway_ip": desired.gateway,
            "enable_dhcp": True,
            "allocation_pools": [{"start": desired.pool.first, "end": desired.pool.last}],
            **_changeable(desired),
        }
        created: _Subnet = await manager.post("network", "/subnets", {"subnet": body}, "subnet", _Subnet)
        return created

    async def _converge_router(self, manager: CloudSession, project: str, handle: Handle, subnet: _Subnet) -> None:
        router = only(await self._routers(manager, project, handle), "network", handle.name, "router")
        if router is None:
            external = await self._external.first()
            gateway = {} if external is None else {"external_gateway_info": {"network_id": external.id}}
            body = {"name": handle.name, "description": "Managed by Remuda", **gateway}
            router = await manager.post("network", "/routers", {"router": body}, "router", _Router)
        query = {"device_id": router.id, "network_id": subnet.network_id}
        if not await manager.items("network", "/ports", "ports", _Port, **query):
            await manager.put("network", f"/routers/{router.id}/add_router_interface", {"subnet_id": subnet.id})

    @staticmethod
    async def _remove_router(manager: CloudSession, router: _Router) -> None:
        for port in await manager.items("network", "/ports", "ports", _Port, device_id=router.id):
            if port.device_owner == "network:router_interface":
                path = f"/routers/{router.id}/remove_router_interface"
                await manager.put("network", path, {"port_id": port.id})
        await manager.delete("network", f"/routers/{router.id}")

    @staticmethod
    async def _reject_ports(manager: CloudSession, network: _Network, handle: Handle) -> None:
        ports = await manager.items("network", "/ports", "ports", _Port, network_id=network.id)
        if [each for each in ports if not each.device_owner.startswith(_INFRASTRUCTURE)]:
            raise InUse("network", handle.name)


def _check(desired: CloudNetworkSpec) -> None:
    """Raise Rejected for a network that Neutron would change or reject only half-way."""
    try:
        prefix = IPv4Network(desired.prefix)
        gateway, first, last = map(IPv4Address, (desired.gateway, desired.pool.first, desired.pool.last))
    except ValueError as error:
        raise Rejected(str(error)) from None
    if "/" not in desired.prefix:
        raise Rejected(f"{desired.prefix} has no length, such as /24")
    if not (gateway in prefix and first in prefix and last in prefix and first <= last):
        raise Rejected(f"the gateway and the pool of {desired.handle.name} are not inside {desired.prefix}")


def _changeable(desired: CloudNetworkSpec) -> dict[str, object]:
    """Return the part of a subnet that can change, also to nothing."""
    return {
        "dns_nameservers": list(desired.nameservers),
        "host_routes": [{"destination": each.prefix, "nexthop": each.next_hop} for each in desired.routes],
    }


def _cloud_network(handle: Handle, network: _Network, subnet: _Subnet) -> CloudNetwork:
    pool = subnet.allocation_pools[0] if subnet.allocation_pools else _Pool("", "")
    spec = CloudNetworkSpec(
        handle=handle,
        prefix=subnet.cidr,
        gateway=subnet.gateway_ip or "",
        pool=CloudAddressRange(pool.start, pool.end),
        nameservers=subnet.dns_nameservers,
        routes=tuple(CloudRoute(each.destination, each.nexthop) for each in subnet.host_routes),
        vlan=network.segmentation_id,
    )
    return CloudNetwork(spec=spec, id=network.id, subnet_id=subnet.id)


def _reject_other(found: CloudNetworkSpec, desired: CloudNetworkSpec) -> None:
    for name in ("prefix", "gateway", "pool"):
        if getattr(found, name) != getattr(desired, name):
            raise Rejected(f"the {name} of the network {desired.handle.name} cannot change")
    if found.vlan is not None and desired.vlan is not None and found.vlan != desired.vlan:
        raise Rejected(f"the VLAN of the network {desired.handle.name} cannot change")
