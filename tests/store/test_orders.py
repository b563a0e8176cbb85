"""Under which of several labels is looked first: the rarest, and where none is rare nobody counts every time."""

import asyncio
from pathlib import Path

import pytest

from remuda.store.readside.index import NumberedEntry
from remuda.store.readside.tables import Tables
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.sample_kinds import REGISTRY, Horse, horse
from tests.kit.simulation.store import SEALER

MANY, FEW = 1_100, 20


class Counts:
    """How often entries are counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._count, self._calls = Tables.count_under, 0

        def counted(tables: Tables, term: NumberedEntry, *, limit: int) -> int:
            self._calls += 1
            return self._count(tables, term, limit=limit)

        monkeypatch.setattr(Tables, "count_under", counted)

    def taken(self) -> int:
        """Return how often since the last time."""
        calls, self._calls = self._calls, 0
        return calls


async def stabled(path: Path) -> SqliteStore:
    store = open_store(path / "remuda.db", REGISTRY, SEALER)
    marks = [{"mark": "star"} if number < FEW else {} for number in range(MANY)]
    horses = [
        horse(f"horse-{number:04}", labels={"herd": "all", "color": "brown"} | mark)
        for number, mark in enumerate(marks)
    ]
    await asyncio.gather(*map(store.create, horses))
    return store


async def found(store: SqliteStore, **labels: str) -> list[str]:
    return [each.name for each in (await store.list(Horse, labels=labels, limit=30)).items]


async def test_what_took_long_to_count_is_not_counted_for_every_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, counts = await stabled(tmp_path), Counts(monkeypatch)
    first = await found(store, herd="all", color="brown")
    assert counts.taken() > 0
    assert await found(store, herd="all", color="brown") == first
    assert counts.taken() == 0
    for _ in range(200):
        assert await found(store, herd="all", color="brown") == first
    assert counts.taken() > 0, "it holds for a while only"
    await store.close()


async def test_what_is_rare_is_counted_every_time_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, counts = await stabled(tmp_path), Counts(monkeypatch)
    for _ in range(3):
        assert len(await found(store, herd="all", mark="star")) == FEW
        assert counts.taken() > 0
    await store.close()
