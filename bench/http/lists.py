"""A list of 1,000, beside what encodes the same 1,000 answers and does nothing else.

Warm, every rendered machine is in the store's cache, and the limit is msgspec over the wire structs in one call. Cold,
no cache of ours has anything, and the limit reads the same rows with bare SQL, then decodes, converts and encodes them.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec

from bench.bed import Bed
from bench.http.app import organization_path
from bench.http.inside import Request
from bench.http.service import MEMBER
from bench.http.validating import answering
from bench.http.wire import read_of
from bench.kinds import Machine
from bench.loops import run
from bench.report import Measure, at_least
from bench.rounds import alternate, good_rate
from remuda.store.readside.reader import ReaderSettings

__all__ = ["measures"]

_LISTED = 1_000
_TIMES = 5
_SQL = (
    "SELECT r.document FROM kinds k JOIN objects o ON o.kind = k.id JOIN revisions r ON r.version = o.version"
    " WHERE k.name LIKE 'machines.%' ORDER BY o.name"
)


def measures(bed: Bed) -> Iterator[Measure]:
    """Compare in both states."""
    ours, raw = run(_compare(bed, is_warm=True))
    yield at_least(0.5, f"warm list of {_LISTED:,}, to encoding it", ours, raw, "1/s CPU")
    ours, raw = run(_compare(bed, is_warm=False))
    yield at_least(None, f"cold list of {_LISTED:,}, to reading and encoding it", ours, raw, "1/s CPU")


async def _compare(bed: Bed, *, is_warm: bool) -> list[float]:
    """Return how often in a second of CPU the list can be answered, and how often it can be encoded."""
    path = bed.filled(_LISTED)
    store = bed.open(path, cache_bytes=ReaderSettings.cache_bytes if is_warm else 0)
    raw = _Raw(path)
    async with answering(bed, store) as app:
        request = Request(app, organization_path(), token=MEMBER)

        async def ours(_: int) -> float:
            start = time.process_time()
            for _ in range(_TIMES):
                answered = await request.send()
                assert answered.length == raw.length, "both say the same"
            return _TIMES / (time.process_time() - start)

        encode = raw.encode_again if is_warm else raw.read_and_encode

        async def theirs(_: int) -> float:
            start = time.process_time()
            for _ in range(_TIMES):
                encode()
            return _TIMES / (time.process_time() - start)

        found = await alternate(bed.sizes.rounds, ours, theirs)
    await store.close()
    raw.close()
    return [good_rate(values) for values in found]


class _Raw:
    """Nothing but SQLite and msgspec."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.pragma("cache_size", -32 * 1024)
        self._decode, self._encode = msgspec.json.Decoder(Machine).decode, msgspec.json.Encoder().encode
        self._answers = [read_of(each) for each in self._read()]
        self.length = len(self.encode_again())

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def encode_again(self) -> bytes:
        """Encode answers that are there already."""
        return self._encode(self._answers)

    def read_and_encode(self) -> bytes:
        """Make the answers from their rows, and encode them."""
        return self._encode([read_of(each) for each in self._read()])

    def _read(self) -> Iterator[Machine]:
        for (document,) in self._connection.execute(_SQL).fetchall():
            assert isinstance(document, bytes), "documents are blobs"
            yield self._decode(document)
