"""Creates by 64 callers on a real API server, with our informer running, beside the same client without one."""

import asyncio
import itertools
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

from bench.report import Measure
from bench.rounds import alternate, good_rate
from bench.store.bed import Bed, at_least
from bench.store.kinds import MACHINE, REGISTRY, SEALER, machine
from bench.store.writes import by_callers
from remuda.kernel.clock import SystemClock
from remuda.store.codec import Codec
from remuda.store.kubernetes.client import ApiClient
from remuda.store.kubernetes.login import Login
from remuda.store.kubernetes.resources import ResourceApi
from remuda.store.kubernetes.store import KubernetesSettings, kubeconfig, open_kubernetes_store
from remuda.store.lifecycle import newborn
from tests.kubernetes.cluster import Cluster, given_cluster, own_cluster

__all__ = ["measures"]


def measures(bed: Bed) -> Iterator[Measure]:
    """Measure creates against KUBECONFIG if it is set, else against an API server that is built and started here."""
    with ExitStack() as stack:
        config = os.environ.get("KUBECONFIG")
        running = given_cluster(config, REGISTRY) if config else own_cluster(bed.directory("plane"), REGISTRY)
        ours, bare = asyncio.run(_compare(stack.enter_context(running), bed))
    yield at_least(0.7, "creates by 64 callers", ours, bare, "1/s")


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
        new = [newborn(REGISTRY, MACHINE, machine(next(numbers))) for _ in range(count)]
        documents = [(codec.encode(each), each.name) for each in new]
        start = time.perf_counter()
        await by_callers(lambda document: api.create(*document), documents)
        return count / (time.perf_counter() - start)

    found = await alternate(bed.sizes.posting_rounds, our_creates, bare_creates)
    await store.close()
    await client.close()
    return [good_rate(values) for values in found]
