"""Requests without a socket: what the layers of ours cost by themselves, by what is asked."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import msgspec

from bench.bed import Bed
from bench.callers import by_callers
from bench.cpu import spent_us
from bench.http.app import PREFIX, build, machine_path, project_path
from bench.http.inside import Request
from bench.http.service import MEMBER
from bench.kinds import name_of
from bench.loops import run
from bench.report import Measure, figure
from bench.rounds import good_time
from remuda.http.asgi import ASGIApp
from remuda.http.server.access_log import LineWriter
from remuda.process import prepare_interpreter
from remuda.store.sqlite.store import SqliteStore

__all__ = ["answering", "measures"]

_GOOD = {"metadata": {"name": "worker"}, "spec": {"flavorId": name_of(1), "imageId": name_of(2)}}
_BAD = {"metadata": {"name": "not a name"}, "spec": {"flavorId": "small", "imageId": 7}}


def measures(bed: Bed) -> Iterator[Measure]:
    """Ask the same again and again."""
    few = bed.sizes.few
    wanted, mistaken = msgspec.json.encode(_GOOD), msgspec.json.encode(_BAD)
    gone = f"{project_path(0, few)}/{name_of(few)}"
    cases = {
        "GET": (200, "GET", machine_path(0, few), b""),
        "GET of a missing object (404)": (404, "GET", gone, b""),
        "GET of no route (404)": (404, "GET", f"{PREFIX}/api/v1/nowhere", b""),
        "POST, validated and stored": (201, "POST", project_path(0, few), wanted),
        "POST rejected with three errors (400)": (400, "POST", project_path(0, few), mistaken),
    }
    for title, (status, method, path, body) in cases.items():
        yield figure(f"without a socket: {title}", run(_spent(bed, status, method, path, body)), "µs CPU")


@asynccontextmanager
async def answering(bed: Bed, store: SqliteStore) -> AsyncIterator[ASGIApp]:
    """Have the application over a store, its access log in a file."""
    with bed.fresh().open("ab", buffering=0) as lines, contextlib.closing(LineWriter(lines.fileno())) as sink:
        app, _ = build(store, sink, asyncio.Event())
        prepare_interpreter()  # as production does when all is built
        yield app


async def _spent(bed: Bed, status: int, method: str, path: str, body: bytes) -> float:
    store = bed.open(bed.filled(bed.sizes.few) if method == "GET" else bed.fresh())
    taken = []
    async with answering(bed, store) as app:
        request = Request(app, path, token=MEMBER, method=method, body=body)

        async def send(_: int) -> None:
            answered = await request.send()
            assert answered.status == status, answered

        for _ in range(bed.sizes.rounds):
            start = time.process_time()
            await by_callers(send, range(bed.sizes.asked))
            taken.append(spent_us(start, bed.sizes.asked))
    await store.close()
    return good_time(taken)
