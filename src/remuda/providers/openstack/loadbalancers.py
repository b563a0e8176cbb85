"""Load balancers at OpenStack: Octavia's, with a port of ours that has the address and the MAC address that we chose.

Octavia is busy for some seconds after each change and rejects another one meanwhile, so `converge_balancer` makes one
change at most, and reports a load balancer that still differs as building. The port is created first and removed last.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import Handle, Rejected
from remuda.providers.contract.loadbalancers import (
    CloudHealthCheck,
    CloudListener,
    CloudLoadBalancer,
    CloudLoadBalancerSpec,
    CloudMember,
)
from remuda.providers.contract.servers import CloudPortSpec
from remuda.providers.openstack.client import CloudSession
from remuda.providers.openstack.errors import ApiError
from remuda.providers.openstack.ports import NeutronPort, OpenStackPorts
from remuda.providers.openstack.tenancies import TenancyAccess, only

SERVICE = "load-balancer"
NAME_PREFIX = "loadbalancer-"
DEFAULT_TIMEOUT_TAG = "idle-timeout=default"
"""Tag of a listener whose idle timeout is the cloud's own."""

_NOT_FOUND, _CONFLICT = 404, 409
_BALANCERS, _LISTENERS, _POOLS, _MONITORS = (
    f"/lbaas/{each}" for each in ("loadbalancers", "listeners", "pools", "healthmonitors")
)
_MS = 1000


class _Id(msgspec.Struct, frozen=True):
    id: str


class _Balancer(msgspec.Struct, frozen=True):
    id: str
    name: str
    provisioning_status: str
    vip_port_id: str | None = None

    @property
    def state(self) -> Literal["building", "active", "failed"]:
        return "active" if self.provisioning_status == "ACTIVE" else "failed" if self.is_failed else "building"

    @property
    def is_failed(self) -> bool:
        return self.provisioning_status == "ERROR"


class _Listener(msgspec.Struct, frozen=True):
    id: str
    name: str
    protocol: str
    protocol_port: int
    default_pool_id: str | None = None
    allowed_cidrs: tuple[str, ...] | None = None
    timeout_client_data: int | None = None
    tags: tuple[str, ...] = ()
    loadbalancers: tuple[_Id, ...] = ()


class _Pool(msgspec.Struct, frozen=True):
    id: str
    name: str
    protocol: str
    healthmonitor_id: str | None = None
    loadbalancers: tuple[_Id, ...] = ()


class _Monitor(msgspec.Struct, frozen=True):
    id: str
    delay: int
    timeout: int
    max_retries: int
    max_retries_down: int


