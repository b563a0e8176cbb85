"""Ports at OpenStack: our address and MAC address, security groups, allowed sources and a floating address."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.providers.contract.common import Handle, InUse, NoCapacity, Rejected
from remuda.providers.contract.servers import CloudPort, CloudPortSpec
from remuda.providers.openstack.catalogue import OpenStackExternalNetworks
from remuda.providers.openstack.client import CloudSession
from remuda.providers.openstack.errors import ApiError
from remuda.providers.openstack.security_groups import OpenStackSecurityGroups
from remuda.providers.openstack.tenancies import TenancyAccess, only

_NOT_FOUND, _CONFLICT = 404, 409
_NAME_PREFIX = "port-"
_TAKEN = frozenset({"IpAddressAlreadyAllocated", "IpAddressInUse", "MacAddressInUse"})
_EXHAUSTED = frozenset({"IpAddressGenerationFailure", "ExternalIpAddressExhausted"})


class _Named(msgspec.Struct, frozen=True):
    id: str
    name: str


class _FixedAddress(msgspec.Struct, frozen=True):
    ip_address: str
    subnet_id: str = ""


class _AddressPair(msgspec.Struct, frozen=True):
    ip_address: str


class NeutronPort(msgspec.Struct, frozen=True):
    """A port as Neutron describes it."""

    id: str
    name: str
    network_id: str
    mac_address: str
    fixed_ips: tuple[_FixedAddress, ...] = ()
    security_groups: tuple[str, ...] = ()
    allowed_address_pairs: tuple[_AddressPair, ...] = ()
    device_id: str = ""


class _FloatingAddress(msgspec.Struct, frozen=True):
    id: str
    floating_ip_address: str
    port_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of what ports of a tenancy refer to, by id."""

    networks: Mapping[str, str]
    groups: Mapping[str, str]
    servers: Mapping[str, str]
    addresses: Mapping[str, str]
    """Floating addresses by the ids of their ports."""


