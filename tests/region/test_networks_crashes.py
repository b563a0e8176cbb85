"""The power goes at any moment of a network's life: what was acknowledged is kept, and nothing is left over.

Identity and the cloud are outside our store, and remember what they were told.
"""

from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import apsw
from structlog.testing import capture_logs

from remuda.kernel.errors import RemudaError
from remuda.region.authorities.routes import AUTHORITIES
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.networks.routes import NETWORKS
from remuda.region.securitygroups.routes import SECURITY_GROUPS
from remuda.store.objects import Resource
from tests.kit.asgi.contract import Reply
from tests.kit.region.identity_port import MemoryIdentity
from tests.kit.region.network_requests import KEY, all_is_gone
from tests.kit.region.networks import HOME, TENANT, NetworksEnvironment, network, open_networks, simulated_cloud
from tests.kit.region.resource_api import ORG, PROJECT, make_region
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.runner import World, simulate

FIRST_DELETE, STEPS = 4, 6
Step = Callable[[str], Awaitable[Reply]]


class Story:
    """What a tenant does, one request after the other, each under its own key; it can be told again from the top."""

    def __init__(self) -> None:
        self.network = self.group = self.authority = ""
        self.told = 0
        """How many of its requests were acknowledged at most."""

    async def tell(self, region_networks: NetworksEnvironment) -> None:
        """Go on until the end, or until somebody says that it cannot be done now."""
        for number, step in enumerate(self._steps(region_networks)):
            reply = await step(f"step-{number}")
            if reply.status == 503:
                return
            is_done_before = number >= FIRST_DELETE and reply.status == 404
            assert reply.status < 300 or is_done_before, reply
            self.told = max(self.told, number + 1)
            await region_networks.world.clock.sleep(1)

    def _steps(self, region_networks: NetworksEnvironment) -> Iterator[Step]:
        networks, groups, authorities = (
            capacity.ask(TENANT)
            for capacity in (region_networks.networks, region_networks.groups, region_networks.authorities)
        )

        async def make_network(key: str) -> Reply:
            reply = await networks.post(NETWORKS, network(), idempotency_key=key)
            self.network = _id(reply) or self.network
            return reply

        async def make_group(key: str) -> Reply:
            rules = [{"direction": "ingress", "protocol": "tcp", "port": 22}]
            body = {"metadata": {"name": "sg"}, "spec": {"networkId": self.network, "rules": rules}}
            reply = await groups.post(SECURITY_GROUPS, body, idempotency_key=key)
            self.group = _id(reply) or self.group
            return reply

        async def make_authority(key: str) -> Reply:
            spec = {"organizationId": ORG, "projectId": PROJECT, "publicKey": KEY}
            reply = await authorities.post(AUTHORITIES, {"metadata": {"name": "ca"}, "spec": spec}, idempotency_key=key)
            self.authority = _id(reply) or self.authority
            return reply

        async def change_network(key: str) -> Reply:
            body = {"metadata": {"name": "net"}, "spec": {"dnsNameservers": ["1.1.1.1"]}}
            return await networks.put(f"{NETWORKS}/{self.network}", body, idempotency_key=key)

        yield make_network
        yield make_group
        yield make_authority
        yield change_network
        yield lambda key: authorities.delete(f"{AUTHORITIES}/{self.authority}", idempotency_key=key)
        yield lambda key: networks.delete(f"{NETWORKS}/{self.network}", idempotency_key=key)


def _id(reply: Reply) -> str:
    return reply.json["metadata"]["id"] if reply.status == 201 else ""


async def check_kept(region_networks: NetworksEnvironment, story: Story) -> None:
    """What was acknowledged is there; what was asked next may be as well: nobody knows."""
    if story.told >= FIRST_DELETE:
        return
    made: list[tuple[type[Resource], str]] = [
        (Network, story.network),
        (SecurityGroup, story.group),
        (SSHCertificateAuthority, story.authority),
    ]
    for kind, name in made[: story.told]:
        assert not (await region_networks.store.get(kind, name)).is_deleting


def lose_power(sync: int, keep: Keep) -> bool:
    """Lose power at the nth sync, tell the story again from the top, and tell whether the power went at all."""
    reached: list[bool] = []

    async def scenario(world: World) -> None:
        story, identity, cloud = Story(), MemoryIdentity({HOME}, limits={"networks": 1}), simulated_cloud(world)
        async with open_networks(world, identity=identity, cloud=cloud, at_work=False) as region_networks:
            await make_region(region_networks.store)
        world.plan_power_cut(sync, keep=keep)
        try:
            async with open_networks(world, identity=identity, cloud=cloud, at_work=True) as region_networks:
                await story.tell(region_networks)
        except (RemudaError, apsw.Error):
            pass
        reached.append(world.disk.is_cut)
        world.power_cut(keep)
        async with open_networks(world, identity=identity, cloud=cloud, at_work=True) as region_networks:
            await check_kept(region_networks, story)
            await region_networks.rest()
            await story.tell(region_networks)
            assert story.told == STEPS
            await region_networks.rest()
            await all_is_gone(region_networks)
            assert not (await region_networks.store.list(SSHCertificateAuthority)).items
            await region_networks.confirm_absence()
        await cloud.stop()

    with capture_logs():
        simulate(scenario, [sync])
    return reached[0]


def test_a_loss_of_power_at_any_write_leaves_nothing_lost_and_nothing_over() -> None:
    for keep in ("none", "all"):
        syncs = next(sync for sync in count(1) if not lose_power(sync, keep)) - 1
        assert syncs > 15
