"""The room's handlers: each asks the service and renders what it says."""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import Call, Nothing
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.loadbalancers import rules
from remuda.region.loadbalancers import schema as wire
from remuda.region.loadbalancers.service import LoadBalancers
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
