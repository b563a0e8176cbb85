"""GET of an instance from `remuda up`, beside a bare application that sends the same bytes; 16 and 64 clients."""

from collections.abc import Iterator

from bench.bed import Bed
from bench.loops import run
from bench.report import Measure, at_most, figure
from bench.rounds import good_time
from bench.sockets import until_quiet
from bench.up.environment import INSTANCES, bare, fetch, filled, headers, ids, program, request
from bench.up.wrk import Answered, wrk

__all__ = ["measures"]

_GOAL, _TAIL, _CROWD = 2.5, 4.0, 1.0
_FEW, _MANY = 16, 64


def measures(bed: Bed) -> Iterator[Measure]:
    """Ask both in turn."""
    directory = filled(bed)
    with program(directory) as process:
        path = f"{INSTANCES}/{run(ids(process))[0]}"
        answer = run(fetch(process.port, request(process, path)))
        run(until_quiet(process.pid))
        with bare(bed, answer) as (pid, port):
            ours: dict[int, list[Answered]] = {_FEW: [], _MANY: []}
            theirs: dict[int, list[Answered]] = {_FEW: [], _MANY: []}
            for _ in range(bed.sizes.rounds // 2):
                for clients in (_FEW, _MANY):
                    ours[clients].append(wrk(process.pid, process.port, path, headers(process), clients=clients))
                    theirs[clients].append(wrk(pid, port, path, headers(process), clients=clients))
    for clients in (_FEW, _MANY):
        about = f"GET of an instance, {clients} clients"
        mine, limit = (good_time([each.cpu_us for each in found[clients]]) for found in (ours, theirs))
        yield at_most(_GOAL, f"{about}, to a bare application", mine, limit, "µs CPU")
        yield at_most(_TAIL, f"{about}: p99 to p50", *_tail(ours[clients]), "ms")
        yield at_most(None, f"{about}: p99 to p50 of the bare application", *_tail(theirs[clients]), "ms")
        yield figure(f"{about}", sorted(each.rate for each in ours[clients])[-2], "1/s")
    costs = [good_time([each.cpu_us for each in ours[clients]]) for clients in (_MANY, _FEW)]
    yield at_most(_CROWD * 1.05, f"GET of an instance, {_MANY} clients to {_FEW}", costs[0], costs[1], "µs CPU")


def _tail(turns: list[Answered]) -> tuple[float, float]:
    """Return p99 and p50 of a good turn."""
    good = sorted(turns, key=lambda each: each.p99_ms / each.p50_ms)[len(turns) // 4]
    return good.p99_ms, good.p50_ms
