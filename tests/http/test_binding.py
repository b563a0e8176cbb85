import enum
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.http.binding import Binder
from remuda.http.schema import Id, ListQuery, Nothing, Parameters
from remuda.kernel.errors import Malformed
from tests.kit.sample_api.pipeline import HORSE, HORSES, ORGANIZATION, HorsePath, HorseQuery, running

QUERY = Binder(HorseQuery)
AGE = '"age" is not valid: send a whole number, at least 0 and at most 60'
WEIGHT = '"weight" is not valid: send a number such as 4.5'
TAME = '"tame" is not valid: send true or false'
BREED = '"breed" is not valid: send text without control characters'
PATH = Binder(HorsePath, ["organizationID", "horseID"])


class Gait(enum.Enum):
    WALK = "walk"
    TROT = "trot"


class Required(Parameters, frozen=True, rename={"from_": "from"}):
    from_: int
    gait: Gait | None = None
    ages: Annotated[tuple[int, ...], msgspec.Meta(max_length=2)] = ()


@pytest.mark.parametrize(
    ("query", "bound"),
    [
        (b"", HorseQuery()),
        (b"age=7&tame=true&sort=age&weight=4.5", HorseQuery(age=7, tame=True, sort="age", weight=4.5)),
        (b"tame=false&weight=-4", HorseQuery(tame=False, weight=-4.0)),
        (b"breed=a&breed=b", HorseQuery(breed=("a", "b"))),
        (b"breed=a%20b&breed=", HorseQuery(breed=("a b", ""))),
        (b"unknown=1&unknown=2&age=1", HorseQuery(age=1)),
    ],
)
def test_a_query_becomes_its_type(query: bytes, bound: HorseQuery) -> None:
    assert QUERY.bind_query(query) == bound


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (b"age=old", AGE),
        (b"age=", AGE),
        (b"age=7.0", AGE),
        (b"age=null", AGE),
        (b"age=61", AGE),
        (b"age=" + b"9" * 5000, AGE),
        (b"age=%D9%A7", AGE),
        (b"weight=nan", WEIGHT),
        (b"weight=inf", WEIGHT),
        (b"tame=1", TAME),
        (b"tame=True", TAME),
        (b"sort=colour", '"sort" is not valid: send age or name'),
        (b"breed=a%00b", BREED),
        (b"breed=a%0A", BREED),
    ],
)
def test_a_bad_parameter_is_named_with_what_it_has_to_be_and_not_shown(query: bytes, told: str) -> None:
    with pytest.raises(Malformed) as caught:
        QUERY.bind_query(query)
    assert str(caught.value) == f"invalid path/query element: {told}"


def test_a_single_value_must_not_be_repeated() -> None:
    with pytest.raises(Malformed, match='"age" is repeated'):
        QUERY.bind_query(b"age=7&age=8")


@pytest.mark.parametrize("query", [b"breed=%FF", b"a=\xff", b"&".join([b"x=1"] * 101)])
def test_a_query_that_cannot_be_read_is_refused(query: bytes) -> None:
    with pytest.raises(Malformed, match="invalid path/query element"):
        QUERY.bind_query(query)


def test_required_and_renamed_parameters_and_enums_are_bound() -> None:
    binder = Binder(Required)
    assert binder.bind_query(b"from=3&gait=trot&ages=1&ages=2") == Required(from_=3, gait=Gait.TROT, ages=(1, 2))
    for query, told in (
        (b"", '"from" is missing: send a whole number'),
        (b"from=3&gait=fly", '"gait" is not valid: send walk or trot'),
        (b"from=1&ages=1&ages=2&ages=3", '"ages" is not valid: send a whole number, at most 2 times'),
        (b"from=1&ages=old", '"ages" is not valid: send a whole number, at most 2 times'),
    ):
        with pytest.raises(Malformed) as caught:
            binder.bind_query(query)
        assert caught.value.message == f"invalid path/query element: {told}"


