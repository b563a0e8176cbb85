"""Informer: keeps the tables of one kind equal to the API server.

It lists once, in pages, then follows a watch. A watch that ends is resumed; one that is too old is replaced by a new
list, which is compared with the tables. Changes that were missed have no known order, so after any of them watchers get
Gone and list again, which does not load the API server.
"""

from typing import Any

import msgspec
import structlog

from remuda.kernel.backoff import RetryTimers
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Gone, Unavailable
from remuda.kernel.randomness import Randomness
from remuda.store.kubernetes.client import ApiStatus
from remuda.store.kubernetes.mirror import Mirror, MirrorChange, head_of
from remuda.store.kubernetes.resource_client import ApiWatchEvent, ResourceApi
from remuda.store.readside.change_feed import Feed

_PAGE = 500
_WATCH_S = 240
_PAUSE_S = 0.1
_MAX_PAUSE_S = 5.0


class Informer:
    """Follows one kind for as long as it runs."""

    def __init__(
        self,
        api: ResourceApi[Any],
        mirror: Mirror,
        feed: Feed,
        *,
        clock: Clock,
        randomness: Randomness,
        backoffs: RetryTimers,
        silence_s: float,
    ) -> None:
        self._api, self._mirror, self._feed = api, mirror, feed
        self._clock, self._randomness, self._silence_s = clock, randomness, silence_s
        self._backoff = backoffs.new(first_s=_PAUSE_S, longest_s=_MAX_PAUSE_S)
        self._is_listed = False
        """Whether the tables contain everything that the server had at the version the feed has reached."""
        self._has_missed = True
        """Whether readers were shown changes that watchers cannot get in order."""
        self._last_response_at = clock.monotonic()
        self._log = structlog.get_logger().bind(kind=api.kind.qualified)

    @property
    def name(self) -> str:
        return f"informer of {self._api.kind.qualified}"

    async def open(self, retry_for_s: float) -> None:
        """Wait until the kind is listed, or raise the error once there was no progress for `retry_for_s`."""
        self._last_response_at = self._clock.monotonic()
        while not self._is_listed:
            try:
                await self._list(retry_for_s)
            except Gone:
                continue
            except Unavailable:
                if self._clock.monotonic() + self._backoff.next_s > self._last_response_at + retry_for_s:
                    raise
                await self._backoff.pause()

    async def run(self) -> None:
        """List if necessary and follow, until stopped; an unresponsive server is retried with backoff."""
        while True:
            try:
                if not self._is_listed:
                    await self._list()
                await self._follow()
            except Gone:
                self._is_listed = False
            except Unavailable as error:
                self._log.warning("informer disconnected", cause=error.message)
                await self._backoff.pause()
            except Exception:
                self._is_listed = False  # after an unknown error, only a new list is certain
                raise

    async def _list(self, retry_for_s: float | None = None) -> None:
        """Make the tables equal to a new list."""
        version, token, last = "", "", ""
        newest: list[msgspec.Raw] = []
        while not version or token:
            page = await self._api.list_page(limit=_PAGE, continue_=token, retry_for_s=retry_for_s)
            self._record_response()
            version, token = version or page.metadata.resource_version, page.metadata.continue_
            missed = await self._mirror.compare(page.items, after=last, is_last=not token, newest=int(version))
            self._has_missed |= bool(missed)
            newest += missed.newest
            last = missed.upto
            await self._mirror.catch_up(missed)
        # No await from here on: a watch from this version must not begin before all of its state is visible.
        self._mirror.refresh(newest)
        if self._has_missed:
            self._feed.lose_history(int(version))
        self._feed.advance(int(version))
        self._is_listed, self._has_missed = True, False

    async def _follow(self) -> None:
        """Apply the events of a watch until the server ends it."""
        timeout_s = int(_WATCH_S * self._randomness.uniform(0.8, 1.2))
        since = str(self._feed.reached)
        async for events in self._api.watch(since, timeout_s=timeout_s, silence_s=self._silence_s):
            self._record_response()
            changes: list[MirrorChange] = []
            for event in events:
                if event.type in {"ERROR", "BOOKMARK"}:
                    await self._mirror.apply(changes)
                    changes = []
                    self._handle_control_event(event)
                else:
                    changes.append((event.type, event.object))
            await self._mirror.apply(changes)

    def _handle_control_event(self, event: ApiWatchEvent) -> None:
        if event.type == "BOOKMARK":
            self._feed.advance(head_of(event.object).version)
            return
        status = msgspec.json.decode(event.object, type=ApiStatus)
        if status.code == 410:  # noqa: PLR2004  the code of a version that is too old
            raise Gone(self._api.kind.name, str(self._feed.reached))
        raise Unavailable(f"The API server ended a watch ({status.message}): it is being restarted.")

    def _record_response(self) -> None:
        self._backoff.reset()
        self._last_response_at = self._clock.monotonic()
