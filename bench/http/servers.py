"""HTTP servers with one application, in one run: `python -m bench.http.servers [--turns N]`.

The application answers each GET with the same head and body, so that only the servers differ: uvicorn as it is, uvicorn
through its public API with one write a response, granian, and ours. Each runs in a process of its own, on uvloop, and
they take turns. granian is no dependency: `uv pip install granian` puts it beside the others, else it is left out.
"""

import argparse
import asyncio
import importlib.util
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from bench.cpu import of_process
from bench.http.load import Load, fetch, request_of
from remuda.http.asgi import Receive, Scope, Send
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness

__all__ = ["app", "main"]

_LOCAL = "127.0.0.1"
_BODY = b'{"metadata":{"name":"web","provisioningStatus":"provisioned"},"spec":{"flavorId":"%s"}}' % (b"f" * 300)
_HEADERS = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-cache"),
    (b"etag", b'"dd564fb49ecb742a477f74c8c0f78782"'),
    (b"ratelimit", b'"default";r=5999;t=1'),
    (b"content-length", b"%d" % len(_BODY)),
    (b"x-trace-id", b"3e3ede2f210ef1150983e0cc0be93b2c"),
    (b"traceparent", b"00-3e3ede2f210ef1150983e0cc0be93b2c-64b4b42716e2073f-01"),
]
_CONNECTIONS = 64
_WARM, _COUNT = 2_000, 20_000
_START_S = 10.0


async def app(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001  an ASGI application
    """Answer every request alike."""
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _BODY})


class _OneWrite:
    """A transport that keeps the first write until the second, or until the loop goes on."""

    def __init__(self, transport: Any) -> None:
        self._transport, self._kept = transport, b""

    def write(self, data: bytes) -> None:
        if self._kept:
            self._flush(data)
        else:
            self._kept = data
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self, more: bytes = b"") -> None:
        data, self._kept = self._kept + more, b""
        if data:
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


async def _serve_one_write(port: int) -> None:
    from uvicorn.config import Config  # noqa: PLC0415  only this server needs it
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol  # noqa: PLC0415  same
    from uvicorn.server import Server  # noqa: PLC0415  same

    class OneWriteProtocol(HttpToolsProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(_OneWrite(transport))  # type: ignore[arg-type]  # what it uses of one

    config = Config(
        app, host=_LOCAL, port=port, http=OneWriteProtocol, lifespan="off", access_log=False, log_config=None
    )
    await Server(config).serve()


async def _serve_ours(port: int) -> None:
    server = HttpServer(app, clock=SystemClock(), randomness=SystemRandomness(), count_closed=lambda _: None)
    await server.start(ListenAddress(_LOCAL, port))
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    await server.stop()


_OWN: Mapping[str, Callable[[int], Any]] = {"uvicorn, one write": _serve_one_write, "ours": _serve_ours}


def _command(name: str, port: int) -> Sequence[str]:
    python, target = sys.executable, "bench.http.servers:app"
    if name == "uvicorn":
        options = ["--loop", "uvloop", "--http", "httptools", "--lifespan", "off", "--no-access-log"]
        return [python, "-m", "uvicorn", target, "--port", str(port), "--log-level", "error", *options]
    if name == "granian":
        options = ["--interface", "asginl", "--loop", "uvloop", "--workers", "1", "--no-ws", "--http", "1", "--no-log"]
        return [python, "-m", "granian", target, "--port", str(port), *options]
    return [python, "-m", "bench.http.servers", "--serve", name, str(port)]


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def _serving(name: str) -> Iterator[tuple[int, list[int]]]:
    """Run a server while the block does; yield its port and its processes."""
    with socket.create_server((_LOCAL, 0)) as chosen:
        port = chosen.getsockname()[1]
    with subprocess.Popen(_command(name, port), stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + _START_S
        while True:
            try:
                socket.create_connection((_LOCAL, port)).close()
                break
            except ConnectionRefusedError:
                assert process.poll() is None, f"{name} does not start"
                assert time.monotonic() < until, f"{name} does not listen"
                time.sleep(0.05)
        yield port, [process.pid, *_children(process.pid)]
        process.terminate()


class _Timed(Load):
    """A load that measures how long each answer takes."""

    def __init__(self) -> None:
        super().__init__()
        self.latencies: list[float] = []
        self._sent: dict[Any, float] = {}

    def take_turn(self, connection: Any) -> None:
        self._sent[connection] = time.perf_counter()
        super().take_turn(connection)

    def answered(self, connection: Any) -> None:
        self.latencies.append(time.perf_counter() - self._sent[connection])
        super().answered(connection)


async def _measured(port: int, pids: Sequence[int]) -> tuple[float, float, float]:
    """Return the CPU microseconds of one request, and the median and p99 of the latency in milliseconds."""
    request = request_of("/api/v2/instances/web", "token")
    await fetch(port, request)
    load = _Timed()
    await load.open(port, [request] * _CONNECTIONS)
    await load.ask(_WARM)
    load.latencies.clear()
    start = sum(map(of_process, pids))
    await load.ask(_COUNT)
    spent = sum(map(of_process, pids)) - start
    load.close()
    ordered = sorted(load.latencies)
    return spent / _COUNT * 1e6, ordered[len(ordered) // 2] * 1e3, ordered[len(ordered) * 99 // 100] * 1e3


def main() -> None:
    """Measure the servers in turn, and print their medians and their ratios to uvicorn as it is."""
    parser = argparse.ArgumentParser(prog="python -m bench.http.servers", description=__doc__)
    parser.add_argument("--turns", type=int, default=7, help="turns of each server (7)")
    parser.add_argument("--serve", nargs=2, metavar=("NAME", "PORT"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        name, port = asked.serve
        uvloop.run(_OWN[name](int(port)))
        return
    names = ["uvicorn", "uvicorn, one write", "ours"]
    if importlib.util.find_spec("granian"):
        names.insert(2, "granian")
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in names}
    for turn in range(asked.turns):
        for name in names if turn % 2 == 0 else names[::-1]:
            with _serving(name) as (port, pids):
                found[name].append(uvloop.run(_measured(port, pids)))
    print(f"{'server':20}{'CPU µs':>9}{'ratio':>8}{'p50 ms':>9}{'p99 ms':>9}{'ratio':>8}")
    base = [statistics.median(column) for column in zip(*found["uvicorn"], strict=True)]
    for name in names:
        cpu, median, late = (statistics.median(column) for column in zip(*found[name], strict=True))
        print(f"{name:20}{cpu:9.1f}{cpu / base[0]:8.2f}{median:9.2f}{late:9.2f}{late / base[2]:8.2f}")


if __name__ == "__main__":
    main()
