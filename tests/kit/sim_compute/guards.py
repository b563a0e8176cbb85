"""Customers who protect instances, and set what holds for all instances of a project."""

from tests.kit.compute.environment import INSTANCES
from tests.kit.sim_compute.customers import Owners
from tests.kit.sim_identity.history import Payer, Requests


class Guards(Owners):
    """Protection of instances, and policies of projects. Then somebody tries what it is meant to keep off."""

    async def act(self) -> None:
        """Do one thing."""
        place, owned = self.place(), self.living("instance")
        if place is not None and (not owned or self.chance(0.3)):
            await self._govern(place)
        elif owned:
            await self._protect(self.one_of(owned))
        if owned and self.chance(0.5):
            instance = self.one_of(owned)
            await (self._delete(instance) if self.chance(0.4) else self._change(instance, f"{INSTANCES}/{instance}"))

    async def _govern(self, place: Payer) -> None:
        path = f"/api/v2/organizations/{place.organization}/projects/{place.project}/policy"
        if self.chance(0.2):
            await self.ask("GET", path)
            return
        keeps, plans = self.chance(0.4), self.chance(0.5)
        requests: Requests = {
            ("policy keeps", "project", place.project): keeps,
            ("policy plans", "project", place.project): plans,
        }
        with self.history.asking(requests) as asked:
            _, asked.verdict = await self._twice("PUT", path, {"deletion": keeps, "plan": plans}, "")

    async def _protect(self, instance: str) -> None:
        read = await self.ask("GET", f"{INSTANCES}/{instance}")
        if read.status == 200:
            protection = {"deletion": self.chance(0.4), "plan": self.chance(0.5)}
            spec = read.json["spec"] | {"protection": protection}
            await self._put(instance, {"metadata": {"name": read.json["metadata"]["name"]}, "spec": spec}, {})
