"""The room's routes.

The room's handlers: each asks the service and renders what it says.
"""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.region.kinds.networks import Network
from remuda.region.names import permission
from remuda.region.networks import rules
from remuda.region.networks import schema as wire
from remuda.region.networks.service import Networks
from remuda.resources.query import RegionalQuery


async def list_all(
    networks: Networks, call: Call[Nothing, RegionalQuery, Nothing]
) -> Collection[Network, list[wire.NetworkRead]]:
    return await networks.list(call.context, call.query)


async def create(networks: Networks, call: Call[Nothing, Nothing, wire.NetworkCreate]) -> Shown[wire.NetworkRead]:
    return Shown(rules.NETWORK_VIEW, await networks.create(call.context, call.body))


async def get(networks: Networks, call: Call[wire.NetworkPath, Nothing, Nothing]) -> Rendered[wire.NetworkRead]:
    found = await networks.get(call.context, call.path.network)
    return untag(await networks.store.get_view(Network, found.name, rules.NETWORK_VIEW))


async def update(
    networks: Networks, call: Call[wire.NetworkPath, Nothing, wire.NetworkUpdate]
) -> Shown[wire.NetworkRead]:
    return Shown(rules.NETWORK_VIEW, await networks.update(call.context, call.path.network, call.body))


async def delete(networks: Networks, call: Call[wire.NetworkPath, Nothing, Nothing]) -> None:
    """Give a network up."""
    await networks.delete(call.context, call.path.network)


async def add_reference(networks: Networks, call: Call[wire.ReferencePath, Nothing, Nothing]) -> None:
    await networks.add_reference(call.context, call.path.network, call.path.reference)


async def remove_reference(networks: Networks, call: Call[wire.ReferencePath, Nothing, Nothing]) -> None:
    """Keep a network no longer."""
    await networks.remove_reference(call.context, call.path.network, call.path.reference)


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
            handler=list_all,
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
            handler=create,
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
            handler=get,
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
            handler=update,
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
            handler=delete,
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
            handler=add_reference,
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
            handler=remove_reference,
        ),
    ]
