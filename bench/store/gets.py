"""Cold gets, beside a bare point get that joins the same tables and decodes the same document."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec

from bench.bed import Bed
from bench.kinds import Machine, name_of
from bench.report import Measure, at_least
from bench.rounds import alternate, good_rate

__all__ = ["measures"]

_GETS = 1_000
_SQL = (
    "SELECT o.version, r.document FROM objects o JOIN revisions r ON r.version = o.version"
    " WHERE o.kind = ? AND o.name = ?"
)


def measures(bed: Bed) -> Iterator[Measure]:
    """Measure gets that no cache of ours can answer, in a small file and in a large one."""
    for objects in (bed.sizes.few, bed.sizes.many):
        ours, bare = asyncio.run(_compare(bed, objects))
        yield at_least(0.5, f"cold gets among {objects:,}", ours, bare, "1/s")


async def _compare(bed: Bed, objects: int) -> list[float]:
    path = bed.filled(objects)
    store = bed.open(path, cache_bytes=0)
    bare = _Bare(path)

    async def ours(turn: int) -> float:
        names = _names(2 * turn, objects)
        start = time.perf_counter()
        for name in names:
            await store.get(Machine, name)
        return _GETS / (time.perf_counter() - start)

    async def theirs(turn: int) -> float:
        names = _names(2 * turn + 1, objects)
        start = time.perf_counter()
        for name in names:
            bare.get(name)
        return _GETS / (time.perf_counter() - start)

    found = await alternate(bed.sizes.rounds, ours, theirs)
    bare.connection.close()
    await store.close()
    return [good_rate(values) for values in found]


class _Bare:
    """Nothing but SQLite and a decoder."""

    def __init__(self, path: Path) -> None:
        self.connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self.connection.pragma("cache_size", -32 * 1024)
        self.connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # as we do: one plan for all bindings
        ((self._kind,),) = self.connection.execute("SELECT id FROM kinds WHERE name LIKE 'machines.%'").fetchall()
        self._execute = self.connection.cursor().execute
        self._decode = msgspec.json.Decoder(Machine).decode

    def get(self, name: str) -> Machine:
        """Return one machine."""
        ((_, document),) = self._execute(_SQL, (self._kind, name)).fetchall()
        assert isinstance(document, bytes), "documents are blobs"
        return self._decode(document)


def _names(turn: int, objects: int) -> list[str]:
    """Return names all over the file, others each turn."""
    return [name_of((turn * _GETS + each) * 7_919 % objects) for each in range(_GETS)]
