"""What must be true of a store and of its file, whatever happened to the machine."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import apsw

from remuda.kernel.clock import SystemClock
from remuda.store.codec import codecs
from remuda.store.kinds import Kind, Registry
from remuda.store.objects import Resource
from remuda.store.readside.index import index_entries
from remuda.store.readside.tables import DELETED
from remuda.store.sqlite.maintenance import Integrity
from remuda.store.sqlite.store import SqliteStore
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.store import SEALER
from tests.kit.store.write_load import STREAM, Herd, Trait, Writer, herd_after


async def check_story(store: SqliteStore, writer: Writer) -> int:
    """All that a writer was told is there, and nothing is there in part; return how far its story came."""
    reached = await steps_logged(store, writer.name)
    assert writer.told <= reached <= writer.asked, f"{writer.name}: told {writer.told}, found {reached}"
    assert await herd_of(store, writer.name) == herd_after(writer.name, reached), f"{writer.name} at {reached}"
    return reached


async def check_stories(store: SqliteStore, writers: Iterable[Writer]) -> list[Writer]:
    """Check every story and return writers that go on from where each was found."""
    return [Writer(writer.name, told=await check_story(store, writer)) for writer in writers]


async def steps_logged(store: SqliteStore, writer: str) -> int:
    """Return the number of a writer's log records, which must be numbered from 1 without a gap."""
    numbers: list[int] = []
    after: int | None = 0
    while after is not None:
        page = await store.read(STREAM, writer, after=after)
        numbers += [int(bytes(entry.data)) for entry in page.entries]
        after = page.next
    assert numbers == list(range(1, len(numbers) + 1)), f"{writer} logged {numbers}"
    return len(numbers)


async def herd_of(store: SqliteStore, writer: str) -> Herd:
    """Return what the label index finds of a writer."""
    found: list[Resource] = []
    for kind in store.registry.kinds:
        found += (await store.list(kind.type, labels={"writer": writer})).items
    return {each.name: _trait(each) for each in found}


def _trait(resource: Any) -> Trait:
    place = resource.status.place if hasattr(resource, "status") else ""
    return Trait(resource.metadata.labels["step"], place, resource.is_deleting)


async def integrity_found(store: SqliteStore) -> Integrity:
    """Return what the check in the background finds, when it is through."""
    while store.integrity in {"unchecked", "checking"}:
        await SystemClock().sleep(0.005)
    return store.integrity


def spoil(path: Path, name: str, old: bytes, new: bytes) -> None:
    """Alter a stored document."""
    with closing(apsw.Connection(str(path))) as connection:
        ((document,),) = connection.execute("SELECT document FROM revisions WHERE name = ?", (name,)).fetchall()
        assert isinstance(document, bytes)
        assert old in document
        connection.execute("UPDATE revisions SET document = ? WHERE name = ?", (document.replace(old, new), name))


@contextmanager
def looking_into(path: Path) -> Iterator["Content"]:
    """Read a file beside the store, as it is on disk."""
    with closing(apsw.Connection(str(path))) as connection:
        yield Content(connection, REGISTRY)


def audit(path: Path) -> None:
    """Check every table of a file against every other."""
    with looking_into(path) as content:
        content.check()


@dataclass(frozen=True)
class Content:
    """All that a file holds, decoded."""

    connection: apsw.Connection
    registry: Registry

    def check(self) -> None:
        assert self.rows("PRAGMA integrity_check") == [("ok",)]
        self._check_revisions()
        self._check_entries()
        for (kind, _), resource in self.objects.items():
            self._check_lifecycle(kind, resource)

    def rows(self, sql: str, *bindings: object) -> list[Any]:
        return self.connection.execute(sql, bindings).fetchall()

    @cached_property
    def kinds(self) -> Mapping[int, Kind[Any]]:
        return {number: self.registry.named(name) for number, name in self.rows("SELECT id, name FROM kinds")}

    @cached_property
    def objects(self) -> Mapping[tuple[str, str], Any]:
        """Every object by kind and name, which must have a revision of its own."""
        codec = codecs(self.registry, SEALER)
        objects = {}
        for number, name, version, document in self.rows(
            "SELECT o.kind, o.name, o.version, r.document FROM objects o LEFT JOIN revisions r"
            " ON r.version = o.version AND r.kind = o.kind AND r.name = o.name AND r.change <> ?",
            DELETED,
        ):
            assert document is not None, f"{name} has no revision {version}"
            kind = self.kinds[number]
            resource = codec[kind.type].decode(document, name)
            assert (resource.name, resource.version) == (name, str(version))
            objects[kind.qualified, name] = resource
        return objects

    def _check_revisions(self) -> None:
        ((version, floor),) = self.rows("SELECT version, floor FROM horizon")
        ((newest,),) = self.rows("SELECT coalesce(max(version), 0) FROM revisions")
        assert floor <= version
        assert newest <= version
        superseded = self.rows(
            "SELECT r.version FROM revisions r WHERE r.version <= ? AND NOT EXISTS"
            " (SELECT 1 FROM objects o WHERE o.kind = r.kind AND o.name = r.name AND o.version = r.version)",
            floor,
        )
        assert not superseded, f"below the floor {floor} are superseded revisions {superseded}"

    def _check_entries(self) -> None:
        """Every entry belongs to an object, and every object has all its entries."""
        found = self.rows(
            "SELECT i.kind, i.name, e.value, e.name FROM entries e LEFT JOIN indexes i ON i.id = e.index_id"
        )
        numbers = {kind.qualified: number for number, kind in self.kinds.items()}
        wanted = [
            (numbers[kind], index, value, name)
            for (kind, name), resource in self.objects.items()
            for index, value in index_entries(self.registry.named(kind), resource)
        ]
        assert sorted(found) == sorted(wanted)

    def _check_lifecycle(self, kind: str, resource: Resource) -> None:
        """No child is left behind, no reference dangles, and what nothing holds is gone."""
        assert not resource.is_deleting or resource.metadata.finalizers, f"{resource.name} should be gone"
        for owner in resource.metadata.owner_references:
            owning = self.registry.owning(owner)
            assert owning is not None
            assert self.objects[owning.qualified, owner.name].uid == owner.uid
        for target in self.registry.named(kind).targets(resource):
            # A marked owner may outlive what it owns and refers to: it goes last.
            assert target in self.objects or resource.is_deleting, f"{resource.name} refers to {target}, which is gone"
