"""An object that is found by thousands of terms goes some of them at a time, in one commit all the same."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from remuda.store.readside.index import NumberedEntry
from remuda.store.readside.tables import Tables
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.sample_kinds import REGISTRY, Corral, Horse, HorseSpec, corral, horse
from tests.kit.simulation.store import SEALER
from tests.kit.store.checks import audit

CORRALS = tuple(f"corral-{number}" for number in range(1_200))
AT_MOST = 500


async def stabled(store: SqliteStore, name: str, corrals: tuple[str, ...]) -> Horse:
    wanted = horse(name)
    return await store.create(Horse(metadata=wanted.metadata, spec=HorseSpec(corrals=corrals)))


async def test_what_is_found_by_thousands_of_terms_is_removed_in_pieces_and_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[int] = []
    remove = Tables.remove_entries

    def counted(tables: Tables, name: str, terms: Iterable[NumberedEntry]) -> None:
        found = list(terms)
        pieces.append(len(found))
        remove(tables, name, found)

    monkeypatch.setattr(Tables, "remove_entries", counted)
    store = open_store(tmp_path / "remuda.db", REGISTRY, SEALER)
    await asyncio.gather(*[store.create(corral(name)) for name in CORRALS])
    bella = await stabled(store, "bella", CORRALS)
    # Whoever comes next in the same commit finds the name free, and nothing of the first is taken from it.
    _, again = await asyncio.gather(
        store.delete(Horse, bella.name, uid=bella.uid), stabled(store, bella.name, CORRALS[:700])
    )
    assert len(pieces) > 2
    assert max(pieces) <= AT_MOST
    assert [each.name for each in await store.referrers(Corral, CORRALS[699])] == [again.name]
    assert not await store.referrers(Corral, CORRALS[700])
    await store.close()
    audit(tmp_path / "remuda.db")
