"""An informer: keeps the tables of one kind equal to what the API server has.

It lists once, in pages, then follows a watch. A watch that was cut is resumed; one that is too old is replaced by a new
list, which is compared with the tables. What changed while nobody watched has no order we could tell watchers, so if
anything did, they are told Gone and list again, which costs the API server nothing.
"""

from typing import Any

import msgspec
import structlog

from remuda.kernel.backoff import RetryTimers
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Gone, Unavailable
from remuda.kernel.randomness import Randomness
from remuda.store.kubernetes.mirror import Change, Mirror, head_of
from remuda.store.kubernetes.resource_client import ResourceApi, Watched
from remuda.store.readside.change_feed import Feed

_PAGE = 500
_WATCH_S = 240
_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class _Status(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""


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
        self._api = api
        self._mirror = mirror
        self._feed = feed
        self._clock = clock
        self._randomness = randomness
        self._silence_s = silence_s
        self._backoff = backoffs.new(first_s=_PAUSE_S, longest_s=_LONGEST_PAUSE_S)
        self._is_listed = False
        """Whether the tables hold all that the server had at the version the feed has reached."""
        self._has_missed = True
        """Whether readers were shown what no watch can be told in order."""
        self._heard_at = clock.monotonic()
        self._log = structlog.get_logger().bind(kind=api.kind.qualified)

    @property
    def name(self) -> str:
        """What it does, for the log."""
        return f"informer of {self._api.kind.qualified}"

    async def open(self, patience_s: float) -> None:
        """Return when the kind is listed; raise what keeps it from that once patience ends without any progress."""
        self._heard_at = self._clock.monotonic()
        while not self._is_listed:
            try:
                await self._list(patience_s)
            except Gone:
                continue
            except Unavailable:
                if self._clock.monotonic() + self._backoff.next_s > self._heard_at + patience_s:
                    raise
                await self._backoff.pause()

    async def run(self) -> None:
        """List if need be and follow, for ever; a server that does not answer is asked again, less and less often."""
        while True:
            try:
                if not self._is_listed:
                    await self._list()
                await self._follow()
            except Gone:
                self._is_listed = False
            except Unavailable as error:
                self._log.warning("informer lost the server", cause=error.sentence)
                await self._backoff.pause()
            except Exception:
                self._is_listed = False  # whatever it was, a new list makes sure of what we have
                raise

    async def _list(self, patience_s: float | None = None) -> None:
        """Make the tables equal to a new list."""
        version, token, last = "", "", ""
        newest: list[msgspec.Raw] = []
        while not version or token:
            page = await self._api.list_page(limit=_PAGE, continue_=token, patience_s=patience_s)
            self._heard()
            version, token = version or page.metadata.resource_version, page.metadata.continue_
            missed = await self._mirror.compare(page.items, after=last, is_last=not token, newest=int(version))
            self._has_missed |= bool(missed)
            newest += missed.newest
            last = missed.upto
            await self._mirror.catch_up(missed)
        # From here on in one go: nobody may watch from this version who has not seen all there was at it.
        self._mirror.show(newest)
        if self._has_missed:
            self._feed.lose_history(int(version))
        self._feed.advance(int(version))
        self._is_listed, self._has_missed = True, False

    async def _follow(self) -> None:
        """Apply what a watch brings until the server ends it."""
        timeout_s = int(_WATCH_S * self._randomness.uniform(0.8, 1.2))
        since = str(self._feed.reached)
        async for events in self._api.watch(since, timeout_s=timeout_s, silence_s=self._silence_s):
            self._heard()
            changes: list[Change] = []
            for event in events:
                if event.type in {"ERROR", "BOOKMARK"}:
                    await self._mirror.follow(changes)
                    changes = []
                    self._mind(event)
                else:
                    changes.append((event.type, event.object))
            await self._mirror.follow(changes)

    def _mind(self, event: Watched) -> None:
        """Take what a watch says about itself."""
        if event.type == "BOOKMARK":
            self._feed.advance(head_of(event.object).version)
            return
        status = msgspec.json.decode(event.object, type=_Status)
        if status.code == 410:  # noqa: PLR2004  the code of a version that is too old
            raise Gone(self._api.kind.name, str(self._feed.reached))
        raise Unavailable(f"The API server ended a watch ({status.message}): it is begun again.")

    def _heard(self) -> None:
        """The server answers."""
        self._backoff.reset()
        self._heard_at = self._clock.monotonic()
