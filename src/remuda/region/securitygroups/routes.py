"""The room's routes."""

from remuda.http.routes import AnyRoute, Route
from remuda.region.permissions import permission
from remuda.region.securitygroups import handlers
from remuda.region.securitygroups import schema as wire
from remuda.resources.query import NetworkedQuery

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
            handler=handlers.list_all,
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
            handler=handlers.create,
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
            handler=handlers.get,
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
            handler=handlers.update,
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
            handler=handlers.delete,
        ),
    ]
