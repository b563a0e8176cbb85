"""Ids in capitals: the same as in small letters, wherever they are sent."""

from typing import Annotated, Any

import msgspec
import pytest

from remuda.compute.app import TABLE
from remuda.http.binding import lower_case_ids
from remuda.http.bodies import BodyReader
from remuda.http.schema import Id, Wire

LOW = "e0a1b2c3-0000-4000-8000-00000000000e"
HIGH = LOW.upper()


class Inner(Wire, frozen=True):
    id: Id
    maybe: Annotated[Id, msgspec.Meta(description="One.")] | None = None


class Outer(Wire, frozen=True):
    inner: Inner
    ids: Annotated[tuple[Id, ...], msgspec.Meta(max_length=3)] = ()
    others: tuple[Inner, ...] = ()
    text: str = ""


def _read(body: bytes) -> Outer:
    return BodyReader(Outer).read(body, b"application/json")


def test_every_id_of_a_body_is_in_small_letters_and_text_is_left_as_it_is() -> None:
    sent = Outer(inner=Inner(id=HIGH, maybe=HIGH), ids=(HIGH, LOW), others=(Inner(id=HIGH),), text=HIGH)
    assert _read(msgspec.json.encode(sent)) == Outer(
        inner=Inner(id=LOW, maybe=LOW), ids=(LOW, LOW), others=(Inner(id=LOW),), text=HIGH
    )


def test_a_capital_that_is_written_as_an_escape_is_one_too() -> None:
    escaped = HIGH.replace("E", "\\u0045")
    assert _read(b'{"inner": {"id": "%s"}}' % escaped.encode()) == Outer(inner=Inner(id=LOW))


def test_what_is_in_small_letters_is_left_as_it_is() -> None:
    change = lower_case_ids(Outer | None)
    assert change is not None
    sent = Outer(inner=Inner(id=LOW), ids=(LOW,), others=(Inner(id=LOW, maybe=LOW),))
    assert change(sent) is sent
    assert change(None) is None
    assert change(Outer(inner=Inner(id=LOW), ids=(LOW, HIGH))) == Outer(inner=Inner(id=LOW), ids=(LOW, LOW))


@pytest.mark.parametrize("kind", [str, int, tuple[str, ...], dict[str, str]])
def test_a_type_without_ids_costs_nothing(kind: Any) -> None:
    assert lower_case_ids(kind) is None


def test_the_ids_in_the_bodies_of_compute_are_known() -> None:
    known = {route.name for route in TABLE.routes if lower_case_ids(route.body_type) is not None}
    assert known == {"create_instance", "update_instance"}
