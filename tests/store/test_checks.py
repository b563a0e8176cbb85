"""Lists with a key, wherever they are in an object: two items of one key are found at every depth."""

from collections.abc import Mapping
from typing import Annotated

import pytest

from remuda.kernel.errors import Invalid
from remuda.store.kinds import Kind, keyed
from remuda.store.objects import Metadata, Resource, StoredStruct
from remuda.store.validation import check_spec


class Nail(StoredStruct, frozen=True):
    name: str


class Shoe(StoredStruct, frozen=True):
    hoof: str
    nails: Annotated[tuple[Nail, ...], keyed("name")] = ()


class Pair(StoredStruct, frozen=True):
    shoes: Annotated[tuple[Shoe, ...], keyed("hoof")] = ()


class StallSpec(StoredStruct, frozen=True):
    shoes: Annotated[tuple[Shoe, ...], keyed("hoof")] = ()
    worn: Pair | None = None
    spare: Mapping[str, Pair] = {}


class Stall(Resource, frozen=True):
    spec: StallSpec = StallSpec()


STALL = Kind(type=Stall, group="test.remuda", version="v1", plural="stalls")

TWO_NAILS = (Nail(name="one"), Nail(name="one"))
BENT = Shoe(hoof="left", nails=TWO_NAILS)
SOUND = Shoe(hoof="left", nails=(Nail(name="one"), Nail(name="two")))


def stall(spec: StallSpec) -> Stall:
    return Stall(metadata=Metadata(name="bella"), spec=spec)


@pytest.mark.parametrize(
    ("field", "spec"),
    {
        "spec.shoes": StallSpec(shoes=(SOUND, SOUND)),
        "spec.shoes.nails": StallSpec(shoes=(BENT,)),
        "spec.worn.shoes": StallSpec(worn=Pair(shoes=(SOUND, SOUND))),
        "spec.worn.shoes.nails": StallSpec(worn=Pair(shoes=(BENT,))),
        "spec.spare.winter.shoes": StallSpec(spare={"summer": Pair(), "winter": Pair(shoes=(SOUND, SOUND))}),
        "spec.spare.winter.shoes.nails": StallSpec(spare={"winter": Pair(shoes=(BENT,))}),
    }.items(),
)
def test_two_items_of_one_key_are_found(field: str, spec: StallSpec) -> None:
    with pytest.raises(Invalid) as rejection:
        check_spec(STALL, stall(spec))
    assert rejection.value.field == field


def test_items_of_different_keys_are_fine() -> None:
    pair = Pair(shoes=(SOUND, Shoe(hoof="right")))
    check_spec(STALL, stall(StallSpec(shoes=pair.shoes, worn=pair, spare={"winter": pair, "summer": pair})))
