"""What tests of a store in trouble have in common."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from aiohttp import web

from remuda.kernel.errors import Gone
from remuda.store.contract import Change
from remuda.store.kinds import Kind
from remuda.store.kubernetes.store import KubernetesStore
from tests.kit.sample_kinds import Horse
from tests.kubernetes.cluster import Cluster, OwnCluster
from tests.kubernetes.harness import opened
from tests.kubernetes.proxy import Proxy, proxied, write_plain_kubeconfig


class Follower:
    """Keeps a copy of all horses as a controller would: list, watch, and list again when told Gone."""

    def __init__(self, store: KubernetesStore) -> None:
        self.horses: dict[str, Horse] = {}
        self.lists = 0
        self._store = store
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        while True:
            page = await self._store.list(Horse)
            self.lists += 1
            self.horses = {one.name: one for one in page.items}
            told: dict[str, int] = {}
            with suppress(Gone):
                async for event in self._store.watch(Horse, since=page.version):
                    if isinstance(event, Change):
                        name, version = event.resource.name, int(event.version)
                        assert told.get(name, 0) < version, "versions never go back"
                        told[name] = version
                        self._take(event)

    def _take(self, event: Change[Horse]) -> None:
        """Take what is news: the list may have had it already, or something newer."""
        known = self.horses.get(event.resource.name)
        if known is not None and int(known.version) >= int(event.version):
            return
        if event.type == "deleted":
            self.horses.pop(event.resource.name, None)
        else:
            self.horses[event.resource.name] = event.resource

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


@asynccontextmanager
async def following(store: KubernetesStore) -> AsyncIterator[Follower]:
    follower = Follower(store)
    try:
        yield follower
    finally:
        await follower.stop()


async def until(condition: Callable[[], bool], *, seconds: float = 40) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  what is awaited happens in the store, which sets no event of ours
            await asyncio.sleep(0.02)


@asynccontextmanager
async def troubled(cluster: OwnCluster, tmp_path: Path, **options: Any) -> AsyncIterator[tuple[KubernetesStore, Proxy]]:
    """Open a store whose way to the server leads through a proxy."""
    async with proxied(cluster.plane) as proxy:
        config = write_plain_kubeconfig(tmp_path / "kubeconfig", proxy.url)
        async with opened(cluster, cluster.namespace(), config, **options) as store:
            yield store, proxy


def path_of(cluster: Cluster, kind: Kind[Any], name: str = "") -> str:
    """Return the path of a kind, or of one object, in the namespace that was made last."""
    base = f"/apis/{kind.api_version}/namespaces/{cluster.namespaces[-1]}/{kind.plural}"
    return f"{base}/{name}" if name else base


def rejecting(method: str, part: str, status: int = 503, **answer: Any) -> Callable[[web.BaseRequest], Any]:
    """Return a rejection of requests by their method and a part of their path."""

    def reject(request: web.BaseRequest) -> web.Response | None:
        is_meant = request.method == method and part in request.path and "watch" not in request.query
        return web.Response(status=status, **answer) if is_meant else None

    return reject
