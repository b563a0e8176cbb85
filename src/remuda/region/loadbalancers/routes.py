"""The room's routes.

The room's handlers: each asks the service and renders what it says.
"""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.loadbalancers import rules
from remuda.region.loadbalancers import schema as wire
from remuda.region.loadbalancers.service import LoadBalancers
from remuda.region.names import permission
from remuda.resources.query import NetworkedQuery


async def list_all(
    balancers: LoadBalancers, call: Call[Nothing, NetworkedQuery, Nothing]
) -> Collection[LoadBalancer, list[wire.BalancerRead]]:
    return await balancers.list(call.context, call.query)


async def create(
    balancers: LoadBalancers, call: Call[Nothing, Nothing, wire.BalancerCreate]
) -> Shown[wire.BalancerRead]:
    return Shown(rules.BALANCER_VIEW, await balancers.create(call.context, call.body))


async def get(balancers: LoadBalancers, call: Call[wire.BalancerPath, Nothing, Nothing]) -> Rendered[wire.BalancerRead]:
    found = await balancers.get(call.context, call.path.balancer)
    return untag(await balancers.store.get_view(LoadBalancer, found.name, rules.BALANCER_VIEW))


async def update(
    balancers: LoadBalancers, call: Call[wire.BalancerPath, Nothing, wire.BalancerUpdate]
) -> Shown[wire.BalancerRead]:
    return Shown(rules.BALANCER_VIEW, await balancers.update(call.context, call.path.balancer, call.body))


async def delete(balancers: LoadBalancers, call: Call[wire.BalancerPath, Nothing, Nothing]) -> None:
    await balancers.delete(call.context, call.path.balancer)


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
            handler=list_all,
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
            handler=create,
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
            handler=get,
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
            handler=update,
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
            handler=delete,
        ),
    ]
