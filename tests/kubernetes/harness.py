"""The contract's harness over an API server."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.sealing import Sealer
from remuda.store.contract import Store
from remuda.store.kubernetes.client import kubeconfig
from remuda.store.kubernetes.journal import Sink
from remuda.store.kubernetes.store import KubernetesPorts, KubernetesSettings, KubernetesStore, open_kubernetes_store
from remuda.store.logs import Log
from remuda.store.objects import Resource
from remuda.store.readside.reader import ReaderSettings
from remuda.store.readside.reads import MaintenanceSettings
from tests.kit.proofs.store_contract.harness import Harness, eventually
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.store import SEALER
from tests.kubernetes.cluster import Cluster

SETTINGS = KubernetesSettings(
    reader=ReaderSettings(tail_changes=2, slice_objects=2, bookmark_interval_s=0.1, ahead_timeout_s=1.0),
    maintenance=MaintenanceSettings(history_age=timedelta(0), interval_s=86_400),
)


class KubernetesHarness:
    """The way behind the back of a store is to be another client of the same API server."""

    def __init__(self, store: KubernetesStore, cluster: Cluster, namespace: str) -> None:
        self.sound = store
        self.store: Store = store
        self.log: Log = store
        self.clock: Clock = SystemClock()
        self.seed = 0
        self._cluster = cluster
        self._namespace = namespace

    async def plant(self, kind: type[Resource], name: str, patch: Mapping[str, Any]) -> None:
        path = self._path(kind, name)
        planted = self._cluster.request("PATCH", path, patch)
        if "status" in patch:
            planted = self._cluster.request("PATCH", f"{path}/status", {"status": patch["status"]})
        version = planted["metadata"]["resourceVersion"]

        async def seen() -> bool:
            return bool((await self.store.get(kind, name)).version == version)

        await eventually(self, "what was planted arrives", seen)

    async def raw(self, kind: type[Resource], name: str) -> Mapping[str, Any]:
        document: dict[str, Any] = self._cluster.request("GET", self._path(kind, name))
        return document

    async def forget_history(self) -> None:
        await self.sound.maintenance.compact()

    async def next_version(self) -> str:
        return str(max(feed.reached for feed in self.sound._reader.feeds()) + 1)

    async def unreachable_version(self) -> str:
        return str(10**12)

    def _path(self, kind: type[Resource], name: str) -> str:
        of = REGISTRY.of(kind)
        return f"/apis/{of.api_version}/namespaces/{self._namespace}/{of.plural}/{name}"


def settings_for(namespace: str) -> KubernetesSettings:
    return KubernetesSettings(namespace=namespace, reader=SETTINGS.reader, maintenance=SETTINGS.maintenance)


@asynccontextmanager
async def opened(
    cluster: Cluster,
    namespace: str,
    config: str | None = None,
    *,
    sealer: Sealer = SEALER,
    sinks: Mapping[str, Sink] | None = None,
    **settings: Any,
) -> AsyncIterator[KubernetesStore]:
    """Open a store in a namespace for the time of a `with` block."""
    source, ports = kubeconfig(config or cluster.kubeconfig), KubernetesPorts(sinks=sinks or {})
    chosen = replace(settings_for(namespace), **settings)
    store = await open_kubernetes_store(source, REGISTRY, sealer, ports=ports, settings=chosen)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def api_server(cluster: Cluster) -> AsyncIterator[Harness]:
    namespace = cluster.namespace()
    async with opened(cluster, namespace) as store:
        yield KubernetesHarness(store, cluster, namespace)