class _Member(msgspec.Struct, frozen=True):
    address: str
    protocol_port: int


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a load balancer at Octavia, by the names of the listeners that they belong to."""

    listeners: Mapping[str, _Listener]
    pools: Mapping[str, _Pool]
    members: Mapping[str, Sequence[CloudMember]]
    monitors: Mapping[str, _Monitor]

    def listener(self, name: str) -> CloudListener:
        found, pool = self.listeners[name], self.pools.get(name)
        monitor = self.monitors.get(name)
        is_default = DEFAULT_TIMEOUT_TAG in found.tags
        return CloudListener(
            name=name,
            protocol="udp" if found.protocol == "UDP" else "tcp",
            port=found.protocol_port,
            allowed_prefixes=tuple(sorted(found.allowed_cidrs or ())),
            idle_timeout_s=None if is_default else (found.timeout_client_data or 0) // _MS,
            members=tuple(sorted(self.members.get(name, ()))),
            has_proxy_protocol=pool is not None and pool.protocol == "PROXYV2",
            health_check=None if monitor is None else _health_check(monitor),
        )


@dataclass(frozen=True, slots=True)
class OpenStackLoadBalancers:
    """Capability of managing load balancers, with the permissions of the tenancy's own user."""

    access: TenancyAccess
    ports: OpenStackPorts

    async def converge_balancer(self, desired: CloudLoadBalancerSpec) -> CloudLoadBalancer:
        handle = desired.handle
        member = await self.access.member(handle.tenancy)
        project = await self.access.project(handle.tenancy)
        port, subnet = await self._port(member, project, desired)
        balancer = await self._find(member, project, handle)
        if balancer is None:
            balancer = await self._create(member, port, subnet, desired)
        elif balancer.vip_port_id != port.id:
            raise Rejected(f"the address of the load balancer {handle.name} cannot change")
        elif balancer.state == "active":
            parts = await self._parts(member, project, balancer)
            changed = await _Change(member, balancer, parts, subnet, handle.name).apply(desired.listeners)
            balancer = msgspec.structs.replace(balancer, provisioning_status="PENDING_UPDATE") if changed else balancer
        address = await self.ports.converge_address(member, port, is_public=desired.is_public)
        return CloudLoadBalancer(spec=desired, state=balancer.state, public_address=address)

    async def find_balancer(self, handle: Handle) -> CloudLoadBalancer | None:
        try:
            member = await self.access.member(handle.tenancy)
            project = await self.access.project(handle.tenancy)
        except NotFound:
            return None
        port = await self.ports.record(member, project, handle)
        balancer = await self._find(member, project, handle)
        if port is None and balancer is None:
            return None
        found = CloudLoadBalancer(spec=_empty(handle), state="building")
        if port is not None:
            description = await self.ports.describe(member, project, handle.tenancy, port)
            spec = replace(
                found.spec,
                network=description.spec.network,
                address=description.spec.address,
                mac=description.spec.mac,
                is_public=description.spec.is_public,
            )
            found = replace(found, spec=spec, public_address=description.public_address)
        if balancer is not None:
            parts = await self._parts(member, project, balancer)
            listeners = tuple(parts.listener(name) for name in sorted(parts.listeners))
            found = replace(found, spec=replace(found.spec, listeners=listeners), state=balancer.state)
        return found

    async def remove_balancer(self, handle: Handle) -> None:
        """Remove a load balancer; a later call removes its port, which Octavia uses until then."""
        try:
            member = await self.access.member(handle.tenancy)
            project = await self.access.project(handle.tenancy)
        except NotFound:
            return
        port = await self.ports.record(member, project, handle)
        if port is not None:
            await self.ports.converge_address(member, port, is_public=False)
        balancers = await self._all(member, project, handle)
        for each in balancers:
            if each.state != "building":
                await self._remove(member, each)
        if port is not None and not balancers:
            await member.delete("network", f"/ports/{port.id}")

    async def balancers(self) -> AsyncIterator[Sequence[Handle]]:
        async for tenancy, project, manager in self.access.sessions():
            found = await manager.all(SERVICE, _BALANCERS, "loadbalancers", _Balancer, project_id=project)
            ports = await self.ports.named(manager, project, NAME_PREFIX)
            names = {each.name for each in found if each.name.startswith(NAME_PREFIX)} | {each.name for each in ports}
            yield [Handle(tenancy, name) for name in sorted(names)]

    async def _port(
        self, member: CloudSession, project: str, desired: CloudLoadBalancerSpec
    ) -> tuple[NeutronPort, str]:
        """Return the port, created if there is none, and the subnet of its address."""
        spec = CloudPortSpec(handle=desired.handle, network=desired.network, address=desired.address, mac=desired.mac)
        port = await self.ports.converge_record(member, project, spec, only_create=True)  # Octavia adds its group
        return port, port.fixed_ips[0].subnet_id

    async def _find(self, member: CloudSession, project: str, handle: Handle) -> _Balancer | None:
        return only(await self._all(member, project, handle), "load balancer", handle.name, "load balancer")

    @staticmethod
    async def _all(member: CloudSession, project: str, handle: Handle) -> Sequence[_Balancer]:
        query = {"name": handle.name, "project_id": project}
        found = await member.items(SERVICE, _BALANCERS, "loadbalancers", _Balancer, **query)
        return [each for each in found if each.name == handle.name and each.provisioning_status != "DELETED"]

    @staticmethod
    async def _create(
        member: CloudSession, port: NeutronPort, subnet: str, desired: CloudLoadBalancerSpec
    ) -> _Balancer:
        body = {
            "name": desired.handle.name,
            "vip_port_id": port.id,
            "listeners": [_nested(each, desired.handle.name, subnet) for each in desired.listeners],
        }
        created: _Balancer = await member.post(SERVICE, _BALANCERS, {"loadbalancer": body}, "loadbalancer", _Balancer)
        return created

    @staticmethod
    async def _remove(member: CloudSession, balancer: _Balancer) -> None:
        try:
            await member.delete(SERVICE, f"{_BALANCERS}/{balancer.id}", cascade=True)
        except ApiError as error:
            if error.http_status != _CONFLICT:  # it became busy meanwhile: a later call removes it
                raise

    @staticmethod
    async def _parts(member: CloudSession, project: str, balancer: _Balancer) -> _Parts:
        query = {"project_id": project}
        listeners = await member.all(SERVICE, _LISTENERS, "listeners", _Listener, **query)
        pools = await member.all(SERVICE, _POOLS, "pools", _Pool, **query)
        own = [each for each in pools if balancer.id in {parent.id for parent in each.loadbalancers}]
        prefix = f"{balancer.name}/"
        members: dict[str, Sequence[CloudMember]] = {}
        monitors: dict[str, _Monitor] = {}
        for pool in own:
            name = pool.name.removeprefix(prefix)
            try:
                found = await member.all(SERVICE, f"{_POOLS}/{pool.id}/members", "members", _Member)
                if pool.healthmonitor_id is not None:
                    path = f"{_MONITORS}/{pool.healthmonitor_id}"
                    monitors[name] = await member.get(SERVICE, path, "healthmonitor", _Monitor)
            except ApiError as error:
                if error.http_status != _NOT_FOUND:
                    raise
                continue  # it was removed meanwhile
            members[name] = [CloudMember(address=each.address, port=each.protocol_port) for each in found]
        return _Parts(
            listeners={
                each.name.removeprefix(prefix): each
                for each in listeners
                if balancer.id in {parent.id for parent in each.loadbalancers}
            },
            pools={each.name.removeprefix(prefix): each for each in own},
            members=members,
            monitors=monitors,
        )


