"""What was computed for the last writes is found for the same object only, and its size is bounded."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from remuda.store.codec import Codec
from remuda.store.sqlite.store import open_store
from remuda.store.sqlite.written_objects import RecentWrites, WrittenObject
from tests.kit.sample_kinds import REGISTRY, Horse, HorseSpec, horse
from tests.kit.simulation.store import SEALER
from tests.kit.store.checks import audit


def written(name: str, document: bytes = b"{}") -> WrittenObject:
    return WrittenObject(horse(name), document, frozenset({("owner", name)}))


def test_what_was_written_is_found_for_that_object_and_not_for_an_equal_one() -> None:
    recent, bella = RecentWrites(), written("bella")
    recent.add(bella)
    assert recent.find(bella.resource) is bella
    assert recent.find(horse("bella")) is None


def test_the_documents_take_no_more_than_a_few_mebibytes() -> None:
    recent, large = RecentWrites(), [written(f"horse-{number}", bytes(1 << 20)) for number in range(20)]
    for each in large:
        recent.add(each)
    found = [each for each in large if recent.find(each.resource) is not None]
    assert found == large[-len(found) :]
    assert 1 <= len(found) <= 4


async def test_a_change_of_what_was_just_written_encodes_the_state_before_no_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []
    encode = Codec.encode

    def noted(codec: Codec[Horse], resource: Horse) -> bytes:
        encoded.append(resource.version)
        return encode(codec, resource)

    monkeypatch.setattr(Codec, "encode", noted)
    store = open_store(tmp_path / "remuda.db", REGISTRY, SEALER)
    horses = await asyncio.gather(*[store.create(horse(f"horse-{number}")) for number in range(5)])
    changed = await asyncio.gather(
        *[store.update(replace(each, spec=HorseSpec(colour="grey", corrals=()))) for each in horses]
    )
    relabelled = [
        replace(each, metadata=replace(each.metadata, labels={**each.metadata.labels, "a": "b"})) for each in changed
    ]
    last = await asyncio.gather(*[store.update(each) for each in relabelled])
    assert sorted(encoded) == sorted(each.version for each in (*horses, *changed, *last))
    await store.close()
    audit(tmp_path / "remuda.db")
