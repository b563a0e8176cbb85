"""What one address can make the process hold, however it behaves: its share of the memory, and little per connection.

The sample API runs in a process of its own, with a small share, and its resident memory is compared with that before.
"""

import contextlib
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kit.certificates import client_context, server_files
from tests.kit.http_server import request
from tests.kit.processes.sample_program import PREFIX, SampleProcess, sample_process

KIB, MIB = 1024, 1024 * 1024
CLIENTS = 200
SHARES = 8 * MIB
PER_CONNECTION = 200 * KIB
"""What a connection needs by itself, with a watch that is not read, and what the allocator keeps."""
PER_TLS_CONNECTION = 300 * KIB
"""The same within TLS, whose library has buffers of its own in both directions."""
TOKEN = "Authorization: Bearer good"
LIST = f"{PREFIX}/horses"
HORSES = 150
LARGE = [f"X-{number}: {'y' * 600}" for number in range(90)]
POST = (TOKEN, "Content-Type: application/json", f"Content-Length: {250 * KIB}")
BEHAVIOURS = {
    "connect": b"",
    "read no documents": 10 * request("/openapi.json"),
    "read no list": 3 * request(LIST, TOKEN),
    "read no page of a list": 3 * request(f"{LIST}?limit=90", TOKEN),
    "read no watch": request(f"{LIST}?watch=true", TOKEN),
    "end no head": request("/", *LARGE)[:-2],
    "end no body": request(LIST, *POST, method="POST") + bytes(240 * KIB),
    "send a body without a token": request(LIST, *POST[1:], method="POST") + bytes(240 * KIB),
    "send a body with a read": request(f"{LIST}?watch=true", *POST) + bytes(240 * KIB),
    "send ahead": request(f"{LIST}?watch=true", TOKEN) + 10 * request("/", *LARGE),
    "send a large head and stay": request("/healthz", *LARGE),
    "send a long token and stay": request(LIST, f"Authorization: Bearer {'y' * 60 * KIB}"),
    "send a large body and stay": request(f"{PREFIX}/nope", *POST, method="POST") + bytes(250 * KIB),
}
TLS_BEHAVIOURS = {
    "connect": b"",
    "send a large head and stay": request("/healthz", *LARGE),
    "read no documents, and send ahead": 3 * request("/openapi.json") + bytes(320 * KIB),
    "read no watch, and send ahead": request(f"{LIST}?watch=true", TOKEN) + bytes(320 * KIB),
}
CONTEXT = client_context()


@pytest.fixture(autouse=True)
def many_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextlib.contextmanager
def running(directory: Path, tls: Path | None = None) -> Iterator[SampleProcess]:
    with sample_process(directory / "data", limit_s=60, connections=4 * CLIENTS, buffers=SHARES, tls=tls) as process:
        with dialled(process, buffer=MIB, is_tls=tls is not None) as client:
            for number in range(HORSES):
                body = b'{"colour":"%b%d"}' % (b"x" * 3000, number)
                head = request(
                    LIST, TOKEN, "Content-Type: application/json", f"Content-Length: {len(body)}", method="POST"
                )
                client.sendall(head + body)
                assert client.recv(65_536).startswith(b"HTTP/1.1 201 ")
        for path in ("/openapi.json", f"{PREFIX}/docs"):
            answer = exchange(process, request(path, "Connection: close"), is_tls=tls is not None)
            assert answer.startswith(b"HTTP/1.1 200 ")
        yield process


def dialled(process: SampleProcess, *, buffer: int = 4 * KIB, is_tls: bool = False) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    client.settimeout(20)
    client.connect(("127.0.0.1", process.port))
    return CONTEXT.wrap_socket(client, server_hostname="127.0.0.1") if is_tls else client


def exchange(process: SampleProcess, sent: bytes, *, is_tls: bool = False) -> bytes:
    with dialled(process, buffer=MIB, is_tls=is_tls) as client:
        client.sendall(sent)
        read = b""
        while chunk := client.recv(65_536):
            read += chunk
    return read


def descriptors(process: SampleProcess) -> int:
    """Return the number of its open files and sockets. Its metrics may be a second old."""
    return len(list(Path(f"/proc/{process.process.pid}/fd").iterdir()))


def behave(process: SampleProcess, sent: bytes, *, is_tls: bool = False) -> int:
    """Let many clients send something and read nothing; return the largest memory of the process meanwhile."""
    largest, before = 0, descriptors(process)
    with ExitStack() as clients:
        for number in range(CLIENTS):
            client = clients.enter_context(dialled(process, is_tls=is_tls))
            client.settimeout(0.05)  # what the process does not read is not sent
            with contextlib.suppress(OSError):
                client.sendall(sent)
            if number % 50 == 0:
                largest = max(largest, process.memory())
        answer = exchange(process, request("/healthz", "Connection: close"), is_tls=is_tls)
        assert answer.startswith(b"HTTP/1.1 200 ")
        largest = max(largest, process.memory())
    ends = time.monotonic() + 60
    while descriptors(process) > before + CLIENTS // 10:
        assert time.monotonic() < ends
    return largest


def test_m27_one_address_occupies_its_share_of_the_memory_and_little_per_connection(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        before = process.memory()
        growth = {what: behave(process, sent) - before for what, sent in BEHAVIOURS.items()}
        most = SHARES / 2 + CLIENTS * PER_CONNECTION
        assert {what: grown for what, grown in growth.items() if grown > most} == {}, growth


def test_m27_within_tls_one_address_occupies_its_share_and_little_per_connection_too(tmp_path: Path) -> None:
    server_files(tmp_path)
    with running(tmp_path, tls=tmp_path) as process:
        before = process.memory()
        growth = {what: behave(process, sent, is_tls=True) - before for what, sent in TLS_BEHAVIOURS.items()}
        most = SHARES / 2 + CLIENTS * PER_TLS_CONNECTION
        assert {what: grown for what, grown in growth.items() if grown > most} == {}, growth
