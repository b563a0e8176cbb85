"""The power goes at any moment in the life of a load balancer and of file storage, and the cloud is ill besides.

What was acknowledged is kept, and nothing is left over: not at the cloud, and not at identity, which are outside our
store and remember what they were told.
"""

from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import apsw
from structlog.testing import capture_logs

from remuda.kernel.errors import RemudaError
from remuda.providers.simulated.catalogue import load_catalogues, without_delays
from remuda.providers.simulated.provider import open_cloud
from remuda.region.filestorage.routes import FILE_STORAGE
from remuda.region.kinds.common import GIB
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.kinds.networks import Address
from remuda.region.loadbalancers.routes import LOAD_BALANCERS
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.region import loadbalancer_requests as balancing
from tests.kit.region.filestorage_requests import update, wanted
from tests.kit.region.identity_port import MemoryIdentity
from tests.kit.region.resource_api import make_region
from tests.kit.region.storage import HOME, TENANT, StorageEnvironment, open_storage
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import SEALER

STEPS, FIRST_DELETE = 7, 5
ILLS = {
    "cloud.error": 0.1,
    "cloud.error_after_write": 0.1,
    "cloud.timeout_after_write": 0.05,
    "cloud.stale": 0.2,
    "cloud.not_visible_yet": 0.2,
}


class Story:
    """What a tenant does, one request after the other, each under its own key; it can be told again from the top."""

    def __init__(self, network: str) -> None:
        self.network = network
        self.balancer = self.storage = ""
        self.told = 0
        """How many of its requests were acknowledged at most."""

    async def tell(self, region_storage: StorageEnvironment) -> None:
        """Go on until the end, or until somebody says that it cannot be done now."""
        for number, step in enumerate(self._steps(region_storage)):
            reply = await step(f"step-{number}")
            if reply.status == 503:
                return
            is_done_before = number >= FIRST_DELETE and reply.status == 404
            assert reply.status < 300 or is_done_before, (number, reply)
            self.told = max(self.told, number + 1)
            await region_storage.world.clock.sleep(1)

    def _steps(self, region_storage: StorageEnvironment) -> Iterator[Callable[[str], Awaitable[Reply]]]:
        balancers, storages = region_storage.balancers.ask(TENANT), region_storage.storages.ask(TENANT)

        async def make_balancer(key: str) -> Reply:
            reply = await balancers.post(LOAD_BALANCERS, balancing.wanted(self.network), idempotency_key=key)
            self.balancer = _id(reply) or self.balancer
            return reply

        async def make_storage(key: str) -> Reply:
            reply = await storages.post(FILE_STORAGE, wanted(self.network), idempotency_key=key)
            self.storage = _id(reply) or self.storage
            return reply

        async def publish(key: str) -> Reply:
            body = balancing.update(publicIP=True)
            return await balancers.put(f"{LOAD_BALANCERS}/{self.balancer}", body, idempotency_key=key)

        async def enlarge(key: str) -> Reply:
            body = update(self.network, sizeGiB=20)
            return await storages.put(f"{FILE_STORAGE}/{self.storage}", body, idempotency_key=key)

        async def shrink(key: str) -> Reply:
            return await storages.put(f"{FILE_STORAGE}/{self.storage}", update(sizeGiB=5), idempotency_key=key)

        yield make_balancer
        yield make_storage
        yield publish
        yield enlarge
        yield shrink
        yield lambda key: storages.delete(f"{FILE_STORAGE}/{self.storage}", idempotency_key=key)
        yield lambda key: balancers.delete(f"{LOAD_BALANCERS}/{self.balancer}", idempotency_key=key)


def _id(reply: Reply) -> str:
    return reply.json["metadata"]["id"] if reply.status == 201 else ""


async def check_kept(region_storage: StorageEnvironment, story: Story) -> None:
    """What was acknowledged is there, and costs what it costs; what was asked next may be as well: nobody knows."""
    if not 1 <= story.told < FIRST_DELETE:
        return
    balancer = await region_storage.store.get(LoadBalancer, story.balancer)
    assert balancer.spec.public_ip or story.told < 3
    if story.told >= 2:
        storage = await region_storage.store.get(FileStorage, story.storage)
        sizes = [10, 10, 20, 5][story.told - 2 : story.told]
        assert storage.spec.size // GIB in sizes


