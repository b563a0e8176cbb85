"""Writes on a real API server: sent once, validated by version first, and never left half done."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec import structs

from remuda.kernel.errors import Conflict, Invalid, NotFound, OutcomeUnknown, ReferenceRejected, Unavailable, Unusable
from remuda.store.kubernetes.store import KubernetesStore
from tests.kit.sample_kinds import (
    CORRAL,
    HORSE,
    PASTURE,
    Corral,
    Horse,
    HorseSpec,
    HorseStatus,
    Pasture,
    corral,
    horse,
    pasture,
)
from tests.kubernetes.cluster import Cluster, OwnCluster
from tests.kubernetes.harness import opened
from tests.kubernetes.steps import path_of, rejecting, troubled, until

pytestmark = pytest.mark.kubernetes


async def test_an_update_whose_answer_is_lost_is_sent_once(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        made = await store.create(horse("bella"))
        proxy.lose_answers(1)
        passed = proxy.passed
        with pytest.raises(OutcomeUnknown):
            await store.update(structs.replace(made, spec=HorseSpec(colour="grey")))
        assert proxy.passed - passed == store.requests["update", HORSE.plural] == 1


async def test_a_delete_whose_answer_is_lost_is_sent_once(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        made = await store.create(pasture("home", finalizers=("test.remuda/held",)))
        proxy.lose_answers(1)
        with pytest.raises(OutcomeUnknown):
            await store.delete(Pasture, made.name, uid=made.uid)
        assert store.requests["delete", PASTURE.plural] == 1


async def test_a_delete_without_a_version_does_not_mind_other_writers(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace(), collects_garbage=False) as store:
        owner = await store.create(horse("owner"))
        await store.create(corral("child", owner=HORSE.owner(owner)))
        stopped = asyncio.Event()

        async def write(place: int) -> int:
            conflicts = 0
            while not stopped.is_set():
                place += 10
                try:
                    current = await store.get(Horse, "owner")
                    await store.update_status(structs.replace(current, status=HorseStatus(place=f"place-{place}")))
                except Conflict:
                    conflicts += 1
            return conflicts

        writers = [asyncio.create_task(write(number)) for number in range(8)]
        await asyncio.sleep(0.2)
        marked = await store.delete(Horse, "owner", uid=owner.uid)
        stopped.set()
        assert sum(await asyncio.gather(*writers)), "they stood in each other's way"
        assert marked is not None
        assert marked.is_deleting


async def test_a_version_is_validated_before_anything_else(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace()) as store:
        old = await store.create(horse("bella"))
        new = await store.update(structs.replace(old, spec=HorseSpec(colour="grey")))
        metadata = structs.replace(old.metadata, labels={"colour": "no label @ all"})
        with pytest.raises(Conflict):
            await store.update(structs.replace(old, metadata=metadata))
        with pytest.raises(Invalid):
            await store.update(structs.replace(new, metadata=structs.replace(new.metadata, labels=metadata.labels)))


async def test_a_name_that_is_no_name_is_not_found(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace()) as store:
        await store.create(horse("bella"))
        for name in ("", ".", "..", "bella/status", "bella?x=y", "../horses/bella"):
            with pytest.raises(NotFound):
                await store.get(Horse, name)


async def test_a_missing_namespace_is_named(cluster: Cluster) -> None:
    async with opened(cluster, "nowhere") as store:
        with pytest.raises(Unusable, match="namespace nowhere does not exist: create it"):
            await store.create(horse("homeless"))


async def refer(store: KubernetesStore) -> Horse:
    return await store.create(horse("bella", spec=HorseSpec(corrals=("north",))))


async def test_a_referrer_is_reconciled_when_the_server_falls_silent(
    proxied_cluster: OwnCluster, tmp_path: Path
) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        target = await store.create(corral("north"))
        store._client._retry_for_s = 0.1
        proxy.reject(rejecting("GET", "corrals/north"), times=3)
        with pytest.raises(OutcomeUnknown):
            await refer(store)
        assert len(store._retry_queue) == 1
        cluster = proxied_cluster
        cluster.request("DELETE", path_of(cluster, CORRAL, target.name))
        await until(lambda: not store._retry_queue)
        await until(lambda: store._known.find(HORSE, "bella") is None)
        assert cluster.try_request("GET", path_of(cluster, HORSE, "bella"))[0] == 404


async def test_a_referrer_is_reconciled_when_its_maker_goes_away(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        await store.create(corral("north"))
        proxy.reject(rejecting("GET", "corrals/north"), times=2)
        referring = asyncio.create_task(refer(store))
        await until(lambda: store.requests["get", CORRAL.plural] >= 1)
        referring.cancel()
        with suppress(asyncio.CancelledError):
            await referring
        proxied_cluster.request("DELETE", path_of(proxied_cluster, CORRAL, "north"))
        await until(lambda: not store._writes)
        await until(lambda: store._known.find(HORSE, "bella") is None)
        with pytest.raises(NotFound):
            await store.get(Horse, "bella")


def racing(
    first: Coroutine[None, None, object], second: Coroutine[None, None, object], *, lead_s: float
) -> tuple[Coroutine[None, None, object], ...]:
    """Both, the first ahead by so much, or behind where that is negative."""

    async def later(what: Coroutine[None, None, object], delay_s: float) -> object:
        await asyncio.sleep(delay_s)
        return await what

    return later(first, max(0.0, -lead_s)), later(second, max(0.0, lead_s))


async def test_a_referrer_that_came_first_stays_with_its_marked_target(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    async with opened(cluster, namespace) as one, opened(cluster, namespace) as other:
        target = await one.create(corral("kept"))
        await other.create(horse("first", spec=HorseSpec(corrals=(target.name,))))
        await one.delete(Corral, target.name, uid=target.uid)
        assert (await other.get(Horse, "first")).spec.corrals == (target.name,)
        assert (await one.get(Corral, target.name)).metadata.deletion_timestamp


async def test_two_processes_race_over_a_target(cluster: Cluster) -> None:
    """Whatever the order, no referrer is left to a target that went."""
    namespace = cluster.namespace()
    rejections = 0
    async with opened(cluster, namespace) as one, opened(cluster, namespace) as other:
        rounds = 60
        for number in range(rounds):
            target = await one.create(corral(f"c-{number}"))
            referring = other.create(horse(f"h-{target.name}", spec=HorseSpec(corrals=(target.name,))))
            deleting = one.delete(Corral, target.name, uid=target.uid)
            outcomes = await asyncio.gather(
                *racing(deleting, referring, lead_s=(number % 12 - 6) * 0.003), return_exceptions=True
            )
            assert not isinstance(outcomes[0], BaseException)
            assert isinstance(outcomes[1], Horse | ReferenceRejected), outcomes[1]
            rejections += isinstance(outcomes[1], ReferenceRejected)
        assert rejections, "sometimes the mark came first"
        await asyncio.sleep(1)
        corrals = {c.name for c in (await one.list(Corral)).items}
        for one_horse in (await one.list(Horse)).items:
            assert set(one_horse.spec.corrals) <= corrals, "a horse stands in a corral that is gone"


async def test_throttling_that_outlasts_the_timeout_is_not_called_unreachable(
    proxied_cluster: OwnCluster, tmp_path: Path
) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        store._client._retry_for_s = 1.0
        late = {"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}
        proxy.reject(rejecting("POST", "horses", 429, headers=late), times=2)
        await store.create(horse("patient"))
        proxy.reject(rejecting("POST", "horses", 429, headers={"Retry-After": "5"}), times=1)
        with pytest.raises(Unavailable, match="throttles our requests"):
            await store.create(horse("impatient"))
        proxy.reject(rejecting("POST", "horses", 429, headers={"Retry-After": "soon"}), times=1)
        with pytest.raises(Unavailable, match="throttles our requests"):
            await store.create(horse("impatient"))


async def test_an_answer_in_the_servers_name_is_not_taken_for_its_own(
    proxied_cluster: OwnCluster, tmp_path: Path
) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        proxy.reject(rejecting("POST", "horses", 200, text="<html>"), times=1)
        with pytest.raises(OutcomeUnknown):
            await store.create(horse("bella"))
        proxy.reject(rejecting("GET", "horses/", 200, text="<html>"), times=1)
        with pytest.raises(Unavailable, match="did not come from an API server"):
            await store.get(Horse, "bella")