@dataclass(frozen=True, slots=True)
class _Change:
    """The next change of a load balancer that is not busy."""

    member: CloudSession
    balancer: _Balancer
    parts: _Parts
    subnet: str
    name: str

    async def apply(self, desired: Sequence[CloudListener]) -> bool:
        """Make the first change that is needed; return whether there was one."""
        names = {each.name for each in desired}
        for path, present in ((_LISTENERS, self.parts.listeners), (_POOLS, self.parts.pools)):
            for name in sorted(present.keys() - names):
                await self.member.delete(SERVICE, f"{path}/{present[name].id}")
                return True
        for each in desired:
            if await self._converge(each):
                return True
        return False

    async def _converge(self, desired: CloudListener) -> bool:
        listener, pool = self.parts.listeners.get(desired.name), self.parts.pools.get(desired.name)
        if listener is not None and (listener.protocol, listener.protocol_port) != _endpoint(desired):
            await self.member.delete(SERVICE, f"{_LISTENERS}/{listener.id}")
            return True
        if pool is not None and pool.protocol != _pool_protocol(desired):  # which Octavia never changes
            path = f"{_POOLS}/{pool.id}" if listener is None else f"{_LISTENERS}/{listener.id}"
            await self.member.delete(SERVICE, path)
            return True
        if pool is None:
            body = {"loadbalancer_id": self.balancer.id, **_pool(desired, self.name)}
            await self.member.post(SERVICE, _POOLS, {"pool": body})
            return True
        if listener is None:
            body = {"loadbalancer_id": self.balancer.id, "default_pool_id": pool.id, **_listener(desired, self.name)}
            await self.member.post(SERVICE, _LISTENERS, {"listener": body})
            return True
        present = self.parts.listener(desired.name)
        if _own(present) != _own(desired):
            await self.member.put(SERVICE, f"{_LISTENERS}/{listener.id}", {"listener": _changeable(desired)})
            return True
        return await self._converge_pool(pool, present, desired)

    async def _converge_pool(self, pool: _Pool, present: CloudListener, desired: CloudListener) -> bool:
        if present.members != tuple(sorted(desired.members)):
            members = [_member(each, self.subnet) for each in desired.members]
            await self.member.put(SERVICE, f"{_POOLS}/{pool.id}/members", {"members": members})
            return True
        if present.health_check == desired.health_check:
            return False
        monitor = f"{_MONITORS}/{pool.healthmonitor_id}"
        if desired.health_check is None:
            await self.member.delete(SERVICE, monitor)
        elif present.health_check is None:
            body = {"pool_id": pool.id, "type": _check_type(desired), **_monitor(desired.health_check)}
            await self.member.post(SERVICE, _MONITORS, {"healthmonitor": body})
        else:
            await self.member.put(SERVICE, monitor, {"healthmonitor": _monitor(desired.health_check)})
        return True


