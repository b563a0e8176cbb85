"""The search for orphans while the provider does not tell the truth: it may be late, but it harms nobody."""

from contextlib import suppress

from prometheus_client import CollectorRegistry

from remuda.kernel.errors import RemudaError
from remuda.reconcile.ports import ReconcilePorts
from remuda.region.kinds.networks import Network
from remuda.region.kinds.orphans import Orphan
from remuda.region.networks.routes import NETWORKS
from remuda.resources.conventions import identity_of
from tests.kit.environment import options
from tests.kit.region.monitor import monitor_over
from tests.kit.region.networks import TENANT, NetworksEnvironment
from tests.kit.region.resource_api import REGION, clouds_over

RATES = {
    "cloud.stale": 0.2,
    "cloud.duplicate_rows": 0.2,
    "cloud.not_visible_yet": 0.1,
    "cloud.error": 0.05,
    "cloud.error_after_write": 0.05,
    "cloud.timeout_after_write": 0.05,
    "cloud.rate_limited": 0.05,
}


@options(at_work=True, seeds=5, rates=RATES)
async def test_a_search_among_lies_removes_nothing_that_lives_and_forgets_what_is_not_there(
    region_networks: NetworksEnvironment,
) -> None:
    world = region_networks.world
    ports = ReconcilePorts(
        store=region_networks.store, log=region_networks.store, clock=world.clock, randomness=world.randomness
    )
    clouds = clouds_over(world, region_networks.store, region_networks.providers)
    search = (
        monitor_over(ports, region_networks.store, clouds, CollectorRegistry(), list[str]().append)
        .region_tasks(REGION)
        .orphans
    )
    made = [await region_networks.make_network() for _ in range(4)]
    for number in range(40):
        if number in {3, 6}:
            reply = await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{made[number // 3]}")
            assert reply.status == 202
        await world.clock.sleep(300)
        with suppress(RemudaError):
            await search.scan(await clouds.get(REGION))
    world.faults.stop()
    for _ in range(5):
        await world.clock.sleep(300)
        await search.scan(await clouds.get(REGION))
    left = (await region_networks.store.list(Network)).items
    assert {each.name for each in left} == {made[0], made[3]}
    at_cloud = await region_networks.at_cloud()
    assert {name.partition(".")[0] for name in at_cloud["networks"]} == {f"network-{each.name}" for each in left}
    assert {name.partition(".")[0] for name in at_cloud["tenancies"]} == {
        f"identity-{identity_of(each)}" for each in left
    }
    assert (await region_networks.store.list(Orphan)).items == []
    await clouds.close()
