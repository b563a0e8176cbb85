"""Size of the tags of one object."""

from functools import partial

import pytest
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.kernel.errors import Invalid
from remuda.kernel.tags import Tag
from remuda.resources.schema import TagWire
from remuda.resources.tags import MAX_BYTES, check_tags, own_tags, replaced_tags

ALICE = Principal(subject="alice@example.com", type="user")
COMPUTE = Principal(subject="unikorn-compute", type="system")
OURS = Tag("compute.unikorn-cloud.org/instance-id", "a")

_FULL = tuple(Tag(f"tag-{number:02}", "v" * (1024 - 6)) for number in range(16))


def test_m27_tags_of_an_object_take_16_kib_at_most() -> None:
    assert own_tags(_FULL, ALICE) == _FULL
    with pytest.raises(
        Invalid, match=r"^metadata\.tags take 16386 bytes: send .* at most 16384 bytes of UTF-8"
    ) as found:
        own_tags((*_FULL, Tag("t", "v")), ALICE)
    assert found.value.field == "metadata.tags"
    with pytest.raises(Invalid):
        replaced_tags(_FULL, (*_FULL, Tag("t", "v")), ALICE)
    with pytest.raises(Invalid):
        check_tags([TagWire(name=tag.name, value=tag.value) for tag in (*_FULL, Tag("t", "v"))])


def test_a_tag_that_occurs_twice_is_rejected_for_new_and_for_existing_objects() -> None:
    twice = (Tag("team", "red"), Tag("team", "blue"))
    for merge in (partial(own_tags, twice, ALICE), partial(replaced_tags, (), twice, ALICE)):
        with pytest.raises(Invalid, match=r"^metadata\.tags has 'team' twice: give each tag one value"):
            merge()


def test_the_bytes_of_names_and_values_count_and_not_their_characters() -> None:
    assert own_tags((Tag("name", "é" * (MAX_BYTES // 2 - 2)),), ALICE)
    with pytest.raises(Invalid):
        own_tags((Tag("name", "é" * (MAX_BYTES // 2 - 1)),), ALICE)


def test_tags_of_services_fit_beside_those_of_a_user() -> None:
    assert own_tags((*_FULL, replace(OURS, value="v" * 1024)), COMPUTE)
