"""The room's routes."""

from remuda.http.routes import AnyRoute, Route
from remuda.region.networks import handlers
from remuda.region.networks import schema as wire
from remuda.region.permissions import permission
from remuda.resources.query import RegionalQuery

NETWORKS = "/api/v2/networks"
"""All networks."""
_NETWORK = f"{NETWORKS}/{{networkID}}"
_REFERENCE = f"{_NETWORK}/references/{{reference}}"


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [*_networks(), *_references()]


def _networks() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=NETWORKS,
            name="list_networks",
            summary="List the networks that the caller may see",
            scope="project",
            permission=permission("networks:v2", "read"),
            query_type=RegionalQuery,
            answer_type=list[wire.NetworkRead],
            handler=handlers.list_all,
        ),
        Route(
            method="POST",
            path=NETWORKS,
            name="create_network",
            summary="Make a network",
            description="Prefix, region and reservations are settled for good.",
            scope="project",
            permission=permission("networks:v2", "create"),
            body_type=wire.NetworkCreate,
            answer_type=wire.NetworkRead,
            success=201,
            errors=(404,),
            handler=handlers.create,
        ),
        Route(
            method="GET",
            path=_NETWORK,
            name="get_network",
            summary="Read a network",
            scope="project",
            permission=permission("networks:v2", "read"),
            path_type=wire.NetworkPath,
            answer_type=wire.NetworkRead,
            handler=handlers.get,
        ),
        Route(
            method="PUT",
            path=_NETWORK,
            name="update_network",
            summary="Change a network",
            scope="project",
            permission=permission("networks:v2", "update"),
            path_type=wire.NetworkPath,
            body_type=wire.NetworkUpdate,
            answer_type=wire.NetworkRead,
            success=202,
            is_conditional=True,
            handler=handlers.update,
        ),
        Route(
            method="DELETE",
            path=_NETWORK,
            name="delete_network",
            summary="Give a network up",
            description="Security groups and load balancers go with it. While anything else uses it, it stays.",
            scope="project",
            permission=permission("networks:v2", "delete"),
            path_type=wire.NetworkPath,
            success=202,
            is_conditional=True,
            handler=handlers.delete,
        ),
    ]


def _references() -> list[AnyRoute]:
    return [
        Route(
            method="PUT",
            path=_REFERENCE,
            name="add_network_reference",
            summary="Keep a network from going while something uses it",
            scope="project",
            permission=permission("networks:v2/references", "create"),
            path_type=wire.ReferencePath,
            success=201,
            handler=handlers.add_reference,
        ),
        Route(
            method="DELETE",
            path=_REFERENCE,
            name="remove_network_reference",
            summary="Use a network no longer",
            scope="project",
            permission=permission("networks:v2/references", "delete"),
            path_type=wire.ReferencePath,
            success=204,
            handler=handlers.remove_reference,
        ),
    ]
