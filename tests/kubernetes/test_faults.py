"""What an API server does to its clients, done to our store on a real one."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from remuda.kernel.errors import OutcomeUnknown, ServerUnreachable, Unavailable
from remuda.store.kubernetes.store import KubernetesStore
from tests.kit.sample_kinds import HORSE, Horse, horse
from tests.kubernetes.cluster import Cluster, OwnCluster
from tests.kubernetes.harness import opened
from tests.kubernetes.plane.certificates import by_path, write_kubeconfig
from tests.kubernetes.steps import following, troubled, until

pytestmark = pytest.mark.kubernetes


async def write_until(store: KubernetesStore, prefix: str, stopped: asyncio.Event) -> set[str]:
    """Create horses as fast as one client can; return those that were acknowledged."""
    acknowledged: set[str] = set()
    number = 0
    while not stopped.is_set():
        number += 1
        with suppress(Unavailable):
            acknowledged.add((await store.create(horse(f"{prefix}-{number}"))).name)
    return acknowledged


async def survives(cluster: Cluster, trouble: Callable[[], None]) -> None:
    """Write and watch through some trouble: nothing acknowledged is lost, everything is seen, writing goes on."""
    async with opened(cluster, cluster.namespace()) as store, following(store) as follower:
        stopped = asyncio.Event()
        writers = [asyncio.create_task(write_until(store, f"w{number}", stopped)) for number in range(4)]
        await until(lambda: len(follower.horses) > 20)
        await asyncio.to_thread(trouble)
        before = len(follower.horses)
        await until(lambda: len(follower.horses) > before + 20)
        stopped.set()
        acknowledged = set().union(*await asyncio.gather(*writers))
        await until(lambda: acknowledged <= set(follower.horses))
        stored = {one.name: one.version for one in (await store.list(Horse)).items}
        await until(lambda: {name: one.version for name, one in follower.horses.items()} == stored)
        assert acknowledged <= set(stored)


async def test_a_killed_api_server_is_survived(fragile: OwnCluster) -> None:
    await survives(fragile, lambda: fragile.plane.restart("apiserver", pause_s=1))


async def test_a_killed_etcd_is_survived(fragile: OwnCluster) -> None:
    await survives(fragile, lambda: fragile.plane.restart("etcd", pause_s=1))


async def test_a_cut_watch_is_resumed_and_nobody_notices(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy), following(store) as follower:
        for number in range(20):
            await until(lambda: proxy.watches == len(store.registry.kinds))
            assert proxy.cut_watches() == len(store.registry.kinds)
            await store.create(horse(f"h-{number:02}"))
        await until(lambda: len(follower.horses) == 20)
        assert follower.lists == 1
        assert store.requests["list", HORSE.plural] == 1


async def test_a_version_that_is_too_old_leads_to_one_new_list(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    too_old = msgspec.json.encode({"type": "ERROR", "object": {"code": 410, "message": "too old"}}) + b"\n"

    def gone(request: web.BaseRequest) -> web.Response | None:
        is_watch = request.query.get("watch") == "true" and request.path.endswith("horses")
        return web.Response(body=too_old) if is_watch else None

    async with troubled(proxied_cluster, tmp_path) as (store, proxy), following(store) as follower:
        await store.create(horse("before"))
        watches = store.requests["watch", HORSE.plural]
        proxy.reject(gone, times=1)
        proxy.cut_watches()
        await until(
            lambda: store.requests["watch", HORSE.plural] == watches + 2
        )  # one is too old, one follows the list
        assert store.requests["list", HORSE.plural] == 2
        await store.create(horse("after"))
        await until(lambda: set(follower.horses) == {"before", "after"})
        assert follower.lists == 1, "nothing changed meanwhile, so watchers need not know"


async def test_what_changed_while_nobody_watched_is_told_as_gone(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    changed = threading.Event()

    def gone(request: web.BaseRequest) -> web.Response | None:
        is_watch = request.query.get("watch") == "true" and request.path.endswith("horses")
        return web.Response(status=410 if changed.is_set() else 503) if is_watch else None

    async with troubled(proxied_cluster, tmp_path) as (store, proxy), following(store) as follower:
        kept, lost = await store.create(horse("kept")), await store.create(horse("lost"))
        namespace = proxied_cluster.namespaces[-1]
        base = f"/apis/{HORSE.api_version}/namespaces/{namespace}/{HORSE.plural}"
        proxy.reject(gone, times=8)
        proxy.cut_watches()
        proxied_cluster.request("DELETE", f"{base}/{lost.name}")
        proxied_cluster.request("PATCH", f"{base}/{kept.name}", {"spec": {"colour": "roan"}})
        changed.set()
        await until(lambda: set(follower.horses) == {"kept"} and follower.horses["kept"].spec.colour == "roan")
        assert follower.lists >= 2


async def test_throttling_is_waited_out(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    def throttle(_: web.BaseRequest) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": "0.1"})

    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        proxy.reject(throttle, times=5)
        await store.create(horse("patient"))
        assert (await store.get(Horse, "patient")).name == "patient"


async def test_a_write_whose_answer_is_lost_says_that_its_outcome_is_unknown(
    proxied_cluster: OwnCluster, tmp_path: Path
) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy), following(store) as follower:
        proxy.lose_answers(1)
        with pytest.raises(OutcomeUnknown):
            await store.create(horse("schroedinger"))
        await until(lambda: set(follower.horses) == {"schroedinger"})


async def test_expired_credentials_are_renewed(fragile: OwnCluster, tmp_path: Path) -> None:
    plane, path = fragile.plane, tmp_path / "kubeconfig"

    def issue(lifetime: timedelta) -> None:
        identity = plane.authority.issue("admin", groups=["system:masters"], lifetime=lifetime)
        files = identity.save(tmp_path, "admin")
        write_kubeconfig(path, plane.url, plane.authority.pem, by_path(*files))

    issue(timedelta(seconds=4))
    async with opened(fragile, fragile.namespace(), str(path)) as store, following(store) as follower:
        await store.create(horse("young"))
        issue(timedelta(hours=1))
        await asyncio.sleep(5)
        await store.create(horse("old"))
        await asyncio.to_thread(plane.restart, "apiserver")
        await store.create(horse("older"))
        await until(lambda: set(follower.horses) == {"young", "old", "older"})


async def test_a_server_that_is_down_is_named_in_one_sentence(fragile: OwnCluster) -> None:
    async with opened(fragile, fragile.namespace()) as store:
        store._client._retry_for_s = 0.5
        await asyncio.to_thread(fragile.plane.kill, "apiserver")
        with pytest.raises(ServerUnreachable, match=fragile.plane.url):
            await store.create(horse("nowhere"))
