"""What a server costs, from 32 clients over sockets until all servers run: the CPU time of `remuda up`, all of it.

The process is watched from outside. Nobody asks it whether it is done, which would cost it something: it is when it
uses no more CPU. The simulated cloud is in the same process, so what it does is counted.
"""

import asyncio
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from bench.bed import Bed
from bench.cpu import of_process
from bench.loops import run
from bench.region.process import Process, serving
from bench.report import Measure, at_most, figure
from bench.rounds import good_rate, good_time

__all__ = ["measures"]

_CLIENTS = 32
_LIMIT_MS = 3.0
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_LOOK_S = 0.1
_QUIET_S = 0.002
"""A process that uses no more than this from one look to the next does nothing."""


def measures(bed: Bed) -> Iterator[Measure]:
    """Make servers in rounds."""
    cpu, rate = run(_spent(bed))
    yield at_most(1, f"a server that comes up, {_CLIENTS} clients", cpu, _LIMIT_MS, "ms CPU")
    yield figure(f"servers that are asked for by {_CLIENTS} clients", rate, "1/s")


async def _spent(bed: Bed) -> tuple[float, float]:
    taken, rates, count = [], [], bed.sizes.servers
    with serving(_directory(bed)) as process:
        network = msgspec.json.decode((await _send(process, [process.network("net")]))[0])["metadata"]["id"]
        await _until_quiet(process.pid)
        await _send(process, [process.server(network, f"first-{number}") for number in range(_CLIENTS)])
        await _until_quiet(process.pid)
        for turn in range(bed.sizes.creating_rounds):
            wanted = [process.server(network, f"server-{turn}-{number}") for number in range(count)]
            start, began = of_process(process.pid), time.perf_counter()
            await _send(process, wanted)
            rates.append(count / (time.perf_counter() - began))
            taken.append((await _until_quiet(process.pid) - start) * 1_000 / count)
        await _check(process, _CLIENTS + count * bed.sizes.creating_rounds)
    return good_time(taken), good_rate(rates)


def _directory(bed: Bed) -> Path:
    return bed.directory(bed.fresh().stem)


async def _send(process: Process, requests: Iterable[bytes]) -> list[bytes]:
    """Have each client send the next request when its last is answered; return the answers."""
    waiting, answers = iter(requests), list[bytes]()

    async def go() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
        for request in waiting:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            assert length is not None, head
            answers.append(await reader.readexactly(int(length[1])))
            assert head.startswith((b"HTTP/1.1 201", b"HTTP/1.1 200")), (head, answers[-1])
        writer.close()

    await asyncio.gather(*(go() for _ in range(_CLIENTS)))
    return answers


async def _until_quiet(pid: int) -> float:
    """Return how much CPU a process had used when it had no more to do."""
    used = of_process(pid)
    while True:
        await asyncio.sleep(_LOOK_S)
        before, used = used, of_process(pid)
        if used - before <= _QUIET_S:
            return before


async def _check(process: Process, count: int) -> None:
    lines = ("GET /region/api/v2/servers HTTP/1.1", "Host: bench", f"Authorization: Bearer {process.token}", "", "")
    reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
    writer.write("\r\n".join(lines).encode())
    await reader.readuntil(b"\r\n\r\n")
    body = b""
    while size := int((await reader.readline()).strip(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    writer.close()
    servers = msgspec.json.decode(body)
    assert len(servers) == count
    assert all(server["status"]["powerState"] == "Running" for server in servers), "all run"
