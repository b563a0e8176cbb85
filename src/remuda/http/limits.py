"""Limits of a request's body: how long it may be, and how long it may take.

A body that announces more than the limit is refused before a byte of it is read, so that a client that waits for `100
Continue` never sends it. One that announces nothing is counted as it comes and refused when it is past the limit: no
more than the limit and one network read is ever held.
"""

import asyncio
import re
from collections.abc import Iterable

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from remuda.http.responses import Header
from remuda.kernel.errors import Malformed, TooLarge, TooSlow

_LENGTH = re.compile(rb"[0-9]{1,18}")


async def read_body(receive: Receive, headers: Iterable[Header], *, limit: int, timeout_s: float) -> bytes:
    """Return the whole body.

    Raise TooLarge or TooSlow where it is, Malformed if its announced length is no number, and Starlette's
    ClientDisconnect if nobody is there any more to be answered.
    """
    if _announced(headers) > limit:
        raise TooLarge("body", limit)
    try:
        async with asyncio.timeout(timeout_s):
            return await _read(receive, limit)
    except TimeoutError:
        raise TooSlow(timeout_s) from None


async def _read(receive: Receive, limit: int) -> bytes:
    chunks: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        length += len(chunk)
        if length > limit:
            raise TooLarge("body", limit)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _announced(headers: Iterable[Header]) -> int:
    for name, value in headers:
        if name == b"content-length":
            if not _LENGTH.fullmatch(value):
                raise Malformed("Content-Length is no number of up to 18 digits: send how many bytes the body has.")
            return int(value)
    return 0
