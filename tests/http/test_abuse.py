"""Hostile clients on real sockets, against the sample API in a process of its own: real store, real watches.

The memory of the process stays flat, and other clients are served.
"""

import contextlib
import resource
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from tests.kit.http_server import request
from tests.kit.processes.sample_program import PREFIX, SampleProcess, sample_process

KIB, MIB = 1024, 1024 * 1024
TIMEOUT_S = 120.0
CROWD = 400
WATCHERS = 600
"""About as many as one caller may have."""
TOKEN = "Authorization: Bearer good"
HORSES = "/horses"
LIST, WATCH = f"{PREFIX}{HORSES}", f"{PREFIX}{HORSES}?watch=true"
HERD = 40
"""So many long objects that no buffer holds what a watch begins with."""


@dataclass
class Victim:
    process: SampleProcess
    client: httpx2.Client
    before: int
    """What it had in memory before anything was done to it."""
    cuts: dict[str, int] = field(default_factory=dict)

    def growth(self) -> int:
        return self.process.memory() - self.before

    def dial(self, *, buffer: int | None = None, source: str = "127.0.0.1") -> socket.socket:
        with ExitStack() as on_failure:
            client = on_failure.enter_context(socket.socket())
            client.bind((source, 0))
            if buffer:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            client.settimeout(10)
            client.connect(("127.0.0.1", self.process.port))
            on_failure.pop_all()
            return client

    def serves_others(self) -> bool:
        with contextlib.suppress(ConnectionError), self.dial() as client:
            client.sendall(request(LIST, TOKEN, "Connection: close"))
            return read_all(client).startswith(b"HTTP/1.1 200 ")
        return False

    def create(self) -> str:
        """Create a horse that is long to read, and return its id."""
        made = self.client.post(HORSES, json={"colour": long("bay")})
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def paint(self, horse: str, colour: str) -> None:
        """Update a horse, which every watch is sent."""
        assert self.client.put(f"{HORSES}/{horse}", json={"colour": long(colour)}).status_code < 300


def long(colour: str) -> str:
    return colour + "x" * 3000


def read_all(client: socket.socket) -> bytes:
    """Read until the server closes, in whichever way."""
    read = b""
    with contextlib.suppress(ConnectionError):
        while chunk := client.recv(65_536):
            read += chunk
    return read


@contextmanager
def victim(directory: Path, *, limit_s: float, most_growth: int, connections: int = 10_000) -> Iterator[Victim]:
    """Run a process that serves others and whose memory has not grown much, also after the block."""
    with sample_process(directory / "data", limit_s=limit_s, connections=connections) as process:
        headers = {"Authorization": "Bearer good", "Connection": "close"}
        with httpx2.Client(base_url=process.url, headers=headers, timeout=60) as client:
            one = Victim(process, client, process.memory())
            assert one.serves_others()
            yield one
            assert one.growth() < most_growth
            assert one.serves_others()
            one.cuts.update(cuts(process))
        assert process.stop() == 0


def cuts(process: SampleProcess) -> dict[str, int]:
    """Return how many connections the server ended, by reason."""
    prefix = 'remuda_http_connections_closed_total{reason="'
    counted = process.metrics()
    return {name.removeprefix(prefix)[:-2]: int(counted[name]) for name in counted if name.startswith(prefix)}


@pytest.fixture(autouse=True)
def many_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@pytest.fixture
def hundreds_of_descriptors(many_descriptors: None) -> None:  # noqa: ARG001  has raised the limit
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < WATCHERS + 500:
        pytest.skip("this machine does not let a process have that many connections")


def test_hundreds_that_dribble_their_heads_are_cut_off_and_others_are_served(tmp_path: Path) -> None:
    with victim(tmp_path, limit_s=2, most_growth=CROWD * 32 * KIB) as one, ExitStack() as clients:
        crowd = [clients.enter_context(one.dial()) for _ in range(CROWD)]
        for client in crowd:
            client.sendall(b"GET / HTTP/1.1\r\nX: ")
        ends = time.monotonic() + TIMEOUT_S
        while cuts(one.process).get("head_timeout", 0) < CROWD:
            assert time.monotonic() < ends, cuts(one.process)
            for client in crowd:
                with contextlib.suppress(OSError):
                    client.sendall(b"x")
            assert one.serves_others()


