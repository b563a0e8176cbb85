"""What a parameter has to be, in words."""

import enum
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest

from remuda.http.binding import expected
from remuda.http.schema import Id


class Gait(enum.Enum):
    WALK = "walk"
    TROT = "trot"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (bool, "true or false"),
        (int, "a whole number"),
        (Annotated[int, msgspec.Meta(ge=1, le=1000)] | None, "a whole number, at least 1 and at most 1000"),
        (Annotated[float, msgspec.Meta(gt=0, lt=1)], "a number such as 4.5, more than 0 and less than 1"),
        (datetime | None, "a time such as 2026-01-31T12:00:00Z"),
        (Gait, "walk or trot"),
        (Literal["age", "name"], "age or name"),
        (Literal["age"], "age"),
        (str, "text without control characters"),
        (Annotated[str, msgspec.Meta(max_length=9)], "text without control characters, at most 9 characters"),
        (Annotated[str, msgspec.Meta(pattern="^[a-z]+$", max_length=9)], "text that matches ^[a-z]+$"),
        (Id, 'text of the format "uuid"'),
        (tuple[Id, ...], 'text of the format "uuid"'),
        (Annotated[tuple[int, ...], msgspec.Meta(max_length=2)], "a whole number, at most 2 times"),
        (Annotated[list[Gait], msgspec.Meta(min_length=1, description="How.")], "walk or trot, at least 1 times"),
        (frozenset[bool], "true or false"),
    ],
)
def test_each_kind_of_parameter_has_its_words(kind: Any, words: str) -> None:
    assert expected(kind) == words
