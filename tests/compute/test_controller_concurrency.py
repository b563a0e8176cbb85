"""Everything at once: users who make, change and delete, and what happens behind their backs. Then the books agree."""

import random
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from remuda.compute.kinds import ComputeInstance
from remuda.compute.names import INCARNATION, INSTANCE_TAG
from remuda.kernel.errors import RemudaError
from remuda.providers.contract.common import WrongState
from remuda.region.kinds.servers import Server
from tests.kit.compute.controllers import SMALL, at_cloud, network_of, rest, restarted
from tests.kit.compute.environment import INSTANCES, JAMMY, ComputeEnvironment
from tests.kit.compute.requests import DEBIAN, at, held
from tests.kit.environment import options
from tests.kit.region.environment import STANDARD

STEPS = 60


class _Crowd:
    """Does one thing after the other, whatever comes of it."""

    def __init__(self, compute: ComputeEnvironment, network: str, seed: int) -> None:
        self.compute, self.network, self.random = compute, network, random.Random(seed)
        self.deeds = (self.make, self.make, self.change, self.change, self.delete, self.remove_server, self.at_provider)

    async def act(self) -> None:
        """Do something, and maybe let some time pass."""
        await self.random.choice(self.deeds)()
        await self.compute.clock.sleep(self.random.choice([0.0, 0.01, 0.1, 0.5, 1.0, 3.0]))

    async def make(self) -> None:
        """Make an instance; the name may be taken, and the quota used up."""
        body = self.compute.wanted(self.network, f"i{self.random.randrange(6)}", imageId=DEBIAN)
        assert (await self.compute.root.post(INSTANCES, body)).status in {201, 403, 409}

    async def change(self) -> None:
        """Change an instance; somebody else may be at it, or it may be going."""
        found = await self._any()
        if found is None:
            return
        read = await self.compute.root.get(at(found))
        if read.status != 200:
            return
        spec = read.json["spec"] | self._request()
        body = {"metadata": {"name": read.json["metadata"]["name"]}, "spec": spec}
        assert (await self.compute.root.put(at(found), body)).status in {202, 400, 403, 404, 409}

    def _request(self) -> dict[str, Any]:
        return self.random.choice(
            [
                {"flavorId": SMALL},
                {"flavorId": STANDARD},
                {"imageId": JAMMY},
                {"imageId": DEBIAN},
                {"networking": {"publicIP": self.random.random() < 0.5}},
            ]
        )

    async def delete(self) -> None:
        """Delete an instance."""
        found = await self._any()
        if found is not None:
            assert (await self.compute.root.delete(at(found))).status in {202, 404, 409}

    async def remove_server(self) -> None:
        """Remove a server behind compute's back."""
        servers = [each.name for each in (await self.compute.store.list(Server)).items]
        if servers and self.random.random() < 0.4:
            reply = await self.compute.region.root.delete(f"/api/v2/servers/{self.random.choice(servers)}")
            assert reply.status in {202, 404}

    async def at_provider(self) -> None:
        """Do something to a server where it is."""
        machines, operator = at_cloud(self.compute), self.compute.region.north.operator
        if machines:
            deed = self.random.choice([operator.stop, operator.migrate, operator.vanish])
            with suppress(RemudaError, WrongState):
                deed(self.random.choice(machines).id)

    async def _any(self) -> str | None:
        found = [each.name for each in (await self.compute.store.list(ComputeInstance)).items]
        return self.random.choice(found) if found else None


async def _agree(compute: ComputeEnvironment) -> None:
    """See that instances, servers, the cloud and what is held agree."""
    instances = {each.name: each for each in (await compute.store.list(ComputeInstance)).items}
    servers = (await compute.store.list(Server)).items
    tags = [{tag.name: tag.value for tag in server.spec.tags} for server in servers]
    assert Counter(each[INSTANCE_TAG] for each in tags) == Counter(list(instances)), "one server for each, and no other"
    assert all(each[INCARNATION] == instances[each[INSTANCE_TAG]].uid for each in tags)
    for server in servers:
        spec = instances[server.name].spec
        assert (server.spec.flavor_id, server.spec.image.id) == (spec.flavor_id, spec.image_id)
        assert server.spec.has_public_ip == spec.wants_public_ip
    assert len(at_cloud(compute)) == len(instances)
    expected = [
        {"servers": 1} | ({"floatingips": 1} if each.spec.wants_public_ip else {}) for each in instances.values()
    ]
    assert sorted(sorted(each.items()) for each in await held(compute)) == sorted(
        sorted(each.items()) for each in expected
    )
    for name in instances:
        read = (await compute.root.get(at(name))).json
        assert read["metadata"]["provisioningStatus"] == "provisioned", read
        server = await compute.store.get(Server, name)
        status = read["status"]
        assert (status["powerState"], status["privateIP"]) == (server.status.phase, server.status.private_ip)


@pytest.mark.parametrize("seed", range(2))
@options(lambda seed: {"seed": seed})
async def test_c08_whatever_users_do_and_whatever_happens_the_books_agree_in_the_end(
    compute: ComputeEnvironment, seed: int
) -> None:
    crowd = _Crowd(compute, await network_of(compute), seed)
    for _ in range(STEPS):
        await crowd.act()

    async def go_on() -> None:
        for _ in range(3):
            await crowd.remove_server()

    async with restarted(compute, go_on):
        await rest(compute, 900)
        await _agree(compute)