async def check_paid(region_storage: StorageEnvironment) -> None:
    """What there is costs what it costs, and nothing else does."""
    storages, balancers = (
        (await region_storage.store.list(FileStorage)).items,
        (await region_storage.store.list(LoadBalancer)).items,
    )
    assert region_storage.identity.total("filestorage", HOME) == sum(each.spec.size for each in storages)
    assert region_storage.identity.total("loadbalancers", HOME) == len(balancers)
    assert region_storage.identity.total("publicips", HOME) == sum(each.spec.public_ip for each in balancers)


async def all_is_gone(region_storage: StorageEnvironment) -> None:
    """See that nothing is left of either, anywhere."""
    for kind in (LoadBalancer, FileStorage, Address):
        assert not (await region_storage.store.list(kind)).items
    await check_paid(region_storage)
    held = [
        name for each in region_storage.identity.references.values() for name in each if name.startswith("filestorages")
    ]
    assert not held
    provider = region_storage.provider
    assert provider.load_balancers is not None
    assert provider.file_storages is not None
    assert not [each async for part in provider.load_balancers.balancers() for each in part]
    assert not [each async for part in provider.file_storages.storages() for each in part]


def lose_power(sync: int, keep: Keep) -> bool:
    """Lose power at the nth sync, tell the story again from the top, and tell whether the power went at all."""
    reached: list[bool] = []

    async def scenario(world: World) -> None:
        catalogue = without_delays(load_catalogues()["sim-north"])
        identity = MemoryIdentity({HOME}, limits={"filestorage": 20 * GIB, "loadbalancers": 1, "publicips": 1})
        cloud = open_cloud(None, catalogue, clock=world.clock, sealer=SEALER, randomness=world.randomness)
        async with open_storage(world, identity, cloud, at_work=True) as region_storage:
            await make_region(region_storage.store)
            await region_storage.keeper.sync()
            story = Story(await region_storage.make_network())
        world.plan_power_cut(sync, keep=keep)
        try:
            async with open_storage(world, identity, cloud, at_work=True) as region_storage:
                await story.tell(region_storage)
        except (RemudaError, apsw.Error):
            pass
        reached.append(world.disk.is_cut)
        world.power_cut(keep)
        async with open_storage(world, identity, cloud, at_work=True) as region_storage:
            await check_kept(region_storage, story)
            await region_storage.rest()
            await check_paid(region_storage)
            await story.tell(region_storage)
            assert story.told == STEPS
            await region_storage.rest()
            await all_is_gone(region_storage)
            await region_storage.confirm_absence()
        await cloud.stop()

    with capture_logs():
        simulate(scenario, [sync])
    return reached[0]


def test_a_loss_of_power_at_any_write_leaves_nothing_lost_and_nothing_over() -> None:
    for keep in ("none", "all"):
        syncs = next(sync for sync in count(1) if not lose_power(sync, keep)) - 1
        assert syncs > 15


@options(seeds=16, rates=ILLS)
async def test_over_an_ill_cloud_there_is_one_of_each_and_then_none(region_storage: StorageEnvironment) -> None:
    with capture_logs():
        for _ in range(100):
            await region_storage.keeper.sync()
        network = await region_storage.make_network()
        await region_storage.world.clock.sleep(1800)
        balancer = await region_storage.make_balancer(balancing.wanted(network, publicIP=True))
        storage = await region_storage.make_storage(wanted(network))
        await region_storage.world.clock.sleep(1800)
        provider = region_storage.provider
        region_storage.world.faults.stop()
        await region_storage.world.clock.sleep(1800)
        assert provider.load_balancers is not None
        assert provider.file_storages is not None
        assert len([each async for part in provider.load_balancers.balancers() for each in part]) == 1
        assert len([each async for part in provider.file_storages.storages() for each in part]) == 1
        for kind, name in ((LoadBalancer, balancer), (FileStorage, storage)):
            assert (await region_storage.available(kind, name)).reason == "Provisioned"
        assert (await region_storage.storages.ask(TENANT).delete(f"{FILE_STORAGE}/{storage}")).status == 202
        assert (await region_storage.balancers.ask(TENANT).delete(f"{LOAD_BALANCERS}/{balancer}")).status == 202
        await region_storage.world.clock.sleep(1800)
        await all_is_gone(region_storage)
