"""What a restart costs the API server, and what a long life costs us."""

import asyncio
from dataclasses import replace

import pytest
from msgspec import structs

from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Gone
from remuda.store.codec import Codec
from remuda.store.kubernetes.client import ApiClient, Login, kubeconfig
from remuda.store.kubernetes.resource_client import ResourceApi
from remuda.store.kubernetes.store import open_kubernetes_store
from remuda.store.readside.reads import MaintenanceSettings
from tests.kit.sample_kinds import HORSE, REGISTRY, Horse, HorseSpec, horse
from tests.kit.simulation.store import SEALER
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.harness import opened, settings_for

pytestmark = pytest.mark.kubernetes

OBJECTS = 10_000
PAGE = 500


async def fill(cluster: Cluster, namespace: str) -> None:
    """Post horses as any other client would."""
    client = ApiClient(Login(kubeconfig(cluster.kubeconfig)), SystemClock())
    api, codec = ResourceApi(HORSE, client, namespace=namespace), Codec(HORSE, SEALER)
    numbers = iter(range(OBJECTS))

    async def post() -> None:
        for number in numbers:
            name = f"horse-{number:05}"
            await api.create(codec.encode(horse(name, labels={"herd": str(number % 100)})), name)

    await asyncio.gather(*(post() for _ in range(32)))
    await client.close()


async def test_a_restart_costs_one_paged_list_per_kind_and_no_request_per_object(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    await fill(cluster, namespace)
    async with opened(cluster, namespace) as store:
        assert len((await store.list(Horse)).items) == OBJECTS
        assert len((await store.list(Horse, labels={"herd": "7"})).items) == OBJECTS // 100
        for number in range(0, OBJECTS, 1000):
            await store.get(Horse, f"horse-{number:05}")
        lists = {plural: count for (verb, plural), count in store.requests.items() if verb == "list"}
        assert lists == {kind.plural: 1 for kind in store.registry.kinds} | {HORSE.plural: OBJECTS // PAGE}
        others = {verb for verb, _ in store.requests} - {"list"}
        assert others <= {"watch"}
        assert all(store.requests["watch", kind.plural] <= 1 for kind in store.registry.kinds)


async def test_history_is_bounded_by_its_size(cluster: Cluster) -> None:
    namespace, source = cluster.namespace(), kubeconfig(cluster.kubeconfig)
    settings = replace(settings_for(namespace), maintenance=MaintenanceSettings(history_changes=200, interval_s=86_400))
    store = await open_kubernetes_store(source, REGISTRY, SEALER, settings=settings)
    start = (await store.list(Horse)).version
    changed = await store.create(horse("restless"))
    for number in range(450):
        changed = await store.update(structs.replace(changed, spec=HorseSpec(colour=f"colour-{number}")))
    await store.maintenance.compact()
    kept = store._reader.tables.changes(store._reader.names.kind(HORSE), after=0, limit=1000)
    assert 200 <= len(kept) <= 400
    with pytest.raises(Gone):
        await anext(store.watch(Horse, since=start))
    assert await store.get(Horse, "restless") == changed
    await store.close()
