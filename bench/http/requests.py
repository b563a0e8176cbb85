"""One authenticated GET of a stored object, over a socket: the server's CPU time, beside a bare application's.

Ours has 120 routes loaded, reads from a real store, checks token and permissions, counts, and writes its access log to
a file. The bare one answers with the same bytes, headers and all, and does nothing else.
"""

from collections.abc import Iterator
from contextlib import ExitStack

from bench.bed import Bed
from bench.cpu import of_process
from bench.http.app import machine_path
from bench.http.child import Child, serving
from bench.http.load import Load, fetch, request_of
from bench.http.service import MEMBER, ROUTES
from bench.loops import run
from bench.report import Measure, at_most
from bench.rounds import Subject, alternate, good_time

__all__ = ["measures"]

_GOAL = 2.5
_CONNECTIONS = 32


def measures(bed: Bed) -> Iterator[Measure]:
    """Ask both servers in turn."""
    ours, bare = run(_compare(bed))
    yield at_most(_GOAL, f"authenticated GET, {ROUTES} routes, to a bare application", ours, bare, "µs CPU")


async def _compare(bed: Bed) -> tuple[float, float]:
    few, log, answer = bed.sizes.few, bed.fresh(), bed.fresh()
    requests = [request_of(machine_path(number, few), MEMBER) for number in range(_CONNECTIONS)]
    with ExitStack() as stack:
        ours = stack.enter_context(serving("ours", bed.filled(few), log))
        answer.write_bytes(await fetch(ours.port, requests[0]))
        bare = stack.enter_context(serving("bare", answer, log))
        subjects = []
        for child in (ours, bare):
            load = Load()
            await load.open(child.port, requests)
            stack.callback(load.close)
            subjects.append(_subject(load, child, bed.sizes.asked))
        found = await alternate(bed.sizes.rounds, *subjects)
    assert log.read_bytes().count(b"\n") > bed.sizes.rounds * bed.sizes.asked, "every request has its line"
    return good_time(found[0]), good_time(found[1])


def _subject(load: Load, child: Child, count: int) -> Subject:
    async def turn(_: int) -> float:
        start = of_process(child.pid)
        await load.ask(count)
        return (of_process(child.pid) - start) * 1e6 / count

    return turn
