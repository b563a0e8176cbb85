"""The room's handlers: each asks the service and renders what it says."""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import Call, Nothing
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.securitygroups import rules
from remuda.region.securitygroups import schema as wire
from remuda.region.securitygroups.service import SecurityGroups
from remuda.resources.query import NetworkedQuery


async def list_all(
    groups: SecurityGroups, call: Call[Nothing, NetworkedQuery, Nothing]
) -> Collection[SecurityGroup, list[wire.GroupRead]]:
    return await groups.list(call.context, call.query)


async def create(groups: SecurityGroups, call: Call[Nothing, Nothing, wire.GroupCreate]) -> Shown[wire.GroupRead]:
    return Shown(rules.GROUP_VIEW, await groups.create(call.context, call.body))


async def get(groups: SecurityGroups, call: Call[wire.GroupPath, Nothing, Nothing]) -> Rendered[wire.GroupRead]:
    found = await groups.get(call.context, call.path.group)
    return untag(await groups.store.get_view(SecurityGroup, found.name, rules.GROUP_VIEW))


async def update(
    groups: SecurityGroups, call: Call[wire.GroupPath, Nothing, wire.GroupUpdate]
) -> Shown[wire.GroupRead]:
    return Shown(rules.GROUP_VIEW, await groups.update(call.context, call.path.group, call.body))


async def delete(groups: SecurityGroups, call: Call[wire.GroupPath, Nothing, Nothing]) -> None:
    await groups.delete(call.context, call.path.group)
