"""Transfers: images on their way from a server somewhere to a provider, for as long as this process runs.

A transfer takes far longer than a pass of a controller may, so it goes on by itself; its controller begins it, looks at
it, and is woken when it moves. Nothing of it is stored: after a restart the controller looks whether the image is
there, and otherwise begins anew.

The bytes go through as they come. That they are those of an image is checked on the very stream that the provider is
given, and before that ends the image must still be wanted. So whatever ends a transfer, be it that the image was
deleted or that the server broke off, ends the provider's call as well, and leaves no image. Of two processes that both
believe to lead, the provider refuses the second.

At most `most` transfers run at once; the others wait for their turn.

Reading an image from an address that a user gives: a look at its beginning first, then all of it.

An image is a raw disk, so its first 512 bytes end in the mark of a master boot record. The look is a courtesy: it tells
at once what is wrong. What counts is that the same is checked again on the very bytes that are used, because whoever
served the first ones may serve others later.

The words of a refusal are those that clients know; none tells what the server said, or where it is. Why nothing could
be read is the cause of the error, for the log alone. While an image is read in whole, trouble that may pass is
Unavailable, to be tried again, and everything else Invalid.
"""

import asyncio
import contextlib
import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple, Self

import structlog

from remuda.kernel.errors import AlreadyExists, Invalid, Malformed, OutcomeUnknown, RemudaError, Unavailable
from remuda.kernel.secrets import Secret
from remuda.outbound.fetch import FetchFailed, GuardedFetcher, OpenResponse
from remuda.providers.contract.catalogue import CloudImages, CloudImageSpec

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
class ImageLimits:
    """How long an image may be, and how long it may take to look at it and to read it."""

    max_bytes: int = 30 * 1024**3
    header_s: float = 15.0
    total_s: float = 2 * 60 * 60.0


class ImageHeader(NamedTuple):
    """An image's first 512 bytes, and its length where the server told it."""

    head: bytes
    length: int | None


class Download:
    """All bytes of an image, in order, its beginning checked; `sha256` is there when the last one has been read."""

    def __init__(self, answer: OpenResponse, longest: int) -> None:
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

    source: GuardedFetcher
    limits: ImageLimits = ImageLimits()

    async def read_header(self, url: str) -> ImageHeader:
        """Return an image's beginning and length, or raise Invalid or Malformed."""
        asked = {"Range": f"bytes=0-{_SECTOR - 1}"}
        try:
            async with self.source.open(url, asked, total_s=self.limits.header_s) as answer:
                return await self._read_header(answer)
        except FetchFailed as error:
            raise Invalid(_FIELD, _UNREADABLE) from error

    async def _read_header(self, answer: OpenResponse) -> ImageHeader:
        _check_status(answer)
        is_partial = answer.status == _PARTIAL
        head = await _read(answer, _SECTOR + is_partial)
        length = _length_of_part(answer, head) if is_partial else _length_of(answer)
        _check_boot_record(head[:_SECTOR])
        _check_length(length or 0, self.limits.max_bytes)
        return ImageHeader(head[:_SECTOR], length)

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
            _check_length(_length_of(answer) or 0, self.limits.max_bytes)
            yield Download(answer, self.limits.max_bytes)


@contextlib.contextmanager
def _told_while_reading() -> Iterator[None]:
    try:
        yield
    except FetchFailed as error:
        raise (Unavailable(_UNREADABLE) if error.is_temporary else Invalid(_FIELD, _UNREADABLE)) from error


async def _read(answer: OpenResponse, least: int) -> bytes:
    """Return at least so many bytes of an answer, or all there are."""
    read = bytearray()
    while len(read) < least and (chunk := await answer.read()):
        read += chunk
    return bytes(read)


def _check_status(answer: OpenResponse) -> None:
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


def _length_of_part(answer: OpenResponse, head: bytes) -> int | None:
    """Return the length of what an answer is a part of, or raise Malformed where it is not the part asked for."""
    told = _FIRST_SECTOR.fullmatch(answer.headers.get("content-range", ""))
    if len(head) != _SECTOR or told is None:
        raise Malformed("Unable to peek image header, incorrect response size for range")
    return None if told["length"] == "*" else int(told["length"])


def _length_of(answer: OpenResponse) -> int | None:
    told = _LENGTH.fullmatch(answer.headers.get("content-length", ""))
    return int(told[0]) if told else None


class _CancelledError(Exception):
    """Ends a provider's call because there is no more content; it says nothing about the provider."""


