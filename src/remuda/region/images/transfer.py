"""Transfers of images from the server of a user to a provider.

A transfer outlives the reconcile that starts it, and enqueues its import when it changes. It is not stored: after a
restart the controller looks for the image, or starts again. Content is checked on the stream that the provider reads,
and before its end the import must still exist; so whatever ends a transfer also ends the call to the provider, and
leaves no image. If two processes transfer the same image, the provider rejects the second.

Error messages neither quote the server nor name it; the cause is only logged.
"""

import asyncio
import contextlib
import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Self

import structlog

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Invalid, Malformed, OutcomeUnknown, RemudaError, Unavailable
from remuda.kernel.fair_slots import FairSlots
from remuda.kernel.secrets import Secret
from remuda.outbound.fetch import FetchFailed, GuardedFetcher, OpenResponse
from remuda.providers.contract.catalogue import CloudImages, CloudImageSpec
from remuda.region.images.source_rate import SourceRate

_SECTOR = 512
_BOOT_SIGNATURE = b"\x55\xaa"
_FIELD = "spec.uri"
_UNREADABLE = "Image read failed, please ensure the URL is correct"
_STATUS = "Image read failed with an incorrect status code, please ensure the URL is correct"
_BUSY = "Too many images are being read from servers that respond slowly. Retry in a minute."
_MAX_HEADERS = 32
_HEADERS_OF_ORGANIZATION = 8
_PARTIAL = 206
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
_LENGTH = re.compile(r"[0-9]{1,19}")
_FIRST_SECTOR = re.compile(r"bytes 0-511/(?P<length>[0-9]{1,19}|\*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLimits:
    """Size of an image, and the time to read its header and all of it."""

    max_bytes: int = 30 * 1024**3
    header_s: float = 15.0
    total_s: float = 2 * 60 * 60.0


class ImageHeader(NamedTuple):
    """First 512 bytes of an image, and its length if the server reports it."""

    head: bytes
    length: int | None


class Download:
    """All bytes of an image, whose header is checked; `sha256` is set after the last one."""

    def __init__(self, response: OpenResponse, max_bytes: int) -> None:
        self._response, self._max_bytes = response, max_bytes
        self._hash = hashlib.sha256()
        self.length = 0
        self.sha256: str | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        with _fetch_errors():
            chunk = await (self._response.read() if self.length else self._header())
        if not chunk:
            self.sha256 = self._hash.hexdigest()
            raise StopAsyncIteration
        self.length += len(chunk)
        _check_length(self.length, self._max_bytes)
        self._hash.update(chunk)
        return chunk

    async def _header(self) -> bytes:
        header = await _read(self._response, _SECTOR)
        _check_boot_record(header)
        return header


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFetcher:
    """Reader of images, within limits."""

    source: GuardedFetcher
    limits: ImageLimits = ImageLimits()
    slots: FairSlots = field(default_factory=partial(FairSlots, _MAX_HEADERS, share=_HEADERS_OF_ORGANIZATION))
    """Slots of reads of headers, by organization."""

    async def read_header(self, url: str, organization: str) -> ImageHeader:
        """Return the header of an image, or raise Invalid, Malformed, or Unavailable if others take too long.

        It reports most errors before an import starts. The content is checked again when it is used, since the server
        may send something else then.
        """
        headers = {"Range": f"bytes=0-{_SECTOR - 1}"}
        deadline = asyncio.get_running_loop().time() + self.limits.header_s
        try:
            async with self.slots.acquire(organization, deadline=deadline):
                total_s = deadline - asyncio.get_running_loop().time()
                async with self.source.open(url, headers, total_s=total_s, client=organization) as response:
                    return await self._read_header(response)
        except FetchFailed as error:
            raise Invalid(_FIELD, _UNREADABLE) from error
        except TimeoutError:
            raise Unavailable(_BUSY) from None

    async def _read_header(self, response: OpenResponse) -> ImageHeader:
        _check_status(response)
        is_partial = response.status == _PARTIAL
        start = await _read(response, _SECTOR + is_partial)
        length = _length_of_part(response, start) if is_partial else _length_of(response)
        _check_boot_record(start[:_SECTOR])
        _check_length(length or 0, self.limits.max_bytes)
        return ImageHeader(start[:_SECTOR], length)

    @asynccontextmanager
    async def stream(self, url: str, organization: str) -> AsyncIterator[Download]:
        """Yield the content of an image; raise Invalid, or Unavailable if a retry may help."""
        async with contextlib.AsyncExitStack() as stack:
            with _fetch_errors():
                opened = self.source.open(url, {}, total_s=self.limits.total_s, client=organization)
                response = await stack.enter_async_context(opened)
            if response.status in _TEMPORARY:
                raise Unavailable(_STATUS)
            _check_status(response)
            if response.status == _PARTIAL:  # no range was requested
                raise Invalid(_FIELD, _STATUS)
            _check_length(_length_of(response) or 0, self.limits.max_bytes)
            yield Download(response, self.limits.max_bytes)


@contextlib.contextmanager
def _fetch_errors() -> Iterator[None]:
    try:
        yield
    except FetchFailed as error:
        raise (Unavailable(_UNREADABLE) if error.is_temporary else Invalid(_FIELD, _UNREADABLE)) from error


async def _read(response: OpenResponse, least: int) -> bytes:
    """Return at least this number of bytes of a response, or all of them."""
    read = bytearray()
    while len(read) < least and (chunk := await response.read()):
        read += chunk
    return bytes(read)


def _check_status(response: OpenResponse) -> None:
    if not 200 <= response.status < 300:  # noqa: PLR2004  the statuses of success
        raise Invalid(_FIELD, _STATUS)


def _check_boot_record(header: bytes) -> None:
    if len(header) < _SECTOR:
        raise Invalid(_FIELD, "Unable to peek image header, response too small")
    if header[_SECTOR - len(_BOOT_SIGNATURE) : _SECTOR] != _BOOT_SIGNATURE:
        raise Invalid(_FIELD, "Image does not contain a valid master boot record, ensure the image is in raw format")


def _check_length(length: int, max_bytes: int) -> None:
    if length > max_bytes:
        raise Invalid("The image", f"is longer than {max_bytes} bytes", remedy="import a smaller one")


def _length_of_part(response: OpenResponse, part: bytes) -> int | None:
    """Return the length of the whole image, or raise Malformed if the part is not the requested one."""
    content_range = _FIRST_SECTOR.fullmatch(response.headers.get("content-range", ""))
    if len(part) != _SECTOR or content_range is None:
        raise Malformed("Unable to peek image header, incorrect response size for range")
    return None if content_range["length"] == "*" else int(content_range["length"])


def _length_of(response: OpenResponse) -> int | None:
    length = _LENGTH.fullmatch(response.headers.get("content-length", ""))
    return int(length[0]) if length else None


class _CancelledError(Exception):
    """Ends the call to a provider because the content ends early; the provider is not to blame."""


class Transfer:
    """Transfer of one image."""

    def __init__(
        self,
        fetcher: ImageFetcher,
        uri: Secret,
        is_needed: Callable[[], Awaitable[bool]],
        *,
        organization: str,
        clock: Clock,
        is_contended: Callable[[], bool],
    ) -> None:
        self._fetcher, self._uri, self._is_needed = fetcher, uri, is_needed
        self._organization, self._clock, self._is_contended = organization, clock, is_contended
        self._is_cancelled = False
        self.is_running = False
        self.is_done = False
        self.received = 0
        self.sha256 = ""
        """Digest of all bytes, after the last one."""
        self.error: RemudaError | None = None
        """Failure: Unavailable if a retry may help."""

    def cancel(self) -> None:
        """Forward no more bytes."""
        self._is_cancelled = True

    async def run(self, images: CloudImages, spec: CloudImageSpec) -> None:
        """Upload the image; the attributes have the result."""
        content = self._content()
        try:
            await images.create_image(spec, content)
        except AlreadyExists:
            self.sha256 = ""  # the image exists, of unknown content
        except OutcomeUnknown as error:
            self.error = error
            return  # the call still runs, and closes the content when it reads it next
        except RemudaError as error:
            self.error = self.error or error
        except Exception:  # noqa: BLE001  the controller decides whether to retry
            if self.error is None and not self._is_cancelled:
                structlog.get_logger().exception("image transfer failed", image=spec.id)
            self.error = self.error or Unavailable("The image could not be uploaded to the provider. Retry the import.")
        finally:
            self.cancel()
        await content.aclose()

    async def _content(self) -> AsyncGenerator[bytes, None]:
        try:
            async with self._fetcher.stream(self._uri.reveal(), self._organization) as download:
                rate, asked_at = SourceRate(), self._clock.monotonic()
                async for chunk in download:
                    self._check_not_cancelled()
                    waited_s = self._clock.monotonic() - asked_at
                    rate.record(waited_s, len(chunk), is_contended=self._is_contended())
                    self.received = download.length
                    yield chunk
                    asked_at = self._clock.monotonic()
                if not await self._is_needed():
                    self.cancel()
                self._check_not_cancelled()
                self.sha256 = download.sha256 or ""
        except (Invalid, Unavailable) as error:
            self.error = error
            raise _CancelledError from None

    def _check_not_cancelled(self) -> None:
        if self._is_cancelled:
            raise _CancelledError


MAX_TRANSFERS = 4
"""Concurrent transfers: each uses a call slot of its provider. An organization has at most half of them."""


class Transfers:
    """Transfers of this process by image id. At most `max_concurrent` run; the others are queued."""

    def __init__(self, fetcher: ImageFetcher, *, clock: Clock, max_concurrent: int = MAX_TRANSFERS) -> None:
        self._fetcher, self._clock = fetcher, clock
        self._slots = FairSlots(max_concurrent, share=max(1, max_concurrent // 2))
        self._transfers: dict[str, Transfer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listeners: list[Callable[[str], None]] = []

    def add_listener(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the image of each transfer that leaves the queue or is done."""
        self._listeners.append(listener)

    def find(self, image: str) -> Transfer | None:
        """Return the transfer of an image: queued, running, or done and not forgotten."""
        return self._transfers.get(image)

    def start(
        self, images: CloudImages, spec: CloudImageSpec, uri: Secret, is_needed: Callable[[], Awaitable[bool]]
    ) -> None:
        assert spec.id not in self._transfers, "an image has one transfer at a time"
        transfer = Transfer(
            self._fetcher,
            uri,
            is_needed,
            organization=spec.organization,
            clock=self._clock,
            is_contended=partial(self._slots.is_contended, spec.organization),
        )
        self._transfers[spec.id] = transfer
        task = asyncio.create_task(self._run(transfer, images, spec), name=f"transfer of image {spec.id}")
        self._tasks[spec.id] = task
        task.add_done_callback(lambda _: self._finish(spec.id, transfer))

    def cancel(self, image: str) -> bool:
        """Cancel a transfer; return whether it is done. A running one is done after its next bytes."""
        found = self._transfers.get(image)
        if found is None or found.is_done:
            return True
        found.cancel()
        if not found.is_running:
            self._tasks[image].cancel()
        return False

    def forget(self, image: str) -> None:
        found = self._transfers.get(image)
        if found is not None and found.is_done:
            del self._transfers[image]

    async def run(self) -> None:
        """Wait until cancelled, as a background task, and cancel all transfers then."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.stop()

    async def stop(self) -> None:
        for transfer in self._transfers.values():
            transfer.cancel()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, transfer: Transfer, images: CloudImages, spec: CloudImageSpec) -> None:
        async with self._slots.acquire(spec.organization):
            transfer.is_running = True
            self._notify(spec.id)
            await transfer.run(images, spec)

    def _finish(self, image: str, transfer: Transfer) -> None:
        del self._tasks[image]
        transfer.is_done = True
        self._notify(image)

    def _notify(self, image: str) -> None:
        for listener in self._listeners:
            listener(image)
