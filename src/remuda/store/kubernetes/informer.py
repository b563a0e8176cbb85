"""An informer: keeps the tables of one kind equal to what the API server has.

It lists once, in pages, then follows a watch. A watch that was cut is resumed; one that is too old is replaced by a new
list, which is compared with the tables. What changed while nobody watched has no order we could tell watchers, so if
anything did, they are told Gone and list again, which costs the API server nothing.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import structlog

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Gone, Unavailable, Unreadable
from remuda.kernel.randomness import Randomness
from remuda.store.codec import Codec
from remuda.store.kinds import Kind
from remuda.store.kubernetes.resources import ResourceApi, Watched
from remuda.store.objects import Resource
from remuda.store.readside.feed import Feed, Landed
from remuda.store.readside.ingest import Ingest
from remuda.store.readside.reader import Reader

__all__ = ["Informer", "stripped"]

_PAGE = 500
_WATCH_S = 240
_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class _Status(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""


class _Versioned(msgspec.Struct, frozen=True):
    metadata: "_VersionedMetadata"


class _VersionedMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    name: str = ""


class Informer:
    """Follows one kind for as long as it runs."""

    def __init__(
        self,
        api: ResourceApi[Any],
        *,
        codec: Codec[Any],
        reader: Reader,
        ingest: Ingest,
        clock: Clock,
        randomness: Randomness,
        on_change: Callable[[Kind[Any], Sequence[Landed[Any]]], None],
    ) -> None:
        self.synced = asyncio.Event()
        self._api = api
        self._kind: Kind[Any] = api.kind
        self._number = reader.names.kind(api.kind)
        self._codec = codec
        self._reader = reader
        self._feed: Feed = reader.feed(api.kind)
        self._ingest = ingest
        self._clock = clock
        self._randomness = randomness
        self._on_change = on_change
        self._pause_s = _PAUSE_S
        self._log = structlog.get_logger().bind(kind=api.kind.qualified)

    async def run(self) -> None:
        """List and watch, for ever; a server that does not answer is asked again, less and less often."""
        version = ""
        while True:
            try:
                if not version:
                    version = await self._list()
                    self.synced.set()
                version = await self._follow(version)
            except Gone:
                version = ""
            except Unavailable as error:
                self._log.warning("informer lost the server", cause=error.sentence)
                version = str(self._feed.reached) if self.synced.is_set() else ""
                await self._clock.sleep(self._pause_s * self._randomness.uniform(0.5, 1.0))
                self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    async def _list(self) -> str:
        """Make the tables equal to a new list; return its version."""
        unseen = self._reader.tables.versions(self._number)
        version, token, is_same = "", "", self.synced.is_set()
        while not version or token:
            page = await self._api.list_page(limit=_PAGE, continue_=token)
            version, token = version or page.metadata.resource_version, page.metadata.continue_
            changes = self._differences(page.items, unseen)
            if is_same and (changes or (not token and unseen)):
                is_same = False
                self._feed.lose_history(int(version))
            self._show(self._ingest_all(changes))
        self._forget(unseen)
        if not self.synced.is_set():
            self._feed.lose_history(int(version))
        self._feed.advance(int(version))
        return version

    def _show(self, missed: Sequence[Landed[Any]]) -> None:
        """Show readers what no watch can tell in order any more."""
        self._reader.refresh(self._number, missed)
        self._on_change(self._kind, missed)

    def _differences(self, items: Sequence[msgspec.Raw], unseen: dict[str, int]) -> list[tuple[str, bytes]]:
        """Return what the tables do not have yet, and strike from `unseen` what was seen."""
        differences = []
        for item in items:
            metadata = msgspec.json.decode(item, type=_Versioned).metadata
            if unseen.pop(metadata.name, None) != int(metadata.resource_version):
                differences.append(("MODIFIED", stripped(item)))
        return differences

    def _forget(self, names: Iterable[str]) -> None:
        with self._reader.tables.connection:
            for name in names:
                self._ingest.forget(self._kind, self._reader.get(self._kind, name))
                self._reader.drop(self._number, name)
        self._on_change(self._kind, [])

    async def _follow(self, version: str) -> str:
        """Apply what a watch brings until the server ends it; return the last version it brought."""
        timeout_s = int(_WATCH_S * self._randomness.uniform(0.8, 1.2))
        async for events in self._api.watch(version, timeout_s=timeout_s):
            self._pause_s = _PAUSE_S  # the server answers
            changes: list[tuple[str, bytes]] = []
            for event in events:
                if event.type == "ERROR":
                    self._tell(changes)
                    self._raise(event)
                elif event.type == "BOOKMARK":
                    version = msgspec.json.decode(event.object, type=_Versioned).metadata.resource_version
                else:
                    changes.append((event.type, stripped(event.object)))
            version = self._tell(changes) or version
            self._feed.advance(int(version))
        return version

    def _tell(self, changes: Sequence[tuple[str, bytes]]) -> str:
        """Put changes into the tables and show them to everybody; return the version of the last."""
        if not changes:
            return ""
        applied = self._ingest_all(changes)
        self._reader.land({self._number: applied})
        self._on_change(self._kind, applied)
        return msgspec.json.decode(changes[-1][1], type=_Versioned).metadata.resource_version

    def _raise(self, event: Watched) -> None:
        status = msgspec.json.decode(event.object, type=_Status)
        if status.code == 410:  # noqa: PLR2004  the code of a version that is too old
            raise Gone(self._kind.name, str(self._feed.reached))
        raise Unavailable(status.message)

    def _ingest_all(self, changes: Sequence[tuple[str, bytes]]) -> list[Landed[Any]]:
        now = self._clock.now().timestamp()
        seen: dict[str, Resource | None] = {}
        applied: list[Landed[Any]] = []
        with self._reader.tables.connection:
            for change, document in changes:
                name = msgspec.json.decode(document, type=_Versioned).metadata.name
                try:
                    landed = self._ingest_one(change, name, document, seen, now)
                except Unreadable as error:
                    self._log.error("object left out", name=name, cause=error.sentence)
                else:
                    applied += [landed] if landed else []
        return applied

    def _ingest_one(
        self, change: str, name: str, document: bytes, seen: dict[str, Resource | None], now: float
    ) -> Landed[Any] | None:
        resource = self._codec.decode(document, name)
        previous = seen[name] if name in seen else self._reader.find(self._kind, name)
        floor = self._feed.floor
        if change == "DELETED":
            seen[name] = None
            if previous is None:
                return None
            return self._ingest.drop(self._kind, resource, previous, document=document, time=now, floor=floor)
        seen[name] = resource
        if previous is not None and previous.version == resource.version:
            return None
        relabelled = previous is not None and previous.metadata.labels != resource.metadata.labels
        before = self._codec.encode(previous) if relabelled else None
        return self._ingest.put(self._kind, resource, previous, document=document, before=before, time=now, floor=floor)


def stripped(document: msgspec.Raw | bytes) -> bytes:
    """Return a document without the API server's notes about who wrote which field."""
    decoded = msgspec.json.decode(document)
    decoded["metadata"].pop("managedFields", None)
    return msgspec.json.encode(decoded)
