"""What a region may run out of: addresses on its networks, room for servers, VLANs."""

from dataclasses import dataclass, field

import structlog

from remuda.reconcile.leader import Pace
from remuda.reconcile.sources import names
from remuda.region.catalogue.provider_registry import Cloud
from remuda.region.kinds.addresses import Address
from remuda.region.kinds.networks import Network
from remuda.region.kinds.regions import Region
from remuda.region.kinds.vlans import VLANAllocation, vlans_name
from remuda.region.monitor.metrics import MonitorMetrics
from remuda.region.networks.ipam import segments_of
from remuda.region.networks.rules import plan_of
from remuda.resources.conventions import NETWORK, REGION
from remuda.resources.crud import find
from remuda.store.contract import Store

_PAGE = 100


@dataclass(slots=True, kw_only=True)
class Supplies:
    """Looks at what is left in one region."""

    store: Store
    metrics: MonitorMetrics
    pace: Pace
    low_share: float
    _low: set[str] = field(default_factory=set, init=False)
    """The networks that were told of."""

    async def look(self, cloud: Cloud) -> None:
        """Look at everything once."""
        await self._look_at_vlans(cloud.region)
        await self._look_at_networks(cloud.region.name)
        free = {each.name: each.free for each in await cloud.provider.catalogue.flavors() if each.free is not None}
        self.metrics.show_flavors(cloud.region.name, free)

    async def _look_at_networks(self, region: str) -> None:
        low: dict[str, int] = {}
        after: str | None = None
        while True:
            page = await self.store.list(Network, labels={REGION: region}, limit=_PAGE, after=after)
            for network in page.items:
                size, free = await self._addresses(network)
                if free < self.low_share * size:
                    low[network.name] = free
                    self._tell(network.name, region, free)
            after = page.next
            if after is None:
                break
        self._low = set(low)
        self.metrics.low.labels(region).set(len(low))
        self.metrics.exhausted.labels(region).set(sum(not free for free in low.values()))
        self.metrics.low_free.labels(region).set(sum(low.values()))

    async def _addresses(self, network: Network) -> tuple[int, int]:
        """Return how many addresses a network has for servers, and how many of them are free."""
        taken = 0
        async for _ in names(self.store, Address, labels={NETWORK: network.name}):
            taken += 1
        await self.pace.step()
        size = len(plan_of(network).dhcp_pool)
        return size, max(0, size - taken)

    def _tell(self, network: str, region: str, free: int) -> None:
        if network not in self._low:
            structlog.get_logger().warning("network runs low on addresses", network=network, region=region, free=free)

    async def _look_at_vlans(self, region: Region) -> None:
        found = await find(self.store, VLANAllocation, vlans_name(region.spec.provider, region.name))
        if found is not None:
            taken = len(found.spec.allocations)
            self.metrics.vlans_taken.labels(region.name).set(taken)
            given = sum(map(len, segments_of(region)))
            self.metrics.vlans_free.labels(region.name).set(max(0, given - taken))