class Transfer:
    """One image on its way."""

    def __init__(self, fetcher: ImageFetcher, uri: Secret, is_wanted: Callable[[], Awaitable[bool]]) -> None:
        self._fetcher, self._uri, self._is_wanted = fetcher, uri, is_wanted
        self._is_broken_off = False
        self.is_running = False
        """Its turn has come."""
        self.is_done = False
        self.received = 0
        """How many bytes have come."""
        self.sha256 = ""
        """Of all bytes, once the last one has come."""
        self.error: RemudaError | None = None
        """What went wrong: Unavailable if it may be tried again, and something else if it is so for good."""

    def cancel(self) -> None:
        """Let no more bytes through."""
        self._is_broken_off = True

    async def run(self, images: CloudImages, wanted: CloudImageSpec) -> None:
        """Take the image there; what became of it is said by the attributes."""
        content = self._content()
        try:
            await images.create_image(wanted, content)
        except AlreadyExists:
            self.sha256 = ""  # it is there, which is what was wanted; of which bytes nobody knows
        except OutcomeUnknown as error:
            self.error = error
            return  # the call goes on, and closes the content when it next asks for some
        except RemudaError as error:
            self.error = self.error or error
        except Exception:  # noqa: BLE001  whatever it was, its controller decides what comes of it
            if self.error is None and not self._is_broken_off:
                structlog.get_logger().exception("image transfer failed", image=wanted.id)
            self.error = self.error or Unavailable("The image could not be taken to the provider: try again.")
        finally:
            self.cancel()
        await content.aclose()

    async def _content(self) -> AsyncGenerator[bytes, None]:
        try:
            async with self._fetcher.stream(self._uri.reveal()) as download:
                async for chunk in download:
                    self._check_goes_on()
                    self.received = download.length
                    yield chunk
                if not await self._is_wanted():
                    self.cancel()
                self._check_goes_on()
                self.sha256 = download.sha256 or ""
        except (Invalid, Unavailable) as error:
            self.error = error
            raise _CancelledError from None

    def _check_goes_on(self) -> None:
        if self._is_broken_off:
            raise _CancelledError


class Transfers:
    """All transfers of this process, by the ids of their images."""

    def __init__(self, fetcher: ImageFetcher, *, most: int) -> None:
        self._fetcher = fetcher
        self._slots = asyncio.Semaphore(most)
        self._transfers: dict[str, Transfer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listeners: list[Callable[[str], None]] = []

    def add_listener(self, listener: Callable[[str], None]) -> None:
        """Have `listener` told of each transfer whose turn has come, or that has ended."""
        self._listeners.append(listener)

    def find(self, image: str) -> Transfer | None:
        """Return the transfer of an image that runs, waits, or has ended and was not forgotten."""
        return self._transfers.get(image)

    def start(
        self, images: CloudImages, wanted: CloudImageSpec, uri: Secret, is_wanted: Callable[[], Awaitable[bool]]
    ) -> None:
        """Begin to take an image to a provider."""
        assert wanted.id not in self._transfers, "there is one transfer of an image at a time"
        transfer = self._transfers[wanted.id] = Transfer(self._fetcher, uri, is_wanted)
        task = asyncio.create_task(self._run(transfer, images, wanted), name=f"transfer of image {wanted.id}")
        self._tasks[wanted.id] = task
        task.add_done_callback(lambda _: self._end(wanted.id, transfer))

    def cancel(self, image: str) -> bool:
        """End a transfer; tell whether it has ended, which one that runs does when its next bytes have come."""
        found = self._transfers.get(image)
        if found is None or found.is_done:
            return True
        found.cancel()
        if not found.is_running:
            self._tasks[image].cancel()
        return False

    def forget(self, image: str) -> None:
        """Remember an ended transfer no longer."""
        found = self._transfers.get(image)
        if found is not None and found.is_done:
            del self._transfers[image]

    async def stop(self) -> None:
        """End all of them."""
        for transfer in self._transfers.values():
            transfer.cancel()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, transfer: Transfer, images: CloudImages, wanted: CloudImageSpec) -> None:
        async with self._slots:
            transfer.is_running = True
            self._tell(wanted.id)
            await transfer.run(images, wanted)

    def _end(self, image: str, transfer: Transfer) -> None:
        """A transfer has ended, be it before it came to anything."""
        del self._tasks[image]
        transfer.is_done = True
        self._tell(image)

    def _tell(self, image: str) -> None:
        for listener in self._listeners:
            listener(image)
