"""The room's routes."""

from remuda.http.routes import AnyRoute, Route
from remuda.region.loadbalancers import handlers
from remuda.region.loadbalancers import schema as wire
from remuda.region.permissions import permission
from remuda.resources.query import NetworkedQuery

LOAD_BALANCERS = "/api/v2/loadbalancers"
"""All load balancers."""
_LOAD_BALANCER = f"{LOAD_BALANCERS}/{{loadBalancerID}}"


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [
        Route(
            method="GET",
            path=LOAD_BALANCERS,
            name="list_load_balancers",
            summary="List the load balancers that the caller may see",
            scope="project",
            permission=permission("loadbalancers:v2", "read"),
            query_type=NetworkedQuery,
            answer_type=list[wire.BalancerRead],
            handler=handlers.list_all,
        ),
        Route(
            method="POST",
            path=LOAD_BALANCERS,
            name="create_load_balancer",
            summary="Make a load balancer",
            scope="project",
            permission=permission("loadbalancers:v2", "create"),
            body_type=wire.BalancerCreate,
            answer_type=wire.BalancerRead,
            success=201,
            errors=(404,),
            handler=handlers.create,
        ),
        Route(
            method="GET",
            path=_LOAD_BALANCER,
            name="get_load_balancer",
            summary="Read a load balancer",
            scope="project",
            permission=permission("loadbalancers:v2", "read"),
            path_type=wire.BalancerPath,
            answer_type=wire.BalancerRead,
            handler=handlers.get,
        ),
        Route(
            method="PUT",
            path=_LOAD_BALANCER,
            name="update_load_balancer",
            summary="Change a load balancer",
            scope="project",
            permission=permission("loadbalancers:v2", "update"),
            path_type=wire.BalancerPath,
            body_type=wire.BalancerUpdate,
            answer_type=wire.BalancerRead,
            success=202,
            is_conditional=True,
            handler=handlers.update,
        ),
        Route(
            method="DELETE",
            path=_LOAD_BALANCER,
            name="delete_load_balancer",
            summary="Give a load balancer up",
            scope="project",
            permission=permission("loadbalancers:v2", "delete"),
            path_type=wire.BalancerPath,
            success=202,
            is_conditional=True,
            handler=handlers.delete,
        ),
    ]
