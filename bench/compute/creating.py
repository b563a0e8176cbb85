"""What an instance costs over HTTP, everything in one process: its CPU, how long one takes, and how many a second.

The process is watched from outside, as for region. How long one takes is told by a watch, as a client would have it:
from the request until `provisioned` first shows, and then everything about the instance must be final.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.bed import Bed
from bench.loops import run
from bench.region.process import Process, serving
from bench.report import Measure, at_least, at_most, figure
from bench.rounds import good_rate, good_time, quantile
from bench.sockets import CLIENTS, read, send, until_quiet
from remuda.http.sse import EventReader

__all__ = ["measures"]

_LIMIT_MS = 4.0
_SOON_MS = 50.0
_RATE = 200.0
_ALONE = 40
"""Instances that are made one after the other."""


def measures(bed: Bed) -> Iterator[Measure]:
    """Make instances: one after the other, then by many at once."""
    times, cpu, asked, done = run(_spent(bed))
    yield at_most(1, "an instance until provisioned, alone, p50", quantile(times, 0.5), _SOON_MS, "ms")
    yield figure("an instance until provisioned, alone, p95", quantile(times, 0.95), "ms")
    yield at_most(1, f"an instance until it is provisioned, {CLIENTS} clients", cpu, _LIMIT_MS, "ms CPU")
    yield figure(f"instances requested by {CLIENTS} clients", asked, "1/s")
    yield at_least(1, f"instances provisioned, {CLIENTS} clients", done, _RATE, "1/s")


async def _spent(bed: Bed) -> tuple[list[float], float, float, float]:
    count, taken, asked, done = bed.sizes.servers, [], [], []
    with serving(_directory(bed)) as process:
        await send(process, [process.quotas(servers=1_000_000, networks=100)], clients=1)
        network = msgspec.json.decode((await send(process, [process.network("net")], clients=1))[0])["metadata"]["id"]
        await until_quiet(process.pid)
        times = await _alone(process, network)
        for turn in range(bed.sizes.creating_rounds):
            wanted = [process.instance(network, f"instance-{turn}-{number}") for number in range(count)]
            async with _watching(process) as seen:
                start = await until_quiet(process.pid)  # a watch is told first what there is, which costs what it costs
                began = time.perf_counter()
                await send(process, wanted)
                asked.append(count / (time.perf_counter() - began))
                await seen.until(count)
                done.append(count / (time.perf_counter() - began))
            taken.append((await until_quiet(process.pid) - start) * 1_000 / count)
        await _check(process, _ALONE + count * bed.sizes.creating_rounds)
    return times, good_time(taken), good_rate(asked), good_rate(done)


def _directory(bed: Bed) -> Path:
    return bed.directory(bed.fresh().stem)


async def _alone(process: Process, network: str) -> list[float]:
    times = []
    async with _watching(process) as seen:
        for number in range(_ALONE):
            began = time.perf_counter()
            await send(process, [process.instance(network, f"alone-{number}")], clients=1)
            await seen.until(number + 1)
            times.append((time.perf_counter() - began) * 1_000)
    return times


async def _check(process: Process, count: int) -> None:
    instances = await read(process, "/compute/api/v2/instances")
    assert len(instances) == count
    assert all(instance["status"]["powerState"] == "Running" for instance in instances), "all run"


class _Seen:
    """The instances that were seen to be provisioned."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._news = asyncio.Event()
        self.is_synced = asyncio.Event()

    def take(self, instance: Any) -> None:
        """Note an instance; one that is provisioned is all that it will be."""
        about, status = instance["metadata"], instance["status"]
        if about["provisioningStatus"] != "provisioned" or about["id"] in self._ids or not self.is_synced.is_set():
            return
        assert status["powerState"] == "Running", "its power state is final"
        assert status["privateIP"], "so is its address"
        assert status["macAddress"], "and its MAC"
        self._ids.add(about["id"])
        self._news.set()

    async def until(self, count: int) -> None:
        """Wait for so many."""
        while len(self._ids) < count:
            self._news.clear()
            await self._news.wait()


@asynccontextmanager
async def _watching(process: Process) -> AsyncIterator[_Seen]:
    seen = _Seen()
    task = asyncio.create_task(_watch(process, seen))
    await seen.is_synced.wait()
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _watch(process: Process, seen: _Seen) -> None:
    lines = (
        "GET /compute/api/v2/instances?watch=true HTTP/1.1",
        "Host: bench",
        f"Authorization: Bearer {process.token}",
        "Accept: text/event-stream",
        "",
        "",
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
    writer.write("\r\n".join(lines).encode())
    await reader.readuntil(b"\r\n\r\n")
    events = EventReader()
    while size := int((await reader.readline()).strip(), 16):
        for event in events.feed(await reader.readexactly(size)):
            if event.type in {"added", "modified"}:
                seen.take(msgspec.json.decode(event.data))
            elif b"synced" in event.data:
                seen.is_synced.set()
        await reader.readline()
    writer.close()
