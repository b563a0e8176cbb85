"""What the cloud offers: flavors with the room that is left, and external networks."""

from collections.abc import Sequence

from remuda.providers.contract.catalogue import ExternalNetwork, Flavor
from remuda.providers.simulated.ground import Ground
from remuda.providers.simulated.hosts import HostsOfFlavors


class SimOffers:
    """Offers flavors and ways out."""

    def __init__(self, ground: Ground) -> None:
        self._desk, self._catalogue = ground.desk, ground.catalogue
        self._hosts = HostsOfFlavors(ground.storage)

    async def flavors(self) -> Sequence[Flavor]:
        return await self._desk.look(
            "flavors", lambda: [self._hosts.with_free_places(each) for each in self._catalogue.flavors]
        )

    async def external_networks(self) -> Sequence[ExternalNetwork]:
        return await self._desk.look("external_networks", lambda: self._catalogue.external_networks)
