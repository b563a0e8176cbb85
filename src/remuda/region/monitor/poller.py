"""Polling servers: what has changed at a provider is looked at, and what is missing is told to its controller.

Of each server only its name and version are read, and compared with those of the last poll. One that has another
version is looked at now. One that is missing is for its controller, which looks twice before it believes that.

After a start nothing is known of the last poll but its digests. Where they agree nothing has happened meanwhile. All
others are as good as new, and looked at slowly, as their turn comes. And whichever of our own servers the provider does
not have is for the controller.

Digests of what a provider was seen to have: names and versions of servers, in parts of a few servers each.

Two listings have the same digests if every server has the same version in both. One that has changed, come or gone
makes its part another, and the rest of that part suspect: with 100,000 servers that is a dozen. Only what was looked at
is remembered: a part in which a server still waits for its turn has the digest 0, which agrees with nothing.

A line in which very many names wait for very long.

The garbage collector looks at everything in a deque each time it looks at all there is, which holds the loop: 100,000
names are some milliseconds. It does not look into text. So all but the last names, and those whose turn is next, are
packed together.

Where the digests of a region's servers are kept between one start and the next.
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
from remuda.region.kinds.orphans import SightingDigest, SightingDigestSpec
from remuda.region.servers.status import ServerObserver
from remuda.resources.crud import find, seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata

_PARTS = 8_192
_WRAP = 1 << 32
_NOTHING = bytes(4 * _PARTS)


class Digests:
    """The digests of one provider's servers, kept up to date as those change."""

    def __init__(self, stored: bytes = b"") -> None:
        """Begin with what was remembered; without that, or with anything else, nothing was."""
        self._sums = array("I", stored if len(stored) == len(_NOTHING) else _NOTHING)
        self._pending: Counter[int] = Counter()

    def add(self, name: str, version: str) -> None:
        """Count a server in."""
        self._move(name, _number(name, version))

    def drop(self, name: str, version: str) -> None:
        """Count a server out that was counted in."""
        self._move(name, -_number(name, version))

    def mark_pending(self, name: str) -> None:
        """A server is to be looked at."""
        self._pending[_part(name)] += 1

    def clear_pending(self, name: str) -> None:
        """A server that was to be looked at has been."""
        part = _part(name)
        self._pending[part] -= 1
        if not self._pending[part]:
            del self._pending[part]

    def agrees(self, other: "Digests", name: str) -> bool:
        """Tell whether all servers of the part that this one is in are the same to both."""
        part = _part(name)
        return self._sums[part] == other.of_part(part) != 0

    def of_part(self, part: int) -> int:
        return self._sums[part]

    def to_bytes(self) -> bytes:
        """Return what is worth remembering, which may be nothing."""
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
_BETWEEN = "\n"


class NameQueue:
    """Names, first come, first served."""

    def __init__(self) -> None:
        self._next: deque[str] = deque()
        self._packs: deque[str] = deque()
        self._last: list[str] = []

    def __len__(self) -> int:
        return len(self._next) + _PACK * len(self._packs) + len(self._last)

    def put(self, name: str) -> None:
        self._last.append(name)
        if len(self._last) == _PACK:
            self._packs.append(_BETWEEN.join(self._last))
            self._last.clear()

    def take(self) -> str:
        """Return the name that has waited longest; there is one."""
        if not self._next:
            self._next.extend(self._pack())
        return self._next.popleft()

    def _pack(self) -> list[str]:
        if self._packs:
            return self._packs.popleft().split(_BETWEEN)
        last, self._last = self._last, []
        return last


@dataclass(slots=True)
class DigestStore:
    """What is remembered of one region. It is written only when it is another."""

    store: Store
    region: str
    _last: str = ""

    async def load(self) -> Digests:
        """Return what was remembered last."""
        found = await find(self.store, SightingDigest, self.region)
        self._last = "" if found is None else found.spec.digests
        return Digests(b64decode(self._last))

    async def save(self, digests: Digests) -> None:
        """Remember this."""
        said = b64encode(digests.to_bytes()).decode()
        if said != self._last:
            spec = SightingDigestSpec(digests=said)
            wanted = SightingDigest(metadata=Metadata(name=self.region), spec=spec)
            await seed(self.store, wanted, lambda found: msgspec.structs.replace(found, spec=spec))
            self._last = said


