"""Routes of networks."""

from collections.abc import Callable
from functools import partial

from remuda.http.crud import crud
from remuda.http.routes import AnyRoute, Route
from remuda.region.names import permission
from remuda.region.networks import rules, schema
from remuda.region.networks.service import Networks
from remuda.resources.query import RegionalQuery

NETWORKS = "/api/v2/networks"
_REFERENCE = f"{NETWORKS}/{{networkID}}/references/{{reference}}"

_reference_route: Callable[..., AnyRoute] = partial(
    Route, path=_REFERENCE, scope="project", path_type=schema.ReferencePath, service=Networks
)

ROUTES = [
    *crud(
        Networks,
        path=NETWORKS,
        item=schema.NetworkPath,
        name="network",
        noun="a network",
        permission=partial(permission, "networks:v2"),
        view=rules.NETWORK_VIEW,
        query=RegionalQuery,
        create=schema.NetworkCreate,
        update=schema.NetworkUpdate,
        read=schema.NetworkRead,
        descriptions={
            "create": "The prefix, the region and the reservations cannot be changed later.",
            "delete": "The security groups and load balancers on the network are deleted with it. A network that "
            "anything else uses cannot be deleted.",
        },
    ),
    _reference_route(
        method="PUT",
        name="add_network_reference",
        summary="Add a reference to a network",
        description="A network that has a reference cannot be deleted.",
        permission=permission("networks:v2/references", "create"),
        success=201,
        calls=Networks.add_reference,
    ),
    _reference_route(
        method="DELETE",
        name="remove_network_reference",
        summary="Remove a reference from a network",
        permission=permission("networks:v2/references", "delete"),
        success=204,
        calls=Networks.remove_reference,
    ),
]
