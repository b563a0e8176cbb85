"""A directory of `remuda up` with 1,000 instances, and the process on it beside a bare application.

The bare application is uvicorn as it is, without its access log, and answers every request with the bytes that the
process sent: the same head and body.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.bed import Bed
from bench.http.child import serving as serving_bare
from bench.loops import run
from bench.region.process import Process, running, serving
from bench.sockets import read, send, until_quiet

__all__ = ["INSTANCES", "LISTED", "bare", "fetch", "filled", "headers", "ids", "program", "read_list", "request"]

INSTANCES = "/compute/api/v2/instances"
LISTED = 1_000
_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"content-length: (\d+)")
_LONGEST_WAIT_S = 300.0


def filled(bed: Bed) -> Path:
    """Return the directory, which is made once in a run."""
    directory = bed.directory("up")
    if not (directory / "filled").exists():
        with program(directory) as process:
            pass  # the first start makes the organization, and says where it listens
        with serving(directory) as process:
            run(_fill(process))
        (directory / "filled").touch()
    return directory


@contextmanager
def program(directory: Path) -> Iterator[Process]:
    """Run it while the block runs, always at the same address, which is in its tokens; its log goes to a file."""
    at, log = directory / "listen", directory / "remuda.log"
    with running(directory, listen=at.read_text() if at.exists() else "127.0.0.1:0", log=log) as process:
        at.write_text(f"127.0.0.1:{process.port}")
        yield process


def headers(process: Process, *more: str) -> Sequence[str]:
    """Return the headers of a request."""
    return (f"Authorization: Bearer {process.token}", *more)


async def ids(process: Process) -> Sequence[str]:
    """Return the ids of all instances."""
    return [each["metadata"]["id"] for each in await read_list(process)]


async def read_list(process: Process) -> Any:
    """Return all instances."""
    return msgspec.json.decode((await fetch(process.port, request(process, INSTANCES))).partition(_END)[2])


async def fetch(port: int, asked: bytes) -> bytes:
    """Return the answer to one request, whole, with a length even if it came in chunks."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(asked)
    head = (await reader.readuntil(_END)).lower()
    if b"transfer-encoding: chunked\r\n" in head:
        chunks = []
        while size := int((await reader.readline()).strip(), 16):
            chunks.append(await reader.readexactly(size))
            await reader.readline()
        body = b"".join(chunks)
        head = head.replace(b"transfer-encoding: chunked\r\n", b"content-length: %d\r\n" % len(body))
    else:
        length = _LENGTH.search(head)
        assert length is not None, head
        body = await reader.readexactly(int(length[1]))
    writer.close()
    return head + body


def request(process: Process, path: str, *more: str) -> bytes:
    """Return a GET as it goes over the wire."""
    lines = (f"GET {path} HTTP/1.1", "Host: bench", *headers(process, *more))
    return "\r\n".join((*lines, "", "")).encode()


@contextmanager
def bare(bed: Bed, answer: bytes) -> Iterator[tuple[int, int]]:
    """Have the bare application send this answer while the block runs; yield its process and port."""
    sent, log = bed.fresh(), bed.fresh()
    sent.write_bytes(answer)
    with serving_bare("bare", sent, log) as child:
        yield child.pid, child.port


async def _fill(process: Process) -> None:
    await send(process, [process.quotas(servers=1_000_000, networks=100)], clients=1)
    network = msgspec.json.decode((await send(process, [process.network("net")], clients=1))[0])["metadata"]["id"]
    await until_quiet(process.pid)
    await send(process, [process.instance(network, f"instance-{number}") for number in range(LISTED)])
    async with asyncio.timeout(_LONGEST_WAIT_S):
        while not all(_is_settled(each) for each in await read(process, INSTANCES)):
            await until_quiet(process.pid)


def _is_settled(instance: Any) -> bool:
    is_provisioned: bool = instance["metadata"]["provisioningStatus"] == "provisioned"
    return is_provisioned and bool(instance["status"]["privateIP"])
