"""Customers with images of their own: fetched from elsewhere, taken of servers, and given up."""

from itertools import product

from remuda.region.images.routes import IMAGES, IMAGES_OF_ORGANIZATION
from tests.kit.region.images import URI, image
from tests.kit.sim_identity.history import Payer
from tests.kit.sim_region.customer import PATHS
from tests.kit.sim_region.customers import Tenant
from tests.kit.sim_region.system import BREAKING, REGIONS

MOST = 4
"""How many there are at most."""


class Imagers(Tenant):
    """Images."""

    async def act(self) -> None:
        """Do one thing."""
        images, servers, place = self.living("image"), self.living("server"), self.place()
        if images and (len(images) == MOST or self.chance(0.4)):
            await self._give_up(self.one_of(images))
        elif servers and self.chance(0.5):
            await self._snapshot(self.one_of(servers))
        elif place is not None:
            await self._fetch(place.organization, self.one_of(REGIONS))

    async def give_all_up(self) -> None:
        """Ask for every image to go that is there, known or not."""
        for organization, region in product(self.history.known["organization"], REGIONS):
            query = [("organizationID", organization), ("scope", "owned")]
            reply = await self.system.region(await self.system.root()).get(IMAGES.format(regionID=region), query)
            for id_ in [each["metadata"]["id"] for each in reply.json]:
                self.history.regions[id_] = region
                self.history.known["image"].setdefault(id_, Payer(organization))
                await self._give_up(id_)

    async def _fetch(self, organization: str, region: str) -> None:
        uri = self.one_of((URI, URI, BREAKING))
        await self._begin(_images(organization, region), image(uri), organization, region)

    async def _snapshot(self, server: str) -> None:
        place = self.history.known["server"][server]
        body = {"metadata": {"name": self.history.name("image")}, "spec": {}}
        path = f"{PATHS['server']}/{server}/snapshot"
        await self._begin(path, body, place.organization, self.history.regions[self.network_of(server)])

    async def _begin(self, path: str, body: object, organization: str, region: str) -> None:
        since = self.history.now()
        reply, verdict = await self.write("POST", path, body)
        if verdict == "yes":
            id_ = reply.json["metadata"]["id"]
            self.history.regions[id_] = region
            self.history.made("image", id_, Payer(organization), since=since)

    async def _give_up(self, id_: str) -> None:
        organization = self.history.known["image"][id_].organization
        await self.remove("image", id_, f"{_images(organization, self.history.regions[id_])}/{id_}")


def _images(organization: str, region: str) -> str:
    return IMAGES_OF_ORGANIZATION.format(organizationID=organization, regionID=region)
