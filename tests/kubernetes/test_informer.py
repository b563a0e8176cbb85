"""Informers in trouble: what they hear twice, halfway, too late or not at all."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

import apsw
import msgspec
import pytest
from aiohttp import web
from msgspec import structs

from remuda.store.contract import Change
from remuda.store.readside.index import NumberedEntry
from remuda.store.readside.tables import Tables
from tests.kit.sample_kinds import HORSE, REGISTRY, Corral, Horse, HorseSpec, corral, horse
from tests.kubernetes.cluster import Cluster, OwnCluster, own_cluster
from tests.kubernetes.harness import opened
from tests.kubernetes.steps import following, path_of, troubled, until

pytestmark = pytest.mark.kubernetes

_TOKENS_ARE_CACHED_S = 11


def is_watch(request: web.BaseRequest, plural: str = HORSE.plural) -> bool:
    return request.query.get("watch") == "true" and request.path.endswith(f"/{plural}")


async def test_a_watch_that_falls_silent_is_begun_again(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with troubled(proxied_cluster, tmp_path, watch_silence_s=1.0) as (store, proxy), following(store) as follower:
        await until(lambda: proxy.watches == len(store.registry.kinds))
        proxy.stall_watches()
        proxied_cluster.request("POST", path_of(proxied_cluster, HORSE), raw_horse("bella"))
        await until(lambda: set(follower.horses) == {"bella"}, seconds=10)
        assert follower.lists == 1


def raw_horse(name: str) -> dict[str, object]:
    return {"apiVersion": HORSE.api_version, "kind": HORSE.name, "metadata": {"name": name}, "spec": {}}


async def test_an_informer_outlives_what_nobody_thought_of(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    nonsense = [b'{"type": "MODIFIED", "object": {"metadata": {}}}\n', b"<html>\n", b'{"type": "ADDED", "object": 1}\n']

    def talk(request: web.BaseRequest) -> web.Response | None:
        return web.Response(body=nonsense.pop()) if is_watch(request) and nonsense else None

    async with troubled(proxied_cluster, tmp_path) as (store, proxy), following(store) as follower:
        proxy.reject(talk, times=3)
        await until(lambda: proxy.watches == len(store.registry.kinds))
        proxy.cut_watches()
        await until(lambda: not nonsense)
        await store.create(horse("bella"))
        await until(lambda: set(follower.horses) == {"bella"})
        await until(lambda: not store._tasks.failing)


async def test_a_list_that_fails_halfway_is_done_again(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    """Meanwhile nothing is followed from where the last watch was: that would show deleted objects again."""
    cluster = proxied_cluster
    failures: list[str] = []

    def fail(request: web.BaseRequest) -> web.Response | None:
        if is_watch(request):
            return web.Response(status=410)
        if request.method == "GET" and "continue" in request.query:
            failures.append(request.path)
            return web.Response(status=410 if len(failures) == 1 else 503)
        return None

    async with troubled(cluster, tmp_path) as (store, proxy), following(store) as follower:
        for start in range(0, 600, 60):
            await asyncio.gather(*(store.create(horse(f"h-{number:03}")) for number in range(start, start + 60)))
        store._client._retry_for_s = 0.1
        proxy.reject(fail, times=4)
        proxy.cut_watches()
        for name in ("h-000", "h-599"):
            cluster.request("DELETE", path_of(cluster, HORSE, name))
            cluster.request("PATCH", path_of(cluster, HORSE, name), {"metadata": {"finalizers": None}})
        cluster.request("PATCH", path_of(cluster, HORSE, "h-001"), {"spec": {"colour": "roan"}})
        await until(lambda: len(follower.horses) == 598 and follower.horses["h-001"].spec.colour == "roan")
        assert len(failures) >= 2
        await store.create(horse("later"))
        stored = {one.name: one.version for one in (await store.list(Horse)).items}
        assert len(stored) == 599
        await until(lambda: {name: one.version for name, one in follower.horses.items()} == stored)


async def test_what_is_heard_again_is_no_news(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, _), following(store) as follower:
        old = await store.create(horse("bella"))
        new = await store.update(structs.replace(old, spec=HorseSpec(colour="grey")))
        mirror = store._informers[store.registry.kinds.index(HORSE)]._mirror
        codec = mirror._codec
        for change in ("ADDED", "MODIFIED", "DELETED"):
            await mirror.apply([(change, msgspec.Raw(codec.encode(old)))])
            assert await store.get(Horse, "bella") == new
        await until(lambda: follower.horses == {"bella": new})
        assert follower.lists == 1


async def test_the_server_itself_says_that_a_version_is_too_old(tmp_path: Path) -> None:
    """After a restart its memory restarts, and etcd has compacted what was before."""
    plane = own_cluster(tmp_path / "plane", REGISTRY, fsync=False, apiserver_args=("--etcd-compaction-interval=2s",))
    with plane as cluster:
        async with troubled(cluster, tmp_path) as (store, proxy), following(store) as follower:
            await store.create(horse("before"))
            blocked = [True]
            proxy.reject(lambda request: web.Response(status=503) if is_watch(request) and blocked else None, times=999)
            proxy.cut_watches()
            for number in range(10):
                cluster.request("POST", path_of(cluster, HORSE), raw_horse(f"missed-{number}"))
                await asyncio.sleep(0.7)
            await asyncio.to_thread(cluster.plane.restart, "apiserver")
            blocked.clear()
            await until(lambda: len(follower.horses) == 11)
            assert store.requests["list", HORSE.plural] >= 2, "it had to list again"
            assert follower.lists >= 2, "and its watchers were told"


async def test_a_token_that_is_no_longer_taken_is_read_again(cluster: Cluster, tmp_path: Path) -> None:
    """A service account's token lives in a file that somebody renews. It ends with the secret it is bound to."""
    namespace, token = cluster.namespace(), tmp_path / "token"
    grant_everything(cluster, namespace)
    issue(cluster, namespace, token, bound_to="first")
    config = json.loads(await asyncio.to_thread(Path(cluster.kubeconfig).read_text))
    config["users"][0]["user"] = {"tokenFile": str(token)}
    (path := tmp_path / "kubeconfig").write_text(json.dumps(config))
    async with opened(cluster, namespace, str(path)) as store, following(store) as follower:
        await store.create(horse("young"))
        assert set(store._client._login._current.headers) == {"Authorization"}  # type: ignore[union-attr]  # it is logged in by now
        issue(cluster, namespace, token, bound_to="second")
        refused = store._client._login._current
        cluster.request("DELETE", f"/api/v1/namespaces/{namespace}/secrets/first")
        await asyncio.sleep(_TOKENS_ARE_CACHED_S)
        await store.create(horse("old"))
        assert store._client._login._current is not refused
        await until(lambda: set(follower.horses) == {"young", "old"})


