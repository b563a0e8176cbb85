from pathlib import Path

import pytest
from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.http.responses import check_if_match, etag_of, etag_view, split_etag
from remuda.kernel.errors import PreconditionFailed
from tests.kit.sample_api.collections import ANNA, fill, read, sample_store, view
from tests.kit.sample_kinds import Horse, HorseSpec, at

TAG = etag_of("u-1", HorseSpec(colour="bay"))


def is_let_through(if_match: str | None) -> bool:
    context = Context(principal=ANNA, operation="o", if_match=if_match)
    try:
        check_if_match(context, TAG, kind="Horse", name="bella")
    except PreconditionFailed:
        return False
    return True


def test_a_tag_is_strong_and_quoted() -> None:
    assert TAG[0] == TAG[-1] == '"'
    assert '"' not in TAG[1:-1]


def test_a_tag_tells_incarnations_and_states_apart() -> None:
    assert etag_of("u-1", HorseSpec(colour="bay")) == TAG
    assert etag_of("u-2", HorseSpec(colour="bay")) != TAG
    assert etag_of("u-1", HorseSpec(colour="grey")) != TAG
    assert etag_of("u-1", HorseSpec(feed={"hay": 1, "oats": 2})) == etag_of(
        "u-1", HorseSpec(feed={"oats": 2, "hay": 1})
    )


async def test_a_tagged_view_carries_its_tag_from_the_cache(tmp_path: Path) -> None:
    rendered: list[str] = []

    def writable(one: Horse) -> HorseSpec:
        rendered.append(one.name)
        return one.spec

    with_tag = etag_view(read, writable)
    async with sample_store(tmp_path) as store:
        await fill(store, ["bella"])
        bella = await store.get(Horse, "bella")
        replies = [split_etag(await store.get_view(Horse, "bella", with_tag)) for _ in range(3)]
        assert replies[0].etag == etag_of(bella.uid, bella.spec)
        assert replies[0].body == view(bella)
        assert replies[0] == replies[2]
        assert rendered == ["bella"], "a warm read hashes nothing"


async def test_an_observation_does_not_change_the_tag_and_a_change_of_intent_does(tmp_path: Path) -> None:
    with_tag = etag_view(read, lambda one: one.spec)
    async with sample_store(tmp_path) as store:
        await fill(store, ["bella"])
        before = split_etag(await store.get_view(Horse, "bella", with_tag)).etag
        seen = await store.update_status(at("stable", await store.get(Horse, "bella")))
        assert split_etag(await store.get_view(Horse, "bella", with_tag)).etag == before
        await store.update(replace(seen, spec=replace(seen.spec, colour="grey")))
        assert split_etag(await store.get_view(Horse, "bella", with_tag)).etag != before


@pytest.mark.parametrize("wanted", [None, "*", " * ", TAG, f'"other", {TAG}', f"{TAG},{TAG}"])
def test_a_write_that_names_the_present_state_or_none_is_let_through(wanted: str | None) -> None:
    assert is_let_through(wanted)


@pytest.mark.parametrize("wanted", ["", '"other"', f"W/{TAG}", TAG.strip('"'), f'"*", W/{TAG}', f"{TAG[:-2]}"])
def test_any_other_state_is_refused_and_a_weak_tag_never_matches(wanted: str) -> None:
    assert not is_let_through(wanted)
