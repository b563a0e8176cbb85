"""A real API server: creates by 64 callers with our informer running, beside the same client without one; opening."""

import asyncio
import gc
import itertools
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

from bench.bed import Bed
from bench.callers import by_callers
from bench.kinds import MACHINE, REGISTRY, SEALER, machine
from bench.loopwatch import watched
from bench.report import Measure, at_least, at_most, figure
from bench.rounds import alternate, good_rate
from remuda.kernel.clock import SystemClock
from remuda.store.codec import Codec
from remuda.store.kubernetes.client import ApiClient, Login, kubeconfig
from remuda.store.kubernetes.resource_client import ResourceApi
from remuda.store.kubernetes.store import KubernetesSettings, open_kubernetes_store
from remuda.store.lifecycle import new_resource
from tests.kubernetes.cluster import Cluster, given_cluster, own_cluster

__all__ = ["measures"]

_OPENED = 5_000
_LIMIT_MS = 10.0


def measures(bed: Bed) -> Iterator[Measure]:
    """Measure creates against KUBECONFIG if it is set, else against an API server that is built and started here."""
    with ExitStack() as stack:
        config = os.environ.get("KUBECONFIG")
        running = given_cluster(config, REGISTRY) if config else own_cluster(bed.directory("plane"), REGISTRY)
        cluster = stack.enter_context(running)
        ours, bare = asyncio.run(_compare(cluster, bed))
        yield at_least(0.7, "creates by 64 callers", ours, bare, "1/s")
        yield from asyncio.run(_open(cluster))


async def _compare(cluster: Cluster, bed: Bed) -> list[float]:
    """Return our rate, and that of bare posts into a namespace that our informer does not follow."""
    source, numbers, count = kubeconfig(cluster.kubeconfig), itertools.count(), bed.sizes.posts
    settings = KubernetesSettings(namespace=cluster.namespace())
    store = await open_kubernetes_store(source, REGISTRY, SEALER, settings=settings)
    client = ApiClient(Login(source), SystemClock())
    api, codec = ResourceApi(MACHINE, client, namespace=cluster.namespace()), Codec(MACHINE, SEALER)

    async def our_creates(_: int) -> float:
        machines = [machine(next(numbers)) for _ in range(count)]
        start = time.perf_counter()
        await by_callers(store.create, machines)
        return count / (time.perf_counter() - start)

    async def bare_creates(_: int) -> float:
        new = [new_resource(REGISTRY, MACHINE, machine(next(numbers))) for _ in range(count)]
        documents = [(codec.encode(each), each.name) for each in new]
        start = time.perf_counter()
        await by_callers(lambda document: api.create(*document), documents)
        return count / (time.perf_counter() - start)

    found = await alternate(bed.sizes.posting_rounds, our_creates, bare_creates)
    await store.close()
    await client.close()
    return [good_rate(values) for values in found]


async def _open(cluster: Cluster) -> list[Measure]:
    """Open a store over many objects that are there already, and see what blocks the loop."""
    source, namespace, count = kubeconfig(cluster.kubeconfig), cluster.namespace(), _OPENED
    client, codec = ApiClient(Login(source), SystemClock()), Codec(MACHINE, SEALER)
    api = ResourceApi(MACHINE, client, namespace=namespace)
    new = [new_resource(REGISTRY, MACHINE, machine(number)) for number in range(count)]
    documents = [(codec.encode(each), each.name) for each in new]
    await by_callers(lambda document: api.create(*document), documents)
    await client.close()
    del new, documents
    gc.collect()
    gc.freeze()  # what the benchmark itself has made is not the store's to be looked through
    start = time.perf_counter()
    async with watched() as held:
        settings = KubernetesSettings(namespace=namespace)
        store = await open_kubernetes_store(source, REGISTRY, SEALER, settings=settings)
        took_s = time.perf_counter() - start
    gc.unfreeze()
    await store.close()
    title = f"opening with {count:,} objects"
    return [
        at_most(1, f"blocks the event loop: {title}", held.cpu_s * 1_000, _LIMIT_MS, "ms CPU"),
        figure(title, took_s * 1_000, "ms"),
    ]
