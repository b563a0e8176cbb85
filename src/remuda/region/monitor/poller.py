"""Poller of servers: observes those that changed at a provider, and enqueues those that are missing.

A poll reads the name and version of each server and compares them with the last poll. A server with another version is
observed at once. A missing one is enqueued for its controller, which confirms the absence.

After a start only digests of the last poll are known. Servers whose digests agree have not changed; all others are
observed at a limited rate.
"""

import asyncio
from array import array
from base64 import b64decode, b64encode
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from zlib import crc32

import msgspec
import structlog

from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import RemudaError
from remuda.providers.contract.common import id_in
from remuda.providers.contract.servers import CloudServers, CloudServerVersion
from remuda.reconcile.leader import Pace
from remuda.region.kinds.orphans import PollDigest, PollDigestSpec
from remuda.region.servers.status import ServerObserver
from remuda.resources.crud import find, seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata

_PARTS = 8_192
_WRAP = 1 << 32
_EMPTY = bytes(4 * _PARTS)


class Digests:
    """Digests of the servers of a provider by name and version, one for each part of a few servers.

    A server that changed makes its whole part differ: a dozen servers of 100,000. A part with a server that is still to
    be observed is stored as 0, which agrees with nothing.
    """

    def __init__(self, stored: bytes = b"") -> None:
        self._sums = array("I", stored if len(stored) == len(_EMPTY) else _EMPTY)
        self._pending: Counter[int] = Counter()

    def add(self, name: str, version: str) -> None:
        self._move(name, _number(name, version))

    def drop(self, name: str, version: str) -> None:
        self._move(name, -_number(name, version))

    def mark_pending(self, name: str) -> None:
        self._pending[_part(name)] += 1

    def clear_pending(self, name: str) -> None:
        part = _part(name)
        self._pending[part] -= 1
        if not self._pending[part]:
            del self._pending[part]

    def agrees(self, other: "Digests", name: str) -> bool:
        """Return whether all servers in the part of this one have the same versions in both."""
        part = _part(name)
        return self._sums[part] == other.of_part(part) != 0

    def of_part(self, part: int) -> int:
        return self._sums[part]

    def to_bytes(self) -> bytes:
        """Return the digests of parts without pending servers; nothing, if there are none."""
        sums = self._sums[:]
        for part in self._pending:
            sums[part] = 0
        return sums.tobytes() if any(sums) else b""

    def _move(self, name: str, number: int) -> None:
        part = _part(name)
        self._sums[part] = (self._sums[part] + number) % _WRAP


def _part(name: str) -> int:
    return crc32(name.encode()) % _PARTS


def _number(name: str, version: str) -> int:
    return int.from_bytes(blake2b(f"{name} {version}".encode(), digest_size=4).digest(), "big")


_PACK = 500
_SEPARATOR = "\n"


class NameQueue:
    """First-in first-out queue of very many names.

    All names but the first and the last few are joined to strings: the garbage collector would traverse 100,000 names
    in a deque, which blocks the event loop for milliseconds.
    """

    def __init__(self) -> None:
        self._next: deque[str] = deque()
        self._packs: deque[str] = deque()
        self._last: list[str] = []

    def __len__(self) -> int:
        return len(self._next) + _PACK * len(self._packs) + len(self._last)

    def put(self, name: str) -> None:
        self._last.append(name)
        if len(self._last) == _PACK:
            self._packs.append(_SEPARATOR.join(self._last))
            self._last.clear()

    def take(self) -> str:
        """Return the oldest name; the queue is not empty."""
        if not self._next:
            self._next.extend(self._pack())
        return self._next.popleft()

    def _pack(self) -> list[str]:
        if self._packs:
            return self._packs.popleft().split(_SEPARATOR)
        last, self._last = self._last, []
        return last


@dataclass(slots=True)
class DigestStore:
    """Stored digests of one region, written only when they change."""

    store: Store
    region: str
    _last: str = ""

    async def load(self) -> Digests:
        found = await find(self.store, PollDigest, self.region)
        self._last = "" if found is None else found.spec.digests
        return Digests(b64decode(self._last))

    async def save(self, digests: Digests) -> None:
        encoded = b64encode(digests.to_bytes()).decode()
        if encoded != self._last:
            spec = PollDigestSpec(digests=encoded)
            new = PollDigest(metadata=Metadata(name=self.region), spec=spec)
            await seed(self.store, new, lambda found: msgspec.structs.replace(found, spec=spec))
            self._last = encoded


