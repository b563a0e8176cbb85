"""Reading an image from an address that a user gives: a look at its beginning first, then all of it.

An image is a raw disk, so its first 512 bytes end in the mark of a master boot record. The look is a courtesy: it tells
at once what is wrong. What counts is that the same is checked again on the very bytes that are used, because whoever
served the first ones may serve others later.

The words of a refusal are those that clients know; none tells what the server said, or where it is. Why nothing could
be read is the cause of the error, for the log alone. While an image is read in whole, trouble that may pass is
Unavailable, to be tried again, and everything else Invalid.
"""

import contextlib
import hashlib
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple, Self

from remuda.kernel.errors import Invalid, Malformed, Unavailable
from remuda.outbound.fetch import Guarded, Opened, Unfetchable

_SECTOR = 512
_BOOT_MARK = b"\x55\xaa"
_FIELD = "spec.uri"
_UNREADABLE = "Image read failed, please ensure the URL is correct"
_STATUS = "Image read failed with an incorrect status code, please ensure the URL is correct"
_PARTIAL = 206
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_LENGTH = re.compile(r"[0-9]{1,19}")
_FIRST_SECTOR = re.compile(r"bytes 0-511/(?P<length>[0-9]{1,19}|\*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long an image may be, and how long it may take to look at it and to read it."""

    longest: int = 30 * 1024**3
    peek_s: float = 15.0
    total_s: float = 2 * 60 * 60.0


class Peeked(NamedTuple):
    """An image's first 512 bytes, and its length where the server told it."""

    head: bytes
    length: int | None


class Download:
    """All bytes of an image, in order, its beginning checked; `sha256` is there when the last one has been read."""

    def __init__(self, answer: Opened, longest: int) -> None:
        self._answer, self._longest = answer, longest
        self._hash = hashlib.sha256()
        self.length = 0
        """How many bytes have been read."""
        self.sha256: str | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        with _told_while_reading():
            chunk = await (self._answer.read() if self.length else self._beginning())
        if not chunk:
            self.sha256 = self._hash.hexdigest()
            raise StopAsyncIteration
        self.length += len(chunk)
        _check_length(self.length, self._longest)
        self._hash.update(chunk)
        return chunk

    async def _beginning(self) -> bytes:
        head = await _read(self._answer, _SECTOR)
        _check_boot_record(head)
        return head


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFetcher:
    """Looks at images and reads them, within limits."""

    source: Guarded
    limits: Limits = Limits()

    async def peek(self, url: str) -> Peeked:
        """Return an image's beginning and length, or raise Invalid or Malformed."""
        asked = {"Range": f"bytes=0-{_SECTOR - 1}"}
        try:
            async with self.source.open(url, asked, total_s=self.limits.peek_s) as answer:
                return await self._peek(answer)
        except Unfetchable as error:
            raise Invalid(_FIELD, _UNREADABLE) from error

    async def _peek(self, answer: Opened) -> Peeked:
        _check_status(answer)
        is_partial = answer.status == _PARTIAL
        head = await _read(answer, _SECTOR + is_partial)
        length = _length_of_part(answer, head) if is_partial else _length_of(answer)
        _check_boot_record(head[:_SECTOR])
        _check_length(length or 0, self.limits.longest)
        return Peeked(head[:_SECTOR], length)

    @asynccontextmanager
    async def stream(self, url: str) -> AsyncIterator[Download]:
        """Give all of an image, or raise Invalid, or Unavailable where trying again later may help."""
        async with contextlib.AsyncExitStack() as held:
            with _told_while_reading():
                answer = await held.enter_async_context(self.source.open(url, {}, total_s=self.limits.total_s))
            if answer.status in _PASSING:
                raise Unavailable(_STATUS)
            _check_status(answer)
            if answer.status == _PARTIAL:  # nobody has asked for a part
                raise Invalid(_FIELD, _STATUS)
            _check_length(_length_of(answer) or 0, self.limits.longest)
            yield Download(answer, self.limits.longest)


@contextlib.contextmanager
def _told_while_reading() -> Iterator[None]:
    try:
        yield
    except Unfetchable as error:
        raise (Unavailable(_UNREADABLE) if error.may_pass else Invalid(_FIELD, _UNREADABLE)) from error


async def _read(answer: Opened, least: int) -> bytes:
    """Return at least so many bytes of an answer, or all there are."""
    read = bytearray()
    while len(read) < least and (chunk := await answer.read()):
        read += chunk
    return bytes(read)


def _check_status(answer: Opened) -> None:
    if not 200 <= answer.status < 300:  # noqa: PLR2004  the statuses of success
        raise Invalid(_FIELD, _STATUS)


def _check_boot_record(head: bytes) -> None:
    if len(head) < _SECTOR:
        raise Invalid(_FIELD, "Unable to peek image header, response too small")
    if head[_SECTOR - len(_BOOT_MARK) : _SECTOR] != _BOOT_MARK:
        raise Invalid(_FIELD, "Image does not contain a valid master boot record, ensure the image is in raw format")


def _check_length(length: int, longest: int) -> None:
    if length > longest:
        raise Invalid("The image", f"is longer than {longest} bytes", remedy="import a smaller one")


def _length_of_part(answer: Opened, head: bytes) -> int | None:
    """Return the length of what an answer is a part of, or raise Malformed where it is not the part asked for."""
    told = _FIRST_SECTOR.fullmatch(answer.headers.get("content-range", ""))
    if len(head) != _SECTOR or told is None:
        raise Malformed("Unable to peek image header, incorrect response size for range")
    return None if told["length"] == "*" else int(told["length"])


def _length_of(answer: Opened) -> int | None:
    told = _LENGTH.fullmatch(answer.headers.get("content-length", ""))
    return int(told[0]) if told else None