@dataclass(frozen=True, slots=True)
class OpenStackPorts:
    """Capability of managing ports, with the permissions of the tenancy's own user."""

    access: TenancyAccess
    groups: OpenStackSecurityGroups
    external: OpenStackExternalNetworks

    async def converge_port(self, desired: CloudPortSpec) -> CloudPort:
        handle = desired.handle
        project = await self.access.project(handle.tenancy)
        member = await self.access.member(handle.tenancy)
        port = await self.converge_record(member, project, desired)
        address = await self.converge_address(member, port, is_public=desired.is_public)
        return CloudPort(spec=desired, public_address=address, server=await self._server(member, port))

    async def find_port(self, handle: Handle) -> CloudPort | None:
        try:
            project = await self.access.project(handle.tenancy)
            member = await self.access.member(handle.tenancy)
        except NotFound:
            return None
        port = await self.record(member, project, handle)
        if port is None:
            return None
        return await self.describe(member, project, handle.tenancy, port)

    async def remove_port(self, handle: Handle) -> None:
        try:
            project = await self.access.project(handle.tenancy)
            member = await self.access.member(handle.tenancy)
        except NotFound:
            return
        port = await self.record(member, project, handle)
        if port is None:
            return
        if port.device_id:
            raise InUse("port", handle.name)
        await self.converge_address(member, port, is_public=False)
        try:
            await member.delete("network", f"/ports/{port.id}")
        except ApiError as error:
            if error.http_status != _CONFLICT:
                raise
            raise InUse("port", handle.name) from None

    async def ports(self) -> AsyncIterator[Sequence[CloudPort]]:
        async for tenancy, project, manager in self.access.sessions():
            ours = await self.named(manager, project, _NAME_PREFIX)
            names = await self._names(manager, project, ours)
            yield [_cloud_port(tenancy, each, names) for each in ours]

    async def named(self, session: CloudSession, project: str, prefix: str) -> Sequence[NeutronPort]:
        """Return all ports whose names begin with a prefix."""
        found = await session.all("network", "/ports", "ports", NeutronPort, project_id=project)
        return [each for each in found if each.name.startswith(prefix)]

    async def describe(self, session: CloudSession, project: str, tenancy: str, port: NeutronPort) -> CloudPort:
        return _cloud_port(tenancy, port, await self._names(session, project, [port]))

    async def converge_record(
        self, session: CloudSession, project: str, desired: CloudPortSpec, *, only_create: bool = False
    ) -> NeutronPort:
        """Create or update a port without its public address, or `only_create` it if others change it."""
        network = await self._network(session, project, desired.network)
        groups = list((await self.groups.ids(session, project, desired.groups)).values())
        port = await self.record(session, project, desired.handle)
        if port is None:
            return await self._create(session, network, desired, groups)
        _reject_other(port, network, desired)
        if not only_create:
            await self._update(session, port, desired, groups)
        return port

    async def record(self, session: CloudSession, project: str, handle: Handle) -> NeutronPort | None:
        """Return a port as Neutron describes it, or None."""
        query = {"name": handle.name, "project_id": project}
        found = await session.items("network", "/ports", "ports", NeutronPort, **query)
        return only([each for each in found if each.name == handle.name], "port", handle.name, "port")

    @staticmethod
    async def _network(session: CloudSession, project: str, name: str) -> str:
        query = {"name": name, "project_id": project, "fields": ["id", "name"]}
        found = await session.items("network", "/networks", "networks", _Named, **query)
        network = only([each for each in found if each.name == name], "network", name, "network")
        if network is None:
            raise NotFound("network", name)
        return network.id

    @staticmethod
    async def _create(
        session: CloudSession, network: str, desired: CloudPortSpec, groups: Sequence[str]
    ) -> NeutronPort:
        body = {
            "name": desired.handle.name,
            "network_id": network,
            "mac_address": desired.mac,
            "fixed_ips": [{"ip_address": desired.address}],
            **_changeable(desired, groups),
        }
        try:
            created: NeutronPort = await session.post("network", "/ports", {"port": body}, "port", NeutronPort)
        except ApiError as error:
            if error.http_status == _CONFLICT and error.kind in _TAKEN:
                raise AlreadyExists("address", desired.address) from None
            raise
        return created

    @staticmethod
    async def _update(session: CloudSession, port: NeutronPort, desired: CloudPortSpec, groups: Sequence[str]) -> None:
        present = (sorted(port.security_groups), sorted(each.ip_address for each in port.allowed_address_pairs))
        if present != (sorted(groups), sorted(desired.sources)):
            await session.put("network", f"/ports/{port.id}", {"port": _changeable(desired, groups)})

    async def converge_address(self, session: CloudSession, port: NeutronPort, *, is_public: bool) -> str:
        """Give a port a floating address, or remove it; return the address."""
        found = await session.items("network", "/floatingips", "floatingips", _FloatingAddress, port_id=port.id)
        address = only(found, "port", port.name, "floating address")
        if not is_public:
            if address is not None:
                await session.delete("network", f"/floatingips/{address.id}")
            return ""
        if address is None:
            address = await self._create_address(session, port)
        return address.floating_ip_address

    async def _create_address(self, session: CloudSession, port: NeutronPort) -> _FloatingAddress:
        external = await self.external.first()
        if external is None:
            raise NoCapacity("public addresses: the region offers no external network")
        body = {"floating_network_id": external.id, "port_id": port.id, "description": port.name}
        try:
            created: _FloatingAddress = await session.post(
                "network", "/floatingips", {"floatingip": body}, "floatingip", _FloatingAddress
            )
        except ApiError as error:
            if error.kind == "FloatingIPPortAlreadyAssociated":  # by a request that was thought lost
                raise ConnectionError(error.reason) from None
            if error.kind in _EXHAUSTED:
                raise NoCapacity("public addresses") from None
            raise
        return created

    @staticmethod
    async def _server(session: CloudSession, port: NeutronPort) -> str:
        if not port.device_id:
            return ""
        try:
            return (await session.get("compute", f"/servers/{port.device_id}", "server", _Named)).name
        except ApiError as error:
            if error.http_status != _NOT_FOUND:
                raise
            return ""  # it was removed meanwhile

    async def _names(self, session: CloudSession, project: str, ports: Sequence[NeutronPort]) -> _Names:
        fields = {"project_id": project, "fields": ["id", "name"]}
        networks = await session.all("network", "/networks", "networks", _Named, **fields)
        groups = await session.all("network", "/security-groups", "security_groups", _Named, **fields)
        addresses = await session.all("network", "/floatingips", "floatingips", _FloatingAddress, project_id=project)
        servers: dict[str, str] = {}
        if len(ports) == 1:
            servers = {ports[0].device_id: await self._server(session, ports[0])}
        elif any(each.device_id for each in ports):
            servers = {each.id: each.name for each in await session.all("compute", "/servers", "servers", _Named)}
        return _Names(
            networks={each.id: each.name for each in networks},
            groups={each.id: each.name for each in groups},
            servers=servers,
            addresses={each.port_id: each.floating_ip_address for each in addresses if each.port_id},
        )


def _changeable(desired: CloudPortSpec, groups: Sequence[str]) -> dict[str, object]:
    return {
        "security_groups": list(groups),
        "allowed_address_pairs": [{"ip_address": each} for each in desired.sources],
    }


def _reject_other(port: NeutronPort, network: str, desired: CloudPortSpec) -> None:
    address = port.fixed_ips[0].ip_address if port.fixed_ips else ""
    pairs = (("network", port.network_id, network), ("address", address, desired.address))
    for name, found, expected in (*pairs, ("MAC address", port.mac_address, desired.mac.lower())):
        if found != expected:
            raise Rejected(f"the {name} of the port {desired.handle.name} cannot change")


def _cloud_port(tenancy: str, port: NeutronPort, names: _Names) -> CloudPort:
    address = names.addresses.get(port.id, "")
    spec = CloudPortSpec(
        handle=Handle(tenancy, port.name),
        network=names.networks.get(port.network_id, ""),
        address=port.fixed_ips[0].ip_address if port.fixed_ips else "",
        mac=port.mac_address,
        groups=tuple(sorted(names.groups.get(each, each) for each in port.security_groups)),
        sources=tuple(sorted(each.ip_address for each in port.allowed_address_pairs)),
        is_public=bool(address),
    )
    return CloudPort(spec=spec, public_address=address, server=names.servers.get(port.device_id, ""))
