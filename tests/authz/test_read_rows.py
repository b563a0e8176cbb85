"""What a list reads: of other organizations and projects nothing, whatever the query says; counted by object."""

from collections.abc import Sequence
from typing import Any

import pytest

from remuda.compute.kinds import ComputeInstance
from remuda.http.responses import Collection
from remuda.resources.conventions import NAME, ORGANIZATION, PROJECT
from remuda.store.contract import Store
from remuda.store.kinds import Kind
from remuda.store.objects import Resource
from remuda.store.readside.index_reads import IndexReader
from remuda.store.readside.tables import IndexRead
from tests.kit.proofs.authorization.compute_callers import CALLERS as COMPUTE_CALLERS
from tests.kit.proofs.authorization.compute_operations import ROWS as COMPUTE_ROWS
from tests.kit.proofs.authorization.compute_rule import RULE as COMPUTE_RULE
from tests.kit.proofs.authorization.compute_subject import ComputeSubject
from tests.kit.proofs.authorization.identity_callers import CALLERS as IDENTITY_CALLERS
from tests.kit.proofs.authorization.identity_operations import ROWS as IDENTITY_ROWS
from tests.kit.proofs.authorization.identity_subject import identity
from tests.kit.proofs.authorization.matrix import HOME, PLACES, Caller, Right, Row, Scope, Target
from tests.kit.proofs.authorization.region_callers import CALLERS as REGION_CALLERS
from tests.kit.proofs.authorization.region_operations import ROWS as REGION_ROWS
from tests.kit.proofs.authorization.region_rule import RULE as REGION_RULE
from tests.kit.proofs.authorization.region_subject import RegionSubject

REGION_LISTS = [row for row in REGION_ROWS if row.method == "GET" and row.names == "filter" and row.right]


class Reads:
    """The objects that were found for lists of collections."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._found: set[tuple[type[Resource], str]] = set()
        self._listed: set[type[Resource]] = set()
        find, listed = IndexReader.find, vars(Collection)["listed"].fget

        def recorded(reader: IndexReader, kind: Kind[Any], reads: Sequence[IndexRead], **part: Any) -> Any:
            found = find(reader, kind, reads, **part)
            if kind.type in self._listed:
                self._found |= {(kind.type, name) for name in found[0]}
            return found

        def noted(collection: Collection[Any, Any]) -> Any:
            self._listed.add(collection.kind)
            return listed(collection)

        monkeypatch.setattr(IndexReader, "find", recorded)
        monkeypatch.setattr(Collection, "listed", property(noted))

    async def places(self, store: Store) -> list[Scope]:
        """Return where the objects are that were found since the last time."""
        found, self._found = self._found, set()
        self._listed.clear()
        labels = [(await store.get(kind, name)).metadata.labels for kind, name in found]
        return [Scope(each[ORGANIZATION], each[PROJECT]) for each in labels]


def few(callers: Sequence[Caller], right: Right | None) -> list[Caller]:
    """Return the callers who may not read such objects everywhere."""
    assert right is not None
    return [caller for caller in callers if caller.is_known and right not in caller.everywhere]


@pytest.mark.parametrize("operation", [row.operation for row in REGION_LISTS])
async def test_a_list_of_region_reads_only_what_its_caller_may_read(
    region_subject: RegionSubject, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    row = next(row for row in REGION_LISTS if row.operation == operation)
    for place in PLACES:
        await region_subject.shown(row, place)
    await _check(region_subject, row, REGION_CALLERS, REGION_RULE, region_subject.region.store, Reads(monkeypatch))


async def test_a_list_of_instances_reads_only_what_its_caller_may_read(
    compute_subject: ComputeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = next(row for row in COMPUTE_ROWS if row.operation == "list_instances")
    for place in PLACES:
        await compute_subject.shown(row, place)
    await _check(compute_subject, row, COMPUTE_CALLERS, COMPUTE_RULE, compute_subject.compute.store, Reads(monkeypatch))


async def _check(
    subject: RegionSubject | ComputeSubject,
    row: Row,
    callers: Sequence[Caller],
    rule: Any,
    store: Store,
    reads: Reads,
) -> None:
    """List as every caller of few permissions, with every filter, and look where the objects are that were read."""
    assert row.right is not None
    counted, may_read = set(), set()
    for caller in few(callers, row.right):
        for target in rule.targets(row):
            request = await subject.request(row, target)
            await reads.places(store)
            assert (await subject.transports["api"].ask(caller, request)).status == 200
            found = await reads.places(store)
            elsewhere = [place for place in found if not caller.may(row.right, place)]
            assert not elsewhere, f"{caller.name}, {target.label}"
            counted.add(len(found))
            may_read |= {any(caller.may(row.right, place) for place in PLACES)}
    assert {bool(number) for number in counted} == may_read, "some read something, and others nothing at all"


async def test_a_list_of_projects_reads_only_those_that_its_caller_may_read(monkeypatch: pytest.MonkeyPatch) -> None:
    row, read = next(row for row in IDENTITY_ROWS if row.operation == "list_projects"), 0
    async with identity() as subject:
        for caller in few(IDENTITY_CALLERS, row.right):
            request = await subject.request(row, Target(label="", named=HOME))
            found: list[str] = []
            with monkeypatch.context() as patch:
                patch.setattr(IndexReader, "find", _recording(IndexReader.find, found))
                outcome = await subject.transports["api"].ask(caller, request)
            if outcome.status == 200:
                assert set(found) <= {each["metadata"]["id"] for each in outcome.answer}, caller.name
                read += len(found)
    assert read


def _recording(find: Any, found: list[str]) -> Any:
    def recorded(reader: IndexReader, kind: Kind[Any], reads: Sequence[IndexRead], **part: Any) -> Any:
        names, reached = find(reader, kind, reads, **part)
        found.extend(names if kind.plural == "projects" else ())
        return names, reached

    return recorded


async def test_a_list_by_name_reads_what_has_the_name(
    compute_subject: ComputeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = next(row for row in COMPUTE_ROWS if row.operation == "list_instances")
    here = [await compute_subject.shown(row, place) for place in PLACES]
    store, reads = compute_subject.compute.store, Reads(monkeypatch)
    name = (await store.get(ComputeInstance, here[0])).metadata.labels[NAME]
    administrator = next(caller for caller in COMPUTE_CALLERS if caller.name == "administrator")
    for asked, expected in ((name, [HOME]), ("no such name", []), ("x" * 200, []), ("absent", [])):
        request = await compute_subject.request(row, Target(label="", query=(("name", asked),)))
        await reads.places(store)
        outcome = await compute_subject.transports["api"].ask(administrator, request)
        assert (outcome.status, len(outcome.answer)) == (200, len(expected))
        assert await reads.places(store) == expected
