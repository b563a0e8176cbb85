"""What releasing costs the API server, and that it lets nothing go too early."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import structs

from tests.kit.sample_kinds import CORRAL, HORSE, Corral, Horse, HorseSpec, corral, horse
from tests.kubernetes.cluster import Cluster, OwnCluster
from tests.kubernetes.harness import opened
from tests.kubernetes.steps import troubled, until

pytestmark = pytest.mark.kubernetes

PAGE = 500


async def test_the_collector_does_not_wake_for_what_frees_nothing(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, _):
        await store.create(corral("north"))
        bella = await store.create(horse("bella", spec=HorseSpec(corrals=("north",))))
        await asyncio.sleep(0.2)
        runs, lists = store._collector.runs, store.requests["list", HORSE.plural]
        for number in range(20):
            bella = await store.update(structs.replace(bella, spec=structs.replace(bella.spec, colour=f"c-{number}")))
        await asyncio.sleep(0.2)
        assert store._collector.runs == runs
        await store.update(structs.replace(bella, spec=HorseSpec()))
        await until(lambda: store._collector.runs > runs)
        assert store.requests["list", HORSE.plural] == lists, "nothing is marked, so nobody needs to look"


async def test_of_a_kind_of_many_our_own_index_is_asked(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace()) as store:
        free, used = await store.create(corral("free")), await store.create(corral("used"))
        for start in range(0, PAGE + 20, 40):
            await asyncio.gather(*(store.create(horse(f"h-{number}")) for number in range(start, start + 40)))
        last = await store.create(horse("zorro", spec=HorseSpec(corrals=("used",))))
        for target in (free, used):
            await store.delete(Corral, target.name, uid=target.uid)
        lists = store.requests["list", HORSE.plural]
        writing = asyncio.create_task(_keep_busy(store.create))
        await until(lambda: store._known.find(CORRAL, "free") is None)
        writing.cancel()
        assert store.requests["list", HORSE.plural] - lists <= 2
        assert (await store.get(Corral, "used")).is_deleting
        await store.update(structs.replace(last, spec=HorseSpec()))
        await until(lambda: store._known.find(CORRAL, "used") is None)


async def _keep_busy(create: Callable[[Horse], Awaitable[Horse]]) -> None:
    for number in itertools.count():
        await create(horse(f"busy-{number}"))
