"""Fields that two types have in common are copied, and what a type lacks is noticed when a conversion is declared."""

import msgspec
import pytest

from remuda.kernel.fields import common_fields, conversion


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request."""

    size: int
    label: str | None = None
    place: str = ""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of it."""

    owner: str = ""
    size: int
    label: str = ""


class Sized(msgspec.Struct, frozen=True):
    """A part of both."""

    size: int


def test_the_fields_of_both_types_are_returned_from_either() -> None:
    copied = common_fields(Asked, Kept)
    assert copied(Asked(size=1, label="a", place="b")) == {"size": 1, "label": "a"}
    assert copied(Kept(size=1, label="a", owner="c")) == {"size": 1, "label": "a"}
    assert common_fields(Asked, Kept, without=["label"])(Asked(size=1)) == {"size": 1}
    assert common_fields(Asked, Kept, without=["label", "size"])(Asked(size=1)) == {}


def test_a_conversion_copies_or_converts_every_field() -> None:
    assert conversion(Asked, Sized)(Asked(size=1)) == Sized(1)
    doubled = conversion(Kept, Sized, size=lambda size: 2 * size)
    assert doubled(Kept(size=1)) == Sized(2)


def test_a_declaration_that_names_what_is_not_there_fails() -> None:
    with pytest.raises(AssertionError, match="Asked and Kept have no common owner"):
        common_fields(Asked, Kept, without=["owner"])
    with pytest.raises(AssertionError, match="Sized has no label, place"):
        conversion(Sized, Asked)
    with pytest.raises(AssertionError, match="Kept has no place"):
        conversion(Kept, Sized, place=str)
