"""Other services, which use networks; and operators, who help where a controller cannot go on by itself."""

from typing import Any

from remuda.region.kinds.common import is_abandoned
from remuda.store.objects import Resource
from tests.kit.sim_identity.facts import UNKNOWN
from tests.kit.sim_identity.history import THERE, Requests
from tests.kit.sim_region.customer import PATHS
from tests.kit.sim_region.customers import Tenant
from tests.kit.sim_region.invariants import REFERENCE
from tests.kit.sim_region.system import RegionSystem

RECOVERY = "/api/v2/recovery"
SORTS = {
    "identity": "identities",
    "network": "networks",
    "group": "securitygroups",
    "balancer": "loadbalancers",
    "server": "servers",
    "storage": "filestorages",
}
"""What operators call the kinds that have something at a cloud."""


class Services(Tenant):
    """Keep networks from going, and let them go."""

    async def act(self) -> None:
        """Do one thing."""
        if network := self.network():
            await self._hold(network, is_held=self.chance(0.5))

    async def release(self) -> None:
        """Use no network any more that is going."""
        for name, network in list((await self.system.see()).of("network").items()):
            if REFERENCE in network.metadata.finalizers and network.is_deleting:
                await self._hold(name, is_held=False)

    async def _hold(self, network: str, *, is_held: bool) -> None:
        method = "PUT" if is_held else "DELETE"
        path = f"{PATHS['network']}/{network}/references/{REFERENCE.replace('/', '%252F')}"
        with self.history.asking({("held", "network", network): is_held}) as asked:
            _, asked.verdict = await self.write(method, path)


class Operators(Tenant):
    """Retry and abandon what does not get on, and adopt or forget what is left of it."""

    async def act(self) -> None:
        """Do one thing."""
        seen, draw = await self.system.see(), self._randomness.uniform(0, 1)
        orphans = list(seen.of("orphan").values())
        servers = [each for each in orphans if each.spec.subject == "server"]
        going = [(kind, each) for kind in SORTS for each in seen.of(kind).values() if each.is_deleting]
        if orphans and draw < 0.6:
            await self._settle(self.one_of(servers or orphans))
        elif going and draw < 0.7:
            await self._abandon(*self.one_of(going))
        elif draw < 0.85 and (living := self.living("server")):
            await self._lose(self.one_of(living))
        elif things := [(kind, name) for kind in SORTS for name in seen.of(kind)]:
            kind, name = self.one_of(things)
            await self.send("POST", f"{RECOVERY}/{SORTS[kind]}/{name}/retry")

    async def tidy(self) -> None:
        """Have removed what is nobody's."""
        for orphan in list((await self.system.see()).of("orphan")):
            await self.send("POST", f"{RECOVERY}/orphans/{orphan}/forget", {"remove": True})

    async def _lose(self, server: str) -> None:
        """Have a server deleted, and abandoned before its controller comes to it: so it is left at its cloud."""
        async with self.system.uncontrolled("servers"):
            await self.remove("server", server)
            found = (await self.system.see()).of("server").get(server)
            if found is not None and found.is_deleting:
                await self._abandon("server", found)

    async def _abandon(self, kind: str, found: Resource) -> None:
        if not is_abandoned(found):
            self.history.abandoned.add(found.uid)
            await self.send("POST", f"{RECOVERY}/{SORTS[kind]}/{found.name}/abandon", {"reason": "it takes too long"})

    async def _settle(self, orphan: Any) -> None:
        """Do something about an orphan: a server becomes an object again, if its network is still there."""
        server = orphan.spec.object_id
        networks = [id_ for kind, id_ in self.history.homes.get(("server", server), ()) if kind == "network"]
        if orphan.spec.subject == "server" and networks and self.chance(0.7):
            await self._adopt(orphan.name, server, networks[0])
        else:
            await self.send("POST", f"{RECOVERY}/orphans/{orphan.name}/forget", {"remove": self.chance(0.7)})

    async def _adopt(self, orphan: str, server: str, network: str) -> None:
        """Its image is the one that it has at its cloud, and so on: nobody knows here which that is."""
        names = sorted(map(str, self.history.facts["name", "server", server].possible))
        requests: Requests = {
            (THERE, "server", server): THERE,
            ("image", "server", server): UNKNOWN,
            ("public", "server", server): UNKNOWN,
        }
        body = {"name": self.one_of(names), "networkId": network}
        with self.history.asking(requests) as asked:
            _, asked.verdict = await self.write("POST", f"{RECOVERY}/orphans/{orphan}/adopt", body)


async def help_out(system: RegionSystem) -> None:
    """Do what only users can do."""
    await Services(system).release()
    await Operators(system).tidy()
