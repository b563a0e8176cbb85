"""A server in a process of its own, so that its CPU time is its own: `python -m bench.http.child ours|bare FILE LOG`.

Both run on uvloop and parse with httptools. Ours is the server, the access log, the metrics and the API as production
has them, over the store in FILE. The bare one is uvicorn with an application that answers every request with the answer
in FILE. It says on which port it listens, and ends with its standard input.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from bench.http.app import build
from bench.kinds import REGISTRY, SEALER
from bench.loops import run
from remuda.http.asgi import Receive, Scope, Send
from remuda.http.server.access_log import LineWriter
from remuda.http.server.limits import ConnectionLimits
from remuda.http.server.metrics import measure_loop_lag
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.process import prepare_interpreter
from remuda.store.background import BackgroundTasks
from remuda.store.sqlite.store import open_store

__all__ = ["Child", "serving"]

_LOCAL = "127.0.0.1"


class Child:
    """A server that runs."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid, self.port = pid, port


@contextlib.contextmanager
def serving(which: str, file: Path, log: Path) -> Iterator[Child]:
    """Have a server run in a process of its own while the block does."""
    command = [sys.executable, "-m", "bench.http.child", which, str(file), str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield Child(process.pid, int(process.stdout.readline()))
        process.communicate()
    assert process.returncode == 0, "the server ended well"


async def _serve_ours(file: Path, log: Path) -> None:
    clock, randomness, closing = SystemClock(), SystemRandomness(), asyncio.Event()
    store, tasks = open_store(file, REGISTRY, SEALER), BackgroundTasks(clock)
    with log.open("ab", buffering=0) as lines, contextlib.closing(LineWriter(lines.fileno())) as sink:
        app, metrics = build(store, sink, closing)
        server = HttpServer(app, clock=clock, randomness=randomness, count_closed=metrics.count_closed, closing=closing)
        tasks.start("loop lag", lambda: measure_loop_lag(metrics, clock))
        address = await server.start(ListenAddress(_LOCAL, 0))
        await _until_told(address.port)
        await server.stop()
        await tasks.stop()
        await store.close()


async def _serve_bare(answer: bytes) -> None:
    head, _, body = answer.partition(b"\r\n\r\n")
    pairs = [line.partition(b": ") for line in head.split(b"\r\n")[1:]]
    headers = [(name, value) for name, _, value in pairs if name != b"date"]  # which uvicorn sends by itself

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    listener = socket.create_server((_LOCAL, 0))
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=int(ConnectionLimits().idle_s),
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([listener]))
    await _until_told(listener.getsockname()[1])
    server.should_exit = True
    await serving


async def _until_told(port: int) -> None:
    """Say where we are, and wait until nobody wants us any more."""
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(sys.stdin, told.set)
    prepare_interpreter()
    print(port, flush=True)
    await told.wait()
    loop.remove_reader(sys.stdin)


if __name__ == "__main__":
    _, which, file, log = sys.argv
    run(_serve_ours(Path(file), Path(log)) if which == "ours" else _serve_bare(Path(file).read_bytes()))
