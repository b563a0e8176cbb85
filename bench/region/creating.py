"""What a server costs, from 32 clients over sockets until all servers run: the CPU time of `remuda up`, all of it.

The process is watched from outside. Nobody asks it whether it is done, which would cost it something: it is when it
uses no more CPU. The simulated cloud is in the same process, so what it does is counted.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.bed import Bed
from bench.cpu import of_process
from bench.loops import run
from bench.region.process import Process, serving
from bench.report import Measure, at_most, figure
from bench.rounds import good_rate, good_time
from bench.sockets import CLIENTS, read, send, until_quiet

__all__ = ["measures"]

_LIMIT_MS = 3.0


def measures(bed: Bed) -> Iterator[Measure]:
    """Make servers in rounds."""
    cpu, rate = run(_spent(bed))
    yield at_most(1, f"a server until it runs, {CLIENTS} clients", cpu, _LIMIT_MS, "ms CPU")
    yield figure(f"servers requested by {CLIENTS} clients", rate, "1/s")


async def _spent(bed: Bed) -> tuple[float, float]:
    taken, rates, count = [], [], bed.sizes.servers
    with serving(_directory(bed)) as process:
        network = msgspec.json.decode((await send(process, [process.network("net")]))[0])["metadata"]["id"]
        await until_quiet(process.pid)
        await send(process, [process.server(network, f"first-{number}") for number in range(CLIENTS)])
        await until_quiet(process.pid)
        for turn in range(bed.sizes.creating_rounds):
            wanted = [process.server(network, f"server-{turn}-{number}") for number in range(count)]
            start, began = of_process(process.pid), time.perf_counter()
            await send(process, wanted)
            rates.append(count / (time.perf_counter() - began))
            taken.append((await until_quiet(process.pid) - start) * 1_000 / count)
        await _check(process, CLIENTS + count * bed.sizes.creating_rounds)
    return good_time(taken), good_rate(rates)


def _directory(bed: Bed) -> Path:
    return bed.directory(bed.fresh().stem)


async def _check(process: Process, count: int) -> None:
    servers = await read(process, "/region/api/v2/servers")
    assert len(servers) == count
    assert all(server["status"]["powerState"] == "Running" for server in servers), "all run"
