"""Customers who live with one thing for a while: they make it, use it, change it and remove it.

By chance alone that is seldom done to the same thing, on a machine on which most things do not live long.
"""

from typing import Any

from remuda.region.filestorage.classes import class_id
from tests.kit.region.environment import STANDARD, UBUNTU
from tests.kit.sim_region.customer import PATHS
from tests.kit.sim_region.customers import STORAGE_CLASS, Tenant

_PAUSE_S, _ATTEMPTS = 4.0, 6
_VERBS = ("stop", "start", "softreboot", "hardreboot")


class Keepers(Tenant):
    """A security group, a load balancer, file storage or a server, from its beginning to its end."""

    async def act(self) -> None:
        """Do one thing."""
        if network := self.network():
            await self.one_of((self._group, self._balancer, self._storage, self._server, self._server))(network)

    async def _group(self, network: str) -> None:
        rule = {"direction": "ingress", "protocol": "tcp", "port": 443}
        made = await self._made("group", network, {"rules": []}, ports=())
        await self._changed("group", made, {"rules": [rule]}, ports=(443,))
        await self._removed("group", made)

    async def _balancer(self, network: str) -> None:
        listener = {"name": "http", "protocol": "tcp", "port": 80, "pool": {"members": []}}
        made = await self._made("balancer", network, {"publicIP": False, "listeners": [listener]}, public=False)
        await self._changed("balancer", made, {"publicIP": True}, public=True)
        await self._removed("balancer", made)

    async def _storage(self, network: str) -> None:
        place, region = self.history.known["network"][network], self.history.regions[network]
        spec = {
            "organizationId": place.organization,
            "projectId": place.project,
            "regionId": region,
            "storageClassId": class_id(region, STORAGE_CLASS),
            "sizeGiB": 1,
            "storageType": {},
        }
        made = await self.make("storage", spec, place, size=1 << 30)
        if made:
            self.history.regions[made] = region
        await self._changed("storage", made, {"sizeGiB": 2}, size=2 << 30)
        await self._removed("storage", made)

    async def _server(self, network: str) -> None:
        spec = {"flavorId": STANDARD, "imageId": UBUNTU, "networking": {"publicIP": False}}
        made = await self._made("server", network, spec, image=UBUNTU, public=False)
        if not made:
            return
        path = f"{PATHS['server']}/{made}"
        await self._wait_until_there(path)
        key = await self.send("GET", f"{path}/sshkey")
        if key.status == 200:
            self.history.private_keys.add(key.json["privateKey"])
        for verb in _VERBS:
            await self.send("POST", f"{path}/{verb}")
            await self._wait()
        await self.send("GET", f"{path}/consoleoutput")
        await self.remove("server", made)

    async def _made(self, kind: str, network: str, spec: dict[str, Any], **said: Any) -> str:
        place = self.history.known["network"][network]
        return await self.make(kind, {"networkId": network, **spec}, place, ("network", network), **said)

    async def _changed(self, kind: str, made: str, spec: dict[str, Any], **said: Any) -> None:
        if made:
            await self._wait()
            await self.change(kind, made, spec, **said)

    async def _removed(self, kind: str, made: str) -> None:
        if made:
            await self._wait()
            await self.remove(kind, made)

    async def _wait_until_there(self, path: str) -> None:
        for _ in range(_ATTEMPTS):
            await self._wait()
            found = await self.send("GET", path)
            if found.status == 200 and found.json["metadata"]["provisioningStatus"] == "provisioned":
                return

    async def _wait(self) -> None:
        await self.system.machine.clock.sleep(_PAUSE_S)