def test_a_path_is_bound_by_the_order_of_its_names() -> None:
    assert PATH.bind_path((ORGANIZATION, HORSE)) == HorsePath(organization=ORGANIZATION, horse=HORSE)
    for values, told in (
        (("x", HORSE), '"organizationID" is not valid: send text of the format "uuid"'),
        ((ORGANIZATION, ""), '"horseID" is missing: send text of the format "uuid"'),
    ):
        with pytest.raises(Malformed) as caught:
            PATH.bind_path(values)
        assert caught.value.message == f"invalid path/query element: {told}"
    with pytest.raises(Malformed, match='"horseID"'):
        PATH.bind_path((ORGANIZATION, f"{HORSE}\n"))


def test_an_id_in_capitals_is_the_same_one_and_other_text_is_left_as_it_is() -> None:
    class Query(Parameters, frozen=True):
        id: Id | None = None
        several: tuple[Id, ...] = ()
        text: str = ""

    capitals = HORSE.upper()
    assert PATH.bind_path((ORGANIZATION.upper(), capitals)) == HorsePath(organization=ORGANIZATION, horse=HORSE)
    bound = Binder(Query).bind_query(f"id={capitals}&several={capitals}&several={HORSE}&text={capitals}".encode())
    assert bound == Query(id=HORSE, several=(HORSE, HORSE), text=capitals)


def test_nothing_is_bound_from_nothing() -> None:
    assert Binder(Nothing).bind_path(()) == Nothing()
    assert Binder(Nothing).bind_query(b"x=1") == Nothing()
    assert Binder(ListQuery).bind_query(b"continue=x&limit=5") == ListQuery(continue_="x", limit=5)


def test_a_type_that_no_text_can_be_is_a_defect() -> None:
    class Wrong(Parameters, frozen=True):
        value: bytes

    with pytest.raises(TypeError, match="a parameter cannot be"):
        Binder(Wrong)


@given(st.binary(max_size=200))
def test_any_query_is_bound_or_refused(query: bytes) -> None:
    try:
        told = repr(QUERY.bind_query(query))
    except Malformed as error:
        told = str(error)
    assert told.startswith(("HorseQuery(", "invalid path/query element"))


async def test_what_cannot_be_watched_says_so(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        for path in (HORSES, f"{HORSES}/{HORSE}"):
            reply = await api.client.get(path, {"watch": "true"})
            assert reply.status == 400
            assert reply.json["error_description"] == 'invalid path/query element: "watch" is not supported here'


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (b"bread=a", '"bread" is unknown: send "breed"'),
        (b"age=1&zzz=1", '"zzz" is unknown: this request takes age, breed, sort, tame, weight'),
        (b"%0a=1", "a query parameter is unknown: this request takes age, breed, sort, tame, weight"),
        (b"a" * 5000 + b"=1", "a query parameter is unknown: this request takes age, breed, sort, tame, weight"),
    ],
)
def test_an_unknown_parameter_is_rejected_with_the_nearest_known_one(query: bytes, told: str) -> None:
    with pytest.raises(Malformed) as caught:
        QUERY.reject_unknown(query)
    assert caught.value.message == f"invalid path/query element: {told}"
    QUERY.reject_unknown(b"age=1&tame=true")
    with pytest.raises(Malformed, match="takes no query parameters"):
        Binder(Nothing).reject_unknown(b"age=1")


def test_a_moment_needs_to_say_where() -> None:
    class Span(Parameters, frozen=True):
        since: Annotated[datetime, msgspec.Meta(tz=True)] | None = None

    bind = Binder(Span).bind_query
    assert bind(b"since=2026-01-02T03%3A04%3A05Z").since == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    for nonsense in (b"2026-01-02T03:04:05", b"2026-01-02", b"soon"):
        with pytest.raises(Malformed, match='"since"'):
            bind(b"since=" + nonsense)
