"""The limit of the number of objects holds over processes that create at the same time on one API server."""

import asyncio

import pytest

from remuda.kernel.errors import TooManyObjects
from remuda.store.kubernetes.store import KubernetesStore
from tests.kit.sample_kinds import FARM, MOST_PASTURES, PASTURE, Pasture, pasture
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.harness import opened
from tests.kubernetes.steps import until

pytestmark = pytest.mark.kubernetes
ROUNDS = 10


def number_of(store: KubernetesStore, farm: str) -> int:
    return store._reader.count_labelled(PASTURE, FARM, farm, 100)


async def create(store: KubernetesStore, name: str, farm: str) -> bool:
    try:
        await store.create(pasture(name, labels={FARM: farm}))
    except TooManyObjects:
        return False
    return True


async def test_m27_processes_that_race_for_the_last_places_never_keep_more_objects_than_the_limit(
    cluster: Cluster,
) -> None:
    namespace = cluster.namespace()
    async with (
        opened(cluster, namespace) as first,
        opened(cluster, namespace) as second,
        opened(cluster, namespace) as third,
    ):
        stores = (first, second, third)
        for number in range(ROUNDS):
            farm = f"farm-{number}"
            accepted = await asyncio.gather(
                *(create(store, f"{farm}-{at}-{each}", farm) for at, store in enumerate(stores) for each in range(3))
            )
            assert sum(accepted) == MOST_PASTURES

            await until(lambda farm=farm: [number_of(store, farm) for store in stores] == [MOST_PASTURES] * len(stores))  # type: ignore[misc]  # mypy cannot infer a default


async def test_a_place_that_is_free_again_can_be_taken_by_another_process(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    async with opened(cluster, namespace) as first, opened(cluster, namespace) as second:
        for number in range(MOST_PASTURES):
            assert await create(first, f"full-{number}", "full")
        assert not await create(second, "one-more", "full")
        found = await first.get(Pasture, "full-0")
        await first.delete(Pasture, found.name, uid=found.uid)

        await until(lambda: number_of(second, "full") == MOST_PASTURES - 1)
        assert await create(second, "next", "full")
