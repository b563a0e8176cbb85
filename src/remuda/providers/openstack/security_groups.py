"""Security groups at OpenStack. Our rules are known by their description; Neutron's own allow all egress."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import get_args

import msgspec

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import Handle, InUse
from remuda.providers.contract.networks import CloudRule, CloudSecurityGroup, Direction, Traffic
from remuda.providers.openstack.client import CloudSession
from remuda.providers.openstack.errors import ApiError
from remuda.providers.openstack.tenancies import TenancyAccess, only

RULE_DESCRIPTION = "Managed by Remuda"

_CONFLICT = 409
_EVERYWHERE = "0.0.0.0/0"
_NAME_PREFIX = "securitygroup-"
_PROTOCOLS: dict[str, Traffic] = {each: each for each in get_args(Traffic)} | {"112": "vrrp"}


class _Rule(msgspec.Struct, frozen=True):
    id: str
    direction: Direction
    ethertype: str = "IPv4"
    protocol: str | None = None
    port_range_min: int | None = None
    port_range_max: int | None = None
    remote_ip_prefix: str | None = None
    description: str | None = ""


class _Group(msgspec.Struct, frozen=True):
    id: str
    name: str
    security_group_rules: tuple[_Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenStackSecurityGroups:
    """Capability of managing security groups."""

    access: TenancyAccess

    async def converge_group(self, desired: CloudSecurityGroup) -> CloudSecurityGroup:
        handle = desired.handle
        project = await self.access.project(handle.tenancy)
        manager = self.access.manager_in(project)
        group = await self._find(manager, project, handle)
        if group is None:
            body = {"security_group": {"name": handle.name, "description": RULE_DESCRIPTION}}
            group = await manager.post("network", "/security-groups", body, "security_group", _Group)
        present = {_cloud_rule(each): each for each in group.security_group_rules if _is_ours(each)}
        rules = set(desired.rules)
        for rule in sorted(present.keys() - rules):
            await manager.delete("network", f"/security-group-rules/{present[rule].id}")
        for rule in sorted(rules - present.keys()):
            await self._create_rule(manager, group, rule)
        return desired

    async def find_group(self, handle: Handle) -> CloudSecurityGroup | None:
        try:
            project = await self.access.project(handle.tenancy)
        except NotFound:
            return None
        group = await self._find(self.access.manager_in(project), project, handle)
        return None if group is None else _cloud_group(handle, group)

    async def remove_group(self, handle: Handle) -> None:
        try:
            project = await self.access.project(handle.tenancy)
        except NotFound:
            return
        manager = self.access.manager_in(project)
        group = await self._find(manager, project, handle)
        if group is None:
            return
        try:
            await manager.delete("network", f"/security-groups/{group.id}")
        except ApiError as error:
            if error.http_status != _CONFLICT:
                raise
            raise InUse("security group", handle.name) from None

    async def groups(self) -> AsyncIterator[Sequence[CloudSecurityGroup]]:
        async for tenancy, project, manager in self.access.sessions():
            found = await manager.all("network", "/security-groups", "security_groups", _Group, project_id=project)
            yield [
                _cloud_group(Handle(tenancy, each.name), each) for each in found if each.name.startswith(_NAME_PREFIX)
            ]

    async def ids(self, session: CloudSession, project: str, names: Sequence[str]) -> dict[str, str]:
        """Return the ids of groups by their names, or raise NotFound."""
        if not names:
            return {}
        found = await session.items(
            "network", "/security-groups", "security_groups", _Group, project_id=project, name=list(names)
        )
        ids = {each.name: each.id for each in found}
        for name in names:
            if name not in ids:
                raise NotFound("security group", name)
        return {name: ids[name] for name in names}

    @staticmethod
    async def _find(manager: CloudSession, project: str, handle: Handle) -> _Group | None:
        query = {"name": handle.name, "project_id": project}
        found = await manager.items("network", "/security-groups", "security_groups", _Group, **query)
        return only([each for each in found if each.name == handle.name], "security group", handle.name, "group")

    @staticmethod
    async def _create_rule(manager: CloudSession, group: _Group, rule: CloudRule) -> None:
        body = {
            "security_group_id": group.id,
            "direction": rule.direction,
            "ethertype": "IPv6" if ":" in rule.prefix else "IPv4",
            "protocol": None if rule.protocol == "any" else rule.protocol,
            "port_range_min": rule.first_port,
            "port_range_max": rule.last_port if rule.last_port is not None else rule.first_port,
            "remote_ip_prefix": rule.prefix,
            "description": RULE_DESCRIPTION,
        }
        try:
            await manager.post("network", "/security-group-rules", {"security_group_rule": body})
        except ApiError as error:
            if error.http_status != _CONFLICT:  # the same traffic is allowed already, for example by Neutron's own rule
                raise


def _is_ours(rule: _Rule) -> bool:
    return rule.description == RULE_DESCRIPTION


def _cloud_rule(rule: _Rule) -> CloudRule:
    return CloudRule(
        direction=rule.direction,
        protocol=_PROTOCOLS.get(rule.protocol or "any", "any"),
        first_port=rule.port_range_min,
        last_port=rule.port_range_max,
        prefix=rule.remote_ip_prefix or _EVERYWHERE,
    )


def _cloud_group(handle: Handle, group: _Group) -> CloudSecurityGroup:
    rules = tuple(sorted(_cloud_rule(each) for each in group.security_group_rules if _is_ours(each)))
    return CloudSecurityGroup(handle=handle, rules=rules)
