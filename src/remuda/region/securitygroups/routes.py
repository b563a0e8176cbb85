"""The room's routes.

The room's handlers: each asks the service and renders what it says.
"""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.names import permission
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


SECURITY_GROUPS = "/api/v2/securitygroups"
"""All security groups."""
_GROUP = f"{SECURITY_GROUPS}/{{securityGroupID}}"


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [
        Route(
            method="GET",
            path=SECURITY_GROUPS,
            name="list_security_groups",
            summary="List the security groups that the caller may see",
            scope="project",
            permission=permission("securitygroups:v2", "read"),
            query_type=NetworkedQuery,
            answer_type=list[wire.GroupRead],
            handler=list_all,
        ),
        Route(
            method="POST",
            path=SECURITY_GROUPS,
            name="create_security_group",
            summary="Make a security group on a network",
            description="The network is settled for good. What no rule lets in stays out.",
            scope="project",
            permission=permission("securitygroups:v2", "create"),
            body_type=wire.GroupCreate,
            answer_type=wire.GroupRead,
            success=201,
            errors=(404,),
            handler=create,
        ),
        Route(
            method="GET",
            path=_GROUP,
            name="get_security_group",
            summary="Read a security group",
            scope="project",
            permission=permission("securitygroups:v2", "read"),
            path_type=wire.GroupPath,
            answer_type=wire.GroupRead,
            handler=get,
        ),
        Route(
            method="PUT",
            path=_GROUP,
            name="update_security_group",
            summary="Change a security group",
            scope="project",
            permission=permission("securitygroups:v2", "update"),
            path_type=wire.GroupPath,
            body_type=wire.GroupUpdate,
            answer_type=wire.GroupRead,
            success=202,
            is_conditional=True,
            handler=update,
        ),
        Route(
            method="DELETE",
            path=_GROUP,
            name="delete_security_group",
            summary="Give a security group up",
            description="While a server is in it, it stays.",
            scope="project",
            permission=permission("securitygroups:v2", "delete"),
            path_type=wire.GroupPath,
            success=202,
            is_conditional=True,
            handler=delete,
        ),
    ]