def issue(cluster: Cluster, namespace: str, token: Path, *, bound_to: str) -> None:
    base = f"/api/v1/namespaces/{namespace}"
    secret = cluster.request("POST", f"{base}/secrets", {"metadata": {"name": bound_to}})
    bound = {"kind": "Secret", "apiVersion": "v1", "name": bound_to, "uid": secret["metadata"]["uid"]}
    answer = cluster.request("POST", f"{base}/serviceaccounts/tester/token", {"spec": {"boundObjectRef": bound}})
    token.write_text(answer["status"]["token"])


def grant_everything(cluster: Cluster, namespace: str) -> None:
    cluster.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "tester"}})
    binding = {
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "tester", "namespace": namespace}],
    }
    cluster.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)


async def test_a_change_that_could_not_be_kept_leaves_no_trace_and_comes_again(
    proxied_cluster: OwnCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, _):
        failures = 0
        keep = Tables.add_entries

        def fail_once(tables: Tables, name: str, terms: Iterable[NumberedEntry]) -> None:
            nonlocal failures
            failures += 1
            if failures == 1:
                raise apsw.FullError("no capacity")
            keep(tables, name, terms)

        monkeypatch.setattr(Tables, "add_entries", fail_once)
        bella = await store.create(horse("bella", labels={"never-seen": "before"}))
        assert failures >= 2
        assert (await store.list(Horse, labels={"never-seen": "before"})).items == [bella]


async def test_compaction_does_not_pass_what_a_quiet_kind_lists(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace()) as store:
        for number in range(10):
            await store.create(horse(f"h-{number}"))
        await store.maintenance.compact()
        page = await store.list(Corral)
        async with asyncio.timeout(10):
            watching = store.watch(Corral, since=page.version)
            await store.create(corral("north"))
            while not isinstance(event := await anext(watching), Change):
                pass
        assert event.resource.name == "north"