_STRIDE = 100
_NEW = 10
"""So many new servers are looked at in a row: the pause after them is how long one that has changed may wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollerPorts:
    """What a poll touches."""

    observer: ServerObserver
    enqueue: Callable[[str], None]
    """Tells the controller of servers whom to look after."""
    digests: DigestStore
    server_names: Callable[[], AsyncIterator[str]]
    """Returns the names of all our servers of the region."""
    clock: Clock


class Poller:
    """The servers of one region."""

    def __init__(self, ports: PollerPorts, *, initial_polls_per_s: float) -> None:
        self._ports = ports
        self._pace = Pace(ports.clock, initial_polls_per_s, stride=_NEW)
        self._known: dict[str, str] = {}
        self._digests = Digests()
        self._is_first = True
        self._failed: set[str] = set()
        """Whom we could not look at: they still wait."""
        self._changed, self._new = NameQueue(), NameQueue()
        self._news = asyncio.Event()

    @property
    def pending(self) -> int:
        """How many servers wait to be looked at."""
        return len(self._changed) + len(self._new)

    async def poll(self, servers: CloudServers) -> None:
        """Compare all servers with what they were at the last poll."""
        await (self._meet(servers) if self._is_first else self._compare(servers))
        await self._ports.digests.save(self._digests)

    async def run(self) -> None:
        """Look at those that have changed, and in between at those that are new: a duty."""
        while True:
            await self._news.wait()
            if self._changed:
                await self._look(self._changed.take())
            elif self._new:
                await self._look(self._new.take())
                await self._pace.step()
            else:
                self._news.clear()

    async def _meet(self, servers: CloudServers) -> None:
        """See all servers for the first time."""
        known, digests = dict[str, str](), Digests()
        async for part in servers.sightings():
            for name, version in _told(part):
                if name not in known:  # a listing may have something twice
                    known[name] = version
                    digests.add(name, version)
        remembered = await self._ports.digests.load()
        missing = await self._missing(known)
        self._known, self._digests, self._is_first = known, digests, False
        async for name in _in_strides(list(known)):
            if not digests.agrees(remembered, name):
                self._put_in_line(name, self._new)
        await self._tell(missing)

    async def _missing(self, known: Iterable[str]) -> list[str]:
        """Return which of our servers are not there.

        Names go one by one, and out of a dictionary, at which the garbage collector does not look: 100,000 at once, or
        in a set, would hold the loop.
        """
        ids = {id_in(name): name async for name in _in_strides(list(known))}
        return [name async for name in self._ports.server_names() if ids.pop(name, None) is None]

    async def _compare(self, servers: CloudServers) -> None:
        """See what has changed since the last time."""
        before, self._known = self._known, {}
        try:
            async for part in servers.sightings():
                self._compare_part(part, before)
        except RemudaError:
            self._known = _joined(before, self._known)  # what was not seen is not known to be missing
            raise
        await self._tell(self._miss(before))

    def _compare_part(self, part: Sequence[CloudServerVersion], before: dict[str, str]) -> None:
        known, failed = self._known, self._failed
        for name, version in _told(part):
            last = before.pop(name, None) or known.get(name)  # a listing may have something twice
            known[name] = version
            if last != version:
                if last is not None:
                    self._digests.drop(name, last)
                self._digests.add(name, version)
                self._put_in_line(name, self._new if last is None else self._changed)
            elif name in failed:
                self._put_in_line(name, self._new)

    def _put_in_line(self, name: str, line: NameQueue) -> None:
        if name in self._failed:
            self._failed.remove(name)
        else:
            self._digests.mark_pending(name)
        line.put(name)
        self._news.set()

    async def _look(self, name: str) -> None:
        try:
            await self._ports.observer.observe(id_in(name))
        except RemudaError as error:
            self._failed.add(name)  # it comes again at the next poll
            structlog.get_logger().warning("server not looked at", server=name, error=error.code)
        else:
            self._digests.clear_pending(name)

    def _miss(self, gone: Mapping[str, str]) -> Iterator[str]:
        """Forget servers that are not there any more, one by one; yield our ids of them."""
        for name, version in gone.items():
            self._digests.drop(name, version)
            if name in self._failed:
                self._failed.remove(name)
                self._digests.clear_pending(name)
            yield id_in(name)

    async def _tell(self, ids: Iterable[str]) -> None:
        async for each in _in_strides(ids):
            self._ports.enqueue(each)


async def _in_strides(names: Iterable[str]) -> AsyncIterator[str]:
    """Yield names, and let others run after each few."""
    for count, name in enumerate(names, 1):
        yield name
        if count % _STRIDE == 0:
            await yield_to_loop()


def _told(part: Sequence[CloudServerVersion]) -> Iterator[tuple[str, str]]:
    return ((each.handle.name, each.version) for each in part)


def _joined(one: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    """Return both together, which have nothing in common; the larger one is not copied."""
    few, many = sorted((one, other), key=len)
    many.update(few)
    return many
