"""List of 1,000 instances from `remuda up`, beside a bare application that sends the same bytes.

Cold is the first request of a fresh process. Warm, one of the 1,000 has changed since the last list. Both are single
requests to a process that has nothing else to do, and so are those of the bare application. A conditional list has not
changed, and the answer is 304.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.bed import Bed
from bench.cpu import of_process
from bench.loops import run
from bench.region.process import Process
from bench.report import Measure, at_most
from bench.rounds import good_time
from bench.sockets import until_quiet
from bench.up.environment import INSTANCES, LISTED, bare, fetch, filled, headers, program, read_list, request
from bench.up.wrk import wrk

__all__ = ["measures"]

_WARM, _COLD = 5.0, 20.0
_STARTS = 4
_CLIENTS = 4


def measures(bed: Bed) -> Iterator[Measure]:
    """List it after starts, after changes, unchanged, and on condition."""
    directory, about = filled(bed), f"list of {LISTED:,}"
    cold = [run(_first(directory)) for _ in range(_STARTS)]
    with program(directory) as process:
        answer = run(fetch(process.port, request(process, INSTANCES)))
        with bare(bed, answer) as (pid, port):
            warm, limit = run(_alternate(process, pid, port, bed.sizes.rounds))
            under_load = [
                (
                    wrk(process.pid, process.port, INSTANCES, headers(process), clients=_CLIENTS).cpu_us,
                    wrk(pid, port, INSTANCES, headers(process), clients=_CLIENTS).cpu_us,
                )
                for _ in range(bed.sizes.rounds // 4)
            ]
        etag = _etag(run(fetch(process.port, request(process, INSTANCES))))
        conditional = (
            []
            if etag is None
            else [
                wrk(process.pid, process.port, INSTANCES, headers(process, f"If-None-Match: {etag}"), clients=_CLIENTS)
                for _ in range(bed.sizes.rounds // 4)
            ]
        )
    yield at_most(_COLD, f"{about}, cold, to a bare application", good_time(cold), limit, "µs CPU")
    yield at_most(_WARM, f"{about}, one changed, to a bare application", warm, limit, "µs CPU")
    ours, theirs = (good_time(each) for each in zip(*under_load, strict=True))
    yield at_most(_WARM, f"{about}, unchanged, {_CLIENTS} clients, to a bare application", ours, theirs, "µs CPU")
    if conditional:
        cost = good_time([each.cpu_us for each in conditional])
        yield at_most(1, f"{about}, conditional, to a bare list", cost, theirs, "µs CPU")


async def _first(directory: Path) -> float:
    with program(directory) as process:
        await until_quiet(process.pid)
        return await _cost(process.pid, process.port, request(process, INSTANCES))


async def _alternate(process: Process, pid: int, port: int, rounds: int) -> tuple[float, float]:
    """Return what a list takes after a change, ours and the bare one."""
    instances, ours, theirs = await read_list(process), [], []
    asked = request(process, INSTANCES)
    for turn in range(rounds):
        await _change(process, instances[turn * 7 % len(instances)], turn)
        await until_quiet(process.pid)
        ours.append(await _cost(process.pid, process.port, asked))
        await until_quiet(pid)
        theirs.append(await _cost(pid, port, asked))
    return good_time(ours), good_time(theirs)


async def _cost(pid: int, port: int, asked: bytes) -> float:
    start = of_process(pid)
    answer = await fetch(port, asked)
    used = (of_process(pid) - start) * 1e6
    assert answer.count(b'"powerState"') == LISTED, "everything was listed"
    return used


async def _change(process: Process, instance: Any, turn: int) -> None:
    """Describe an instance otherwise."""
    metadata = {"name": instance["metadata"]["name"], "description": f"of turn {turn}"}
    path = f"{INSTANCES}/{instance['metadata']['id']}"
    written = process.request("PUT", path, {"metadata": metadata, "spec": instance["spec"]})
    reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
    writer.write(written)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 20"), head
    writer.close()


def _etag(answer: bytes) -> str | None:
    found = [line for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n") if line.lower().startswith(b"etag: ")]
    return found[0].decode().partition(": ")[2] if found else None
