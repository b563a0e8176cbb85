"""Opening: a file that is not ours, unreadable, of another format or in use is rejected in one sentence."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from remuda.kernel.errors import (
    Invalid,
    StoreForeign,
    StoreInaccessible,
    StoreLocked,
    StoreTooNew,
    StoreTooOld,
    Unusable,
)
from remuda.kernel.files import DATA_FORMAT
from remuda.store.kinds import Index, Registry
from remuda.store.readside.sql import APPLICATION_ID, MIGRATIONS, newest_format
from remuda.store.sqlite.file import open_file
from tests.kit.sample_kinds import CORRAL, HORSE, PASTURE, REGISTRY, Horse, HorseSpec, horse
from tests.kit.store.checks import audit
from tests.kit.store.real import opened

SECOND = "CREATE TABLE saddles (name TEXT PRIMARY KEY) STRICT; INSERT INTO saddles SELECT name FROM objects;"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "remuda.db"


async def open_and_close(path: Path) -> None:
    async with opened(path):
        pass


async def make(path: Path, *names: str) -> None:
    async with opened(path) as store:
        for name in names:
            await store.create(horse(name, labels={"name": name}))


def assert_refused(path: Path, error: type[Unusable]) -> None:
    with pytest.raises(error) as caught:
        asyncio.run(open_and_close(path))
    sentence = str(caught.value)
    assert str(path.parent) in sentence
    assert path.name in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


async def test_a_second_store_on_the_same_file_is_refused_even_in_one_process(path: Path) -> None:
    async with opened(path) as store:
        with pytest.raises(StoreLocked, match="Another process has the store"):
            await open_and_close(path)
        await store.create(horse("unharmed"))
    await open_and_close(path)


def write_prose(path: Path) -> None:
    path.write_text("Dear diary, today I moved to another cloud. " * 500)


def write_a_few_bytes(path: Path) -> None:
    path.write_bytes(b"\x00\x01")


def write_other_database(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")


def write_marked_other_database(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("application_id", 0x0F055112)


@pytest.mark.parametrize("write", [write_prose, write_a_few_bytes, write_other_database, write_marked_other_database])
def test_a_file_of_somebody_else_is_refused_and_left_as_it_is(path: Path, write: Callable[[Path], None]) -> None:
    write(path)
    before = path.read_bytes()
    assert_refused(path, StoreForeign)
    assert path.read_bytes() == before


def test_a_file_of_a_later_release_is_refused_and_left_as_it_is(path: Path) -> None:
    asyncio.run(make(path, "old"))
    open_file(path, migrations=(*MIGRATIONS, SECOND)).close()
    before = content_of(path.parent)
    assert_refused(path, StoreTooNew)
    assert content_of(path.parent) == before


@pytest.mark.parametrize("is_killed", [False, True], ids=["closed", "killed"])
def test_a_file_of_an_unreleased_format_is_refused_and_left_as_it_is(path: Path, *, is_killed: bool) -> None:
    """A killed process may leave the format in the write-ahead log alone."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.wal_autocheckpoint(0)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(is_killed))
    connection.execute("CREATE TABLE kinds (id)")
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", DATA_FORMAT - 1)
    connection.close()
    path.with_name("remuda.db.lock").touch()
    before = content_of(path.parent)
    assert_refused(path, StoreTooOld)
    assert content_of(path.parent) == before


