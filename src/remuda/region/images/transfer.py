"""Transfers: images on their way from a server somewhere to a provider, for as long as this process runs.

A transfer takes far longer than a pass of a controller may, so it goes on by itself; its controller begins it, looks at
it, and is woken when it moves. Nothing of it is stored: after a restart the controller looks whether the image is
there, and otherwise begins anew.

The bytes go through as they come. That they are those of an image is checked on the very stream that the provider is
given, and before that ends the image must still be wanted. So whatever ends a transfer, be it that the image was
deleted or that the server broke off, ends the provider's call as well, and leaves no image. Of two processes that both
believe to lead, the provider refuses the second.

At most `most` transfers run at once; the others wait for their turn.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import structlog

from remuda.kernel.errors import AlreadyExists, Invalid, OutcomeUnknown, RemudaError, Unavailable
from remuda.kernel.secrets import Secret
from remuda.providers.contract.catalogue import Images, NewImage
from remuda.region.images.fetching import ImageFetcher


class _BrokenOffError(Exception):
    """Ends a provider's call because there is no more content; it says nothing about the provider."""


class Transfer:
    """One image on its way."""

    def __init__(self, fetcher: ImageFetcher, uri: Secret, is_wanted: Callable[[], Awaitable[bool]]) -> None:
        self._fetcher, self._uri, self._is_wanted = fetcher, uri, is_wanted
        self._is_broken_off = False
        self.is_running = False
        """Its turn has come."""
        self.has_ended = False
        self.received = 0
        """How many bytes have come."""
        self.sha256 = ""
        """Of all bytes, once the last one has come."""
        self.trouble: RemudaError | None = None
        """What went wrong: Unavailable if it may be tried again, and something else if it is so for good."""

    def break_off(self) -> None:
        """Let no more bytes through."""
        self._is_broken_off = True

    async def run(self, images: Images, wanted: NewImage) -> None:
        """Take the image there; what became of it is said by the attributes."""
        content = self._content()
        try:
            await images.create_image(wanted, content)
        except AlreadyExists:
            self.sha256 = ""  # it is there, which is what was wanted; of which bytes nobody knows
        except OutcomeUnknown as error:
            self.trouble = error
            return  # the call goes on, and closes the content when it next asks for some
        except RemudaError as error:
            self.trouble = self.trouble or error
        except Exception:  # noqa: BLE001  whatever it was, its controller decides what comes of it
            if self.trouble is None and not self._is_broken_off:
                structlog.get_logger().exception("image transfer failed", image=wanted.id)
            self.trouble = self.trouble or Unavailable("The image could not be taken to the provider: try again.")
        finally:
            self.break_off()
        await content.aclose()

    async def _content(self) -> AsyncGenerator[bytes, None]:
        try:
            async with self._fetcher.stream(self._uri.reveal()) as download:
                async for chunk in download:
                    self._check_goes_on()
                    self.received = download.length
                    yield chunk
                if not await self._is_wanted():
                    self.break_off()
                self._check_goes_on()
                self.sha256 = download.sha256 or ""
        except (Invalid, Unavailable) as error:
            self.trouble = error
            raise _BrokenOffError from None

    def _check_goes_on(self) -> None:
        if self._is_broken_off:
            raise _BrokenOffError


class Transfers:
    """All transfers of this process, by the ids of their images."""

    def __init__(self, fetcher: ImageFetcher, *, most: int) -> None:
        self._fetcher = fetcher
        self._turns = asyncio.Semaphore(most)
        self._transfers: dict[str, Transfer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listeners: list[Callable[[str], None]] = []

    def when_moved(self, listener: Callable[[str], None]) -> None:
        """Have `listener` told of each transfer whose turn has come, or that has ended."""
        self._listeners.append(listener)

    def find(self, image: str) -> Transfer | None:
        """Return the transfer of an image that runs, waits, or has ended and was not forgotten."""
        return self._transfers.get(image)

    def begin(self, images: Images, wanted: NewImage, uri: Secret, is_wanted: Callable[[], Awaitable[bool]]) -> None:
        """Begin to take an image to a provider."""
        assert wanted.id not in self._transfers, "there is one transfer of an image at a time"
        transfer = self._transfers[wanted.id] = Transfer(self._fetcher, uri, is_wanted)
        task = asyncio.create_task(self._run(transfer, images, wanted), name=f"transfer of image {wanted.id}")
        self._tasks[wanted.id] = task
        task.add_done_callback(lambda _: self._end(wanted.id, transfer))

    def break_off(self, image: str) -> bool:
        """End a transfer; tell whether it has ended, which one that runs does when its next bytes have come."""
        found = self._transfers.get(image)
        if found is None or found.has_ended:
            return True
        found.break_off()
        if not found.is_running:
            self._tasks[image].cancel()
        return False

    def forget(self, image: str) -> None:
        """Remember an ended transfer no longer."""
        found = self._transfers.get(image)
        if found is not None and found.has_ended:
            del self._transfers[image]

    async def stop(self) -> None:
        """End all of them."""
        for transfer in self._transfers.values():
            transfer.break_off()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, transfer: Transfer, images: Images, wanted: NewImage) -> None:
        async with self._turns:
            transfer.is_running = True
            self._tell(wanted.id)
            await transfer.run(images, wanted)

    def _end(self, image: str, transfer: Transfer) -> None:
        """A transfer has ended, be it before it came to anything."""
        del self._tasks[image]
        transfer.has_ended = True
        self._tell(image)

    def _tell(self, image: str) -> None:
        for listener in self._listeners:
            listener(image)
