import hashlib
import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.encoding import canonical_json, digest
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret

numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Pair(msgspec.Struct):
    zebra: int
    apple: list[int]


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(item) for key, item in reversed(value.items())}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@given(values)
def test_the_order_of_keys_does_not_matter(value: Any) -> None:
    assert canonical_json(value) == canonical_json(reversed_keys(value))
    assert digest(value) == digest(reversed_keys(value))


@given(values)
def test_canonical_json_is_json_for_the_same_value(value: Any) -> None:
    assert json.loads(canonical_json(value)) == value
    assert canonical_json(json.loads(canonical_json(value))) == canonical_json(value)


def test_the_text_is_sorted_unpadded_and_utf_8() -> None:
    assert canonical_json({"b": [1, None], "a": "é"}) == '{"a":"é","b":[1,null]}'.encode()


def test_a_struct_reads_like_the_dictionary_it_stands_for() -> None:
    assert canonical_json(Pair(1, [2])) == canonical_json({"zebra": 1, "apple": [2]}) == b'{"apple":[2],"zebra":1}'


def test_the_digest_is_the_sha256_of_the_text() -> None:
    assert digest({}) == hashlib.sha256(b"{}").hexdigest()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused_wherever_they_hide(number: float) -> None:
    for value in (number, [number], {"a": {"b": (1, number)}}):
        with pytest.raises(Invalid, match="not finite"):
            canonical_json(value)


@pytest.mark.parametrize("value", [{"token": Secret("canary")}, {1: "a key that is no text"}])
def test_secrets_and_keys_that_are_no_text_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)