def content_of(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Return the content and the time of every file; the index of a write-ahead log is derived from the log."""
    files = [each for each in directory.iterdir() if not each.name.endswith("-shm")]
    return {each.name: (each.stat().st_mtime_ns, each.read_bytes()) for each in files}


def test_a_path_that_is_a_directory_is_refused(path: Path) -> None:
    path.mkdir()
    assert_refused(path, StoreInaccessible)


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert_refused(tmp_path / "file" / "remuda.db", StoreInaccessible)


def test_a_store_is_made_with_the_directories_above_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "newer" / "remuda.db"
    asyncio.run(make(path, "first"))
    audit(path)


def test_an_older_file_is_migrated_and_keeps_its_content(path: Path) -> None:
    asyncio.run(make(path, "dun", "bay"))
    file = open_file(path, migrations=(*MIGRATIONS, SECOND))
    assert file.reader.execute("SELECT name FROM saddles ORDER BY name").fetchall() == [("bay",), ("dun",)]
    assert file.reader.pragma("user_version") == newest_format() + 1
    file.close()
    audit(path)


def test_a_migration_that_fails_leaves_the_older_file_untouched(path: Path) -> None:
    asyncio.run(make(path, "dun"))
    with pytest.raises(Unusable):
        open_file(path, migrations=(*MIGRATIONS, SECOND, "CREATE TABLE more (x); DROP TABLE absent;"))
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.pragma("user_version") == newest_format()
        assert connection.pragma("application_id") == APPLICATION_ID
        assert not connection.execute("SELECT 1 FROM sqlite_schema WHERE name IN ('saddles', 'more')").fetchall()
    asyncio.run(open_and_close(path))
    audit(path)


def test_a_first_migration_that_fails_leaves_a_file_that_can_be_opened(path: Path) -> None:
    with pytest.raises(Unusable):
        open_file(path, migrations=("CREATE TABLE half (x); DROP TABLE absent;",))
    asyncio.run(make(path, "dun"))
    audit(path)


async def test_an_index_that_means_something_else_now_is_built_again(path: Path) -> None:
    by_length = Index[Horse](name="colour", values=lambda horse: [f"{len(horse.spec.colour)}"], revision=2)
    changed = Registry([PASTURE, CORRAL, replace(HORSE, indexes=(by_length,))])

    async def names(registry: Registry, value: str) -> list[str]:
        async with opened(path, registry) as store:
            return [each.name for each in (await store.list(Horse, index=("colour", value))).items]

    async with opened(path) as store:
        await store.create(horse("a", spec=HorseSpec(colour="dun")))
        await store.create(horse("b", spec=HorseSpec(colour="black")))
    assert await names(REGISTRY, "dun") == ["a"]
    assert await names(changed, "3") == ["a"]
    assert await names(changed, "dun") == []
    assert await names(REGISTRY, "black") == ["b"]
    audit(path)


async def test_a_label_that_nobody_lists_by_has_no_entries_and_gets_them_when_somebody_does(path: Path) -> None:
    unindexed = Registry([PASTURE, CORRAL, replace(HORSE, unindexed=frozenset({"brand"}))])
    bella = horse("bella", labels={"brand": "circle-k", "farm": "north"})

    def entries() -> list[Any]:
        with closing(apsw.Connection(str(path))) as connection:
            sql = "SELECT indexes.name FROM entries JOIN indexes ON indexes.id = index_id WHERE entries.name = 'bella'"
            return connection.execute(sql).fetchall()

    async with opened(path, unindexed) as store:
        made = await store.create(bella)
        assert made.metadata.labels["brand"] == "circle-k"
        assert [each.name for each in (await store.list(Horse, labels={"farm": "north"})).items] == ["bella"]
        with pytest.raises(Invalid, match="the label brand has no index in Horse: declare it as indexed"):
            await store.list(Horse, labels={"brand": "circle-k", "farm": "north"})
        with pytest.raises(Invalid, match="the label brand"):
            await anext(store.watch(Horse, since=made.version, labels={"brand": "circle-k"}))
    assert ("label:brand",) not in entries()
    async with opened(path) as store:
        assert [each.name for each in (await store.list(Horse, labels={"brand": "circle-k"})).items] == ["bella"]
    assert ("label:brand",) in entries()
    async with opened(path, unindexed):
        assert ("label:brand",) not in entries()


def test_nobody_else_may_read_the_files(path: Path) -> None:
    async def modes() -> set[int]:
        async with opened(path) as store:
            await store.create(horse("private"))
            return {file.stat().st_mode & 0o777 for file in path.parent.iterdir()}

    assert asyncio.run(modes()) == {0o600}