def test_a_body_of_a_gibibyte_is_refused_and_never_held(tmp_path: Path) -> None:
    most_growth = 8 * MIB
    with victim(tmp_path, limit_s=5, most_growth=most_growth) as one:
        block = b"x" * MIB
        head = (TOKEN, "Content-Type: application/json")
        for announced in (True, False):
            peak = 0
            with one.dial() as client:
                how = f"Content-Length: {1024 * MIB}" if announced else "Transfer-Encoding: chunked"
                client.sendall(request(LIST, *head, how, method="POST"))
                with contextlib.suppress(OSError):
                    for _ in range(1024):
                        client.sendall(block if announced else b"%x\r\n%b\r\n" % (MIB, block))
                        peak = max(peak, one.growth())
                assert one.serves_others()
            assert peak < most_growth
        with one.dial() as client:
            client.sendall(request(LIST, *head, f"Content-Length: {1024 * MIB}", method="POST"))
            assert client.recv(20).startswith(b"HTTP/1.1 413 ")


def test_floods_of_headers_are_refused(tmp_path: Path) -> None:
    with victim(tmp_path, limit_s=5, most_growth=6 * MIB) as one:
        flood = b"GET / HTTP/1.1\r\n" + b"X-Header: abcdefghijklmnopqrstuvwxyz\r\n" * 20_000
        for _ in range(50):
            with one.dial() as client:
                with contextlib.suppress(ConnectionError):
                    client.sendall(flood)
                assert read_all(client)[:12] in {b"HTTP/1.1 431", b""}
        assert one.serves_others()
    assert one.cuts["head_too_large"] == 50


def test_requests_sent_ahead_without_end_are_refused(tmp_path: Path) -> None:
    with victim(tmp_path, limit_s=5, most_growth=6 * MIB) as one:
        flood = request(WATCH, TOKEN) + request(LIST, TOKEN) * 20_000
        for _ in range(20):
            with one.dial() as client:
                with contextlib.suppress(ConnectionError):
                    client.sendall(flood)
                read_all(client)
        assert one.serves_others()
    assert one.cuts["pipelined"] == 20


@pytest.mark.usefixtures("hundreds_of_descriptors")
def test_hundreds_of_watchers_that_never_read_are_cut_off_and_others_are_served(tmp_path: Path) -> None:
    most_growth = WATCHERS * 64 * KIB  # what so many open watches need by themselves, and a little
    with victim(tmp_path, limit_s=4, most_growth=most_growth) as one, ExitStack() as clients:
        horses = [one.create() for _ in range(HERD)]
        crowd = []
        for _ in range(WATCHERS):
            crowd.append(clients.enter_context(one.dial(buffer=4096)))
            crowd[-1].sendall(request(WATCH, TOKEN))  # at once, since it has only so long for its head
        for horse in horses:
            one.paint(horse, "grey")
            assert one.serves_others()
        assert one.growth() < most_growth
        wait_until_closed(crowd)
    assert one.cuts["write_timeout"] == WATCHERS, one.cuts


def wait_until_closed(crowd: list[socket.socket]) -> None:
    """Wait, without reading, until the server has given up on each of them."""
    hung_up = select.poll()
    waiting = {client.fileno() for client in crowd}
    for descriptor in waiting:
        hung_up.register(descriptor, 0)
    ends = time.monotonic() + TIMEOUT_S
    while waiting:
        assert time.monotonic() < ends
        for descriptor, _ in hung_up.poll(1000):
            hung_up.unregister(descriptor)
            waiting.discard(descriptor)


def test_m27_crowds_beyond_the_cap_are_told_so_and_keep_no_other_address_out(tmp_path: Path) -> None:
    with victim(tmp_path, limit_s=5, most_growth=8 * MIB, connections=100) as one, ExitStack() as clients:
        crowd = []
        for number in range(CROWD):
            with contextlib.suppress(ConnectionError):
                crowd.append(clients.enter_context(one.dial(source=f"127.0.0.{2 + number % 2}")))
            if number % 100 == 0:
                assert one.serves_others()
        assert one.serves_others()
        assert any(read_all(client).startswith(b"HTTP/1.1 429") for client in crowd)
    assert one.cuts["address_connections"] >= CROWD - 110, "each client that was served may have let one more in"
    assert one.cuts["displaced"] >= 1
    assert one.cuts["connections"] == 0