_STRIDE = 100
_NEW = 10
"""New servers that are observed in a row: the pause after them delays one that has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollerPorts:
    """Dependencies of a poller."""

    observer: ServerObserver
    enqueue: Callable[[str], None]
    digests: DigestStore
    server_names: Callable[[], AsyncIterator[str]]
    clock: Clock


class Poller:
    """Poller of the servers of one region."""

    def __init__(self, ports: PollerPorts, *, initial_polls_per_s: float) -> None:
        self._ports = ports
        self._pace = Pace(ports.clock, initial_polls_per_s, stride=_NEW)
        self._known: dict[str, str] = {}
        self._digests = Digests()
        self._is_first = True
        self._failed: set[str] = set()
        """Servers that could not be observed: they are still pending."""
        self._changed, self._new = NameQueue(), NameQueue()
        self._has_pending = asyncio.Event()

    @property
    def pending(self) -> int:
        return len(self._changed) + len(self._new)

    async def poll(self, servers: CloudServers) -> None:
        await (self._poll_first(servers) if self._is_first else self._compare(servers))
        await self._ports.digests.save(self._digests)

    async def run(self) -> None:
        """Observe the servers that changed, and when there are none, those that are new; until cancelled."""
        while True:
            await self._has_pending.wait()
            if self._changed:
                await self._observe(self._changed.take())
            elif self._new:
                await self._observe(self._new.take())
                await self._pace.step()
            else:
                self._has_pending.clear()

    async def _poll_first(self, servers: CloudServers) -> None:
        known, digests = dict[str, str](), Digests()
        async for part in servers.server_versions():
            for name, version in _versions(part):
                if name not in known:  # a listing may have duplicates
                    known[name] = version
                    digests.add(name, version)
        stored = await self._ports.digests.load()
        missing = await self._missing(known)
        self._known, self._digests, self._is_first = known, digests, False
        async for name in _in_strides(list(known)):
            if not digests.agrees(stored, name):
                self._put(name, self._new)
        await self._enqueue(missing)

    async def _missing(self, known: Iterable[str]) -> list[str]:
        """Return the stored servers that the provider does not have.

        Names are handled one by one and in a dictionary, which the garbage collector does not traverse: 100,000 of them
        in a set would block the event loop.
        """
        ids = {id_in(name): name async for name in _in_strides(list(known))}
        return [name async for name in self._ports.server_names() if ids.pop(name, None) is None]

    async def _compare(self, servers: CloudServers) -> None:
        before, self._known = self._known, {}
        try:
            async for part in servers.server_versions():
                self._compare_part(part, before)
        except RemudaError:
            self._known = _merged(before, self._known)  # a server that was not listed is not known to be missing
            raise
        await self._enqueue(self._drop_missing(before))

    def _compare_part(self, part: Sequence[CloudServerVersion], before: dict[str, str]) -> None:
        known, failed = self._known, self._failed
        for name, version in _versions(part):
            last = before.pop(name, None) or known.get(name)  # a listing may have duplicates
            known[name] = version
            if last != version:
                if last is not None:
                    self._digests.drop(name, last)
                self._digests.add(name, version)
                self._put(name, self._new if last is None else self._changed)
            elif name in failed:
                self._put(name, self._new)

    def _put(self, name: str, queue: NameQueue) -> None:
        if name in self._failed:
            self._failed.remove(name)
        else:
            self._digests.mark_pending(name)
        queue.put(name)
        self._has_pending.set()

    async def _observe(self, name: str) -> None:
        try:
            await self._ports.observer.observe(id_in(name))
        except RemudaError as error:
            self._failed.add(name)  # the next poll retries it
            structlog.get_logger().warning("server not observed", server=name, error=error.code)
        else:
            self._digests.clear_pending(name)

    def _drop_missing(self, missing: Mapping[str, str]) -> Iterator[str]:
        """Drop missing servers one by one, and yield their ids."""
        for name, version in missing.items():
            self._digests.drop(name, version)
            if name in self._failed:
                self._failed.remove(name)
                self._digests.clear_pending(name)
            yield id_in(name)

    async def _enqueue(self, ids: Iterable[str]) -> None:
        async for each in _in_strides(ids):
            self._ports.enqueue(each)


async def _in_strides(names: Iterable[str]) -> AsyncIterator[str]:
    """Yield names, and yield to the event loop after every few."""
    for count, name in enumerate(names, 1):
        yield name
        if count % _STRIDE == 0:
            await yield_to_loop()


def _versions(part: Sequence[CloudServerVersion]) -> Iterator[tuple[str, str]]:
    return ((each.handle.name, each.version) for each in part)


def _merged(one: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    """Return the union of two disjoint dictionaries; the larger one is not copied."""
    few, many = sorted((one, other), key=len)
    many.update(few)
    return many