def _empty(handle: Handle) -> CloudLoadBalancerSpec:
    """Return what there is of a load balancer whose parts were not created yet, or are removed already."""
    return CloudLoadBalancerSpec(handle=handle, network="", address="", mac="")


def _own(listener: CloudListener) -> tuple[object, ...]:
    """Return what of a listener is no part of its pool."""
    return (tuple(sorted(listener.allowed_prefixes)), listener.idle_timeout_s)


def _endpoint(listener: CloudListener) -> tuple[str, int]:
    return listener.protocol.upper(), listener.port


def _pool_protocol(listener: CloudListener) -> str:
    return "PROXYV2" if listener.has_proxy_protocol else listener.protocol.upper()


def _check_type(listener: CloudListener) -> str:
    return "UDP-CONNECT" if listener.protocol == "udp" else "TCP"


def _changeable(listener: CloudListener) -> dict[str, object]:
    timeout = None if listener.idle_timeout_s is None else listener.idle_timeout_s * _MS
    return {
        "allowed_cidrs": list(listener.allowed_prefixes),
        "timeout_client_data": timeout,
        "timeout_member_data": timeout,
        "tags": [DEFAULT_TIMEOUT_TAG] if timeout is None else [],
    }


def _listener(listener: CloudListener, balancer: str) -> dict[str, object]:
    protocol, port = _endpoint(listener)
    changeable = {name: value for name, value in _changeable(listener).items() if value is not None}
    return {"name": f"{balancer}/{listener.name}", "protocol": protocol, "protocol_port": port, **changeable}


def _pool(listener: CloudListener, balancer: str) -> dict[str, object]:
    protocol = _pool_protocol(listener)
    return {"name": f"{balancer}/{listener.name}", "protocol": protocol, "lb_algorithm": "ROUND_ROBIN"}


def _nested(listener: CloudListener, balancer: str, subnet: str) -> dict[str, object]:
    """Return a listener with its pool, for the request that creates all of a load balancer."""
    members = [_member(each, subnet) for each in listener.members]
    pool: dict[str, object] = {**_pool(listener, balancer), "members": members}
    if listener.health_check is not None:
        pool["healthmonitor"] = {"type": _check_type(listener), **_monitor(listener.health_check)}
    return {**_listener(listener, balancer), "default_pool": pool}


def _member(member: CloudMember, subnet: str) -> dict[str, object]:
    return {"address": member.address, "protocol_port": member.port, "subnet_id": subnet}


def _monitor(check: CloudHealthCheck) -> dict[str, object]:
    return {
        "delay": check.interval_s,
        "timeout": check.timeout_s,
        "max_retries": check.healthy_threshold,
        "max_retries_down": check.unhealthy_threshold,
    }


def _health_check(monitor: _Monitor) -> CloudHealthCheck:
    return CloudHealthCheck(
        interval_s=monitor.delay,
        timeout_s=monitor.timeout,
        healthy_threshold=monitor.max_retries,
        unhealthy_threshold=monitor.max_retries_down,
    )
