"""Load balancers, through a provider's calls."""

from collections.abc import AsyncIterator, Sequence

from remuda.providers.called.listing import listed
from remuda.providers.calls import Calls
from remuda.providers.contract.common import Handle
from remuda.providers.contract.loadbalancers import LoadBalancer, LoadBalancers, LoadBalancerSpec

BALANCER_VERBS = ("converge_balancer", "find_balancer", "remove_balancer", "balancers")
"""What is asked about load balancers."""


class CalledLoadBalancers:
    """Load balancers."""

    def __init__(self, balancers: LoadBalancers, calls: Calls) -> None:
        self._balancers, self._calls = balancers, calls

    async def converge_balancer(self, wanted: LoadBalancerSpec) -> LoadBalancer:
        """Make a load balancer, or bring it up to date."""
        return await self._calls.call(
            wanted.handle.name, "converge_balancer", lambda: self._balancers.converge_balancer(wanted)
        )

    async def find_balancer(self, handle: Handle) -> LoadBalancer | None:
        return await self._calls.call(
            handle.name, "find_balancer", lambda: self._balancers.find_balancer(handle), safe=True
        )

    async def remove_balancer(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "remove_balancer", lambda: self._balancers.remove_balancer(handle))

    def balancers(self) -> AsyncIterator[Sequence[LoadBalancer]]:
        return listed(self._calls, "balancers", self._balancers.balancers)
