"""Records on an API server: beside their write whatever happens to it, bounded, and dropped in time."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remuda.kernel.errors import AlreadyExists, Conflict, Invalid, OutcomeUnknown, Unavailable
from remuda.store.kubernetes.journal import journal_name
from remuda.store.kubernetes.kinds import JOURNAL
from remuda.store.kubernetes.store import KubernetesStore
from remuda.store.logs import Record
from tests.kit.sample_kinds import HORSE, Horse, horse
from tests.kubernetes.cluster import Cluster, OwnCluster
from tests.kubernetes.harness import opened
from tests.kubernetes.steps import path_of, rejecting, troubled, until

pytestmark = pytest.mark.kubernetes


def record(what: str, *, stream: str = "timeline", subject: str = "bella", once: bool = False) -> Record:
    return Record(stream=stream, subject=subject, data=msgspec.Raw(msgspec.json.encode(what)), once=once)


async def said(store: KubernetesStore, stream: str = "timeline", subject: str = "bella") -> list[Any]:
    return [msgspec.json.decode(entry.data) for entry in (await store.read(stream, subject, limit=1000)).entries]


FORBIDDEN = {"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}


@pytest.mark.parametrize(
    ("status", "answer"),
    [(403, {"body": msgspec.json.encode(FORBIDDEN)}), (429, {"headers": {"Retry-After": "60"}})],
    ids=["forbidden", "throttled"],
)
async def test_a_record_is_rolled_back_when_the_write_was_not_done(
    proxied_cluster: OwnCluster, tmp_path: Path, status: int, answer: dict[str, Any]
) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        proxy.reject(rejecting("POST", "horses", status, **answer), times=1)
        with pytest.raises(Unavailable):
            await store.create(horse("bella"), log=[record("made", once=True)])
        assert await said(store) == []
        await store.create(horse("bella"), log=[record("made", once=True)])
        assert await said(store) == ["made"]


async def test_a_record_stays_when_the_outcome_is_unknown(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        proxy.reject(rejecting("POST", "horses", 500), times=1)
        with pytest.raises(OutcomeUnknown):
            await store.create(horse("bella"), log=[record("made", once=True)])
        assert await said(store) == ["made"]


async def test_a_record_whose_own_outcome_is_unknown_is_rolled_back(
    proxied_cluster: OwnCluster, tmp_path: Path
) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        proxy.lose_answers(1)
        with pytest.raises(OutcomeUnknown):
            await store.create(horse("bella"), log=[record("made", once=True)])
        await until(lambda: not store._retry_queue)
        await store.create(horse("bella"), log=[record("made", once=True)])


async def test_a_record_that_is_refused_takes_those_before_it_back(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace()) as store:
        await store.append([record("taken", subject="b", once=True)])
        with pytest.raises(AlreadyExists):
            await store.create(
                horse("bella"), log=[record("one", subject="a", once=True), record("two", subject="b", once=True)]
            )
        assert await said(store, subject="a") == []
        large = record("x" * (2 << 20), subject="c", once=True)
        with pytest.raises(Invalid):
            await store.create(horse("bella"), log=[record("one", subject="a", once=True), large])
        assert await said(store, subject="a") == []


async def test_a_caller_that_goes_away_leaves_nothing_half_done(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, _):
        for number in range(20):
            name = f"h-{number}"
            log = [record("first", subject=name, once=True), record("then", stream="audit", subject=name)]
            creating = asyncio.create_task(store.create(horse(name), log=log))
            await asyncio.sleep(number * 0.001)
            creating.cancel()
            with suppress(asyncio.CancelledError):
                await creating
        await until(lambda: not store._writes)
        await asyncio.sleep(0.5)
        for number in range(20):
            name = f"h-{number}"
            is_made = store._known.find(HORSE, name) is not None
            assert bool(await said(store, subject=name)) == bool(await said(store, "audit", name)) == is_made


async def test_a_record_that_cannot_follow_its_write_comes_later(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        proxy.reject(rejecting("POST", "journals", 500), times=2)
        made = await store.create(horse("bella"), log=[record("made")])
        assert (await store.get(Horse, "bella")) == made
        await until(lambda: not store._retry_queue)
        assert await said(store) == ["made"]


async def test_a_record_is_kept_once_though_its_answer_was_lost(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        await store.append([record("first")])
        proxy.lose_answers(1)
        await store._log._store_reliably([record("second")])
        assert len(store._retry_queue) == 1
        await until(lambda: not store._retry_queue)
        assert await said(store) == ["first", "second"]


async def test_records_of_one_write_are_one_write_of_their_journal(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace()) as store:
        made = await store.create(horse("bella"), log=[record("one"), record("two"), record("two")])
        await store.update_status(made, log=[record("three"), record("elsewhere", subject="other"), record("four")])
        assert await said(store) == ["one", "two", "two", "three", "four"]
        assert await said(store, subject="other") == ["elsewhere"]
        journal = store._known.find(JOURNAL, journal_name("timeline", "bella"))
        assert journal is not None
        assert journal.metadata.generation == 2


async def test_what_another_process_wrote_to_a_journal_stays(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    async with opened(cluster, namespace) as store, opened(cluster, namespace) as other:
        await asyncio.gather(*((store, other)[number % 2].append([record(f"{number}")]) for number in range(10)))
        await until(lambda: len(store._log._entries("timeline", "bella")) == 10)
        assert sorted(await said(store), key=int) == [str(number) for number in range(10)]


async def test_many_write_to_one_journal_at_once(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace()) as store:
        await asyncio.gather(*(store.append([record(f"{number}")]) for number in range(40)))
        assert sorted(await said(store), key=int) == [str(number) for number in range(40)]


async def test_a_journal_is_bounded_in_bytes_and_in_records(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace()) as store:
        for number in range(12):
            await store.append([record(f"{number} " + "x" * 50_000)])
        kept = await said(store)
        assert [one.split()[0] for one in kept] == [str(number) for number in range(7, 12)]
        page = await store.read("timeline", "bella", limit=2)
        assert [entry.position for entry in page.entries] == [8, 9]


async def test_a_sink_takes_its_stream_out_of_the_store_and_may_fail(cluster: Cluster) -> None:
    taken: list[str] = []

    def sink(one: Record, _: datetime) -> None:
        taken.append(one.subject)
        if one.subject == "bad":
            raise RuntimeError("no capacity")

    async with opened(cluster, cluster.namespace(), sinks={"audit": sink}) as store:
        await store.create(horse("bella"), log=[record("made", stream="audit")])
        await store.create(horse("rover"), log=[record("made", stream="audit", subject="bad")])
        assert taken == ["bella", "bad"]
        assert store._log.lost == 1
        for reading in (store.read, store.read_back):
            with pytest.raises(Invalid, match="is not stored here"):
                await reading("audit", "bella")


async def test_old_journals_are_dropped_and_one_that_cannot_be_stops_nobody(
    proxied_cluster: OwnCluster, tmp_path: Path
) -> None:
    async with troubled(proxied_cluster, tmp_path) as (store, proxy):
        for number in range(5):
            await store.append([record("old", subject=f"s-{number}"), record("kept", stream="audit")])
        await asyncio.sleep(0.01)
        proxy.reject(rejecting("DELETE", "journals", 500), times=1)
        await store._log.trim({"timeline": timedelta(0), "audit": timedelta(days=1)})
        path = path_of(proxied_cluster, JOURNAL)
        left = [item["spec"]["stream"] for item in proxied_cluster.request("GET", path)["items"]]
        assert sorted(left) == ["audit", "timeline"]
        assert len(await said(store, "audit")) == 5


async def test_a_journal_that_is_written_to_is_not_dropped(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace()) as store:
        await store.append([record("old")])
        (old,) = [one async for one in store._known.under(JOURNAL, "field:stream", "timeline")]
        await store.append([record("new")])
        await store._log._drop(old)
        assert await said(store) == ["old", "new"]
        with pytest.raises(Conflict):
            await store._writer.remove(JOURNAL, old)
