import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.http.bodies import BodyReader, Explainer, pointer, wire_schema
from remuda.http.schema import Wire
from remuda.kernel.errors import Malformed
from remuda.kernel.secrets import Secret
from tests.kit.sample_api.pipeline import HORSES, HorseSpec, HorseWrite, Metadata, running

READER = BodyReader(HorseWrite)
JSON = b"application/json"
GOOD = {"metadata": {"name": "bella"}, "spec": {"age": 7}}


def problems_of(body: Any) -> dict[str, str]:
    with pytest.raises(Malformed) as caught:
        READER.read(msgspec.json.encode(body), JSON)
    told = dict(caught.value.problems)
    assert len(told) == len(caught.value.problems), "a place is named once"
    return told


def horse(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "bella"}, "spec": {"age": 7, **spec}}


def test_a_body_becomes_its_type_and_unknown_fields_are_ignored() -> None:
    body = {**GOOD, "metadata": {"name": "bella", "tags": ["a"], "unknown": [1]}, "more": None}
    assert READER.read(msgspec.json.encode(body), JSON) == HorseWrite(
        metadata=Metadata(name="bella", tags=("a",)), spec=HorseSpec(age=7)
    )


def test_a_secret_arrives_as_one() -> None:
    read = READER.read(msgspec.json.encode(horse(password="sesame")), JSON)
    assert read.spec.password == Secret("sesame")
    assert problems_of(horse(password=7)) == {"/spec/password": "must be a string or null"}


def test_all_problems_are_told_at_once() -> None:
    body = {"metadata": {"name": "Bella!", "tags": ["", 7]}, "spec": {"age": 61, "stableId": "x", "hoof": 3}}
    assert problems_of(body) == {
        "/metadata/name": "does not match the required pattern: write it as ^[a-z]+$",
        "/metadata/tags/0": "must have at least 1 characters",
        "/metadata/tags/1": "must be a string",
        "/spec/age": "must be at most 60",
        "/spec/stableId": 'does not match format "uuid"',
        "/spec/hoof": "must be an object",
    }


def test_what_is_missing_is_named_where_it_should_be() -> None:
    assert problems_of({"metadata": {}}) == {"/metadata/name": "is required", "/spec": "is required"}
    assert problems_of([]) == {"": "must be an object"}


def test_of_several_forms_the_nearest_is_explained() -> None:
    assert problems_of(horse(hoof={"kind": "shoe", "size": 0})) == {"/spec/hoof/size": "must be at least 1"}
    assert problems_of(horse(hoof={"kind": "boot"})) == {"/spec/hoof/colour": "is required"}
    assert problems_of(horse(hoof={"kind": "sock", "size": 1})) == {
        "/spec/hoof/kind": 'is not one of the allowed values: use "shoe" or "boot"'
    }


def test_the_sentence_names_every_place() -> None:
    with pytest.raises(Malformed) as caught:
        READER.read(b'{"metadata":{"name":7},"spec":{}}', JSON)
    assert str(caught.value) == (
        'the request body is not valid: "/metadata/name" must be a string, "/spec/age" is required'
    )


@pytest.mark.parametrize("secret", ["swordfish", 987654321, ["swordfish"], {"swordfish": 1}])
def test_what_was_sent_is_never_told(secret: Any) -> None:
    for body in (
        horse(age=secret, password=[secret], hoof=secret),
        {"metadata": {"name": f"{secret}!"}, "spec": secret},
    ):
        with pytest.raises(Malformed) as caught:
            READER.read(msgspec.json.encode(body), JSON)
        assert "swordfish" not in str(caught.value)
        assert "987654321" not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"nonsense",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        json.dumps(GOOD).encode("utf-16"),
        json.dumps(GOOD).encode() + b"x",
        b'{"metadata": {"name": "a", "name": "b"}, "spec": {"age": 7}}',
        b'{"metadata": {"name": "a"}, "spec": {"age": 7, "x": {"y": 1, "y": 1}}}',
        b'{"metadata": {"name": "a"}, "spec": {"age": NaN}}',
        b'{"metadata": {"name": "a"}, "spec": {"age": 7, "x": Infinity}}',
        b'{"metadata": {"name": "a"}, "spec": {"age": 7}, "\\ud800": 9223372036854775808}',
        b'{"metadata": {"name": "a"}, "spec": {"age": 7}, "x": ' + b'{"x": ' * 17 + b"1" + b"0" * 19 + b"}" * 18,
        b'{"metadata": {"name": "\\ud800"}, "spec": {"age": 7}}',
        b'{"metadata": 7, "x": "\\ud800"}',
        b"[" * 60_000,
        b'{"metadata":' * 900 + b"1" + b"}" * 900,
        b'{"metadata": {"name": "a"}, "spec": {"age": 7}, "x": ' + b"[" * 2000 + b"]" * 2000 + b"}",
    ],
)
def test_what_is_no_sound_json_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        READER.read(body, JSON)
    assert str(caught.value) == "the request body is missing or malformed"


@pytest.mark.parametrize(
    ("content_type", "is_read"),
    [
        (b"application/json", True),
        (b"Application/JSON; charset=utf-8", True),
        (b"application/merge-patch+json", True),
        (b"application/jsonp", False),
        (b"text/json", False),
        (b"application/x-www-form-urlencoded", False),
        (b"", False),
        (None, False),
    ],
)
def test_only_json_is_read(content_type: bytes | None, *, is_read: bool) -> None:
    body = msgspec.json.encode(GOOD)
    if is_read:
        assert READER.read(body, content_type).metadata.name == "bella"
        return
    with pytest.raises(Malformed, match="send application/json"):
        READER.read(body, content_type)


@pytest.mark.parametrize("end", [b"\\n", b"\\u000a", b"\\u000A"])
def test_a_newline_at_the_end_slips_past_no_pattern(end: bytes) -> None:
    with pytest.raises(Malformed, match='"/metadata/name" does not match the required pattern'):
        READER.read(b'{"metadata": {"name": "bella' + end + b'"}, "spec": {"age": 7}}', JSON)
    fine = b'{"metadata": {"name": "bella"}, "spec": {"age": 7}, "note": "x' + end + b'"}'
    assert READER.read(fine, JSON).metadata.name == "bella"


def test_what_only_one_validator_rejects_is_named_as_far_as_it_tells() -> None:
    assert problems_of(horse(age=7.0)) == {"/spec/age": "is not valid"}

    class Ages(Wire, frozen=True):
        ages: tuple[int, ...]

    with pytest.raises(Malformed) as caught:
        BodyReader(Ages).read(b'{"ages": [1.0]}', JSON)
    assert caught.value.problems == (("/ages", "is not valid"),)


def test_very_many_problems_are_told_in_part() -> None:
    told = problems_of({"metadata": {"name": "bella", "tags": [7] * 10_000}, "spec": {"age": 7}})
    assert 10 <= len(told) <= 100


class EveryRule(Wire, frozen=True):
    text: Annotated[str, msgspec.Meta(max_length=2)] = ""
    low: Annotated[int, msgspec.Meta(gt=1)] = 2
    high: Annotated[int, msgspec.Meta(lt=5)] = 2
    step: Annotated[int, msgspec.Meta(multiple_of=5)] = 5
    few: Annotated[tuple[int, ...], msgspec.Meta(max_length=1)] = ()
    some: Annotated[tuple[int, ...], msgspec.Meta(min_length=2)] = (1, 2)
    many: Annotated[Mapping[str, int], msgspec.Meta(max_length=1)] = msgspec.field(default_factory=dict)
    choice: Annotated[str | int, msgspec.Meta(description="either")] = 1


def test_every_rule_has_its_reason() -> None:
    explainer = Explainer(msgspec.json.schema(EveryRule))
    wrong = {
        "text": "abc",
        "low": 1,
        "high": 5,
        "step": 7,
        "few": [1, 2],
        "some": [],
        "many": {"a": 1, "b": 2},
        "choice": [],
    }
    assert dict(explainer.problems(wrong)) == {
        "/text": "must have at most 2 characters",
        "/low": "must be more than 1",
        "/high": "must be less than 5",
        "/step": "must be a multiple of 5",
        "/few": "must have at most 1 items",
        "/some": "must have at least 2 items",
        "/many": "must have at most 1 fields",
        "/choice": "must be a string or a whole number",
    }


def test_a_body_of_very_many_faults_is_told_some_of_them() -> None:
    class Herd(Wire, frozen=True):
        names: tuple[str, ...]
        tags: tuple[tuple[str, ...], ...] = ()

    reader = BodyReader(Herd)
    with pytest.raises(Malformed) as caught:
        reader.read(msgspec.json.encode({"names": [1] * 30_000}), JSON)
    assert caught.value.problems[0] == ("/names/0", "must be a string")
    assert len(caught.value.problems) == 50
    late = {"names": ["bella"] * 5000, "tags": [["x"]] * 2000 + [[1]]}
    with pytest.raises(Malformed) as caught:
        reader.read(msgspec.json.encode(late), JSON)
    assert caught.value.problems == (("/tags", "is not valid"),), "it lies too far behind to be named as others are"


@pytest.mark.parametrize(
    ("others", "told"),
    [
        (100, {"/names/100": "must be a string", "/age": "must be a whole number"}),
        (9_000, {"/names": "is not valid"}),
    ],
)
def test_of_a_body_longer_than_any_that_users_write_one_fault_is_told(others: int, told: dict[str, str]) -> None:
    class Herd(Wire, frozen=True):
        names: tuple[str, ...]
        age: int = 0

    body = msgspec.json.encode({"names": ["bella"] * others + [1], "age": "old"})
    with pytest.raises(Malformed) as caught:
        BodyReader(Herd).read(body, JSON)
    assert dict(caught.value.problems) == told


def test_a_long_body_is_validated_as_strictly_as_a_short_one() -> None:
    class Herd(Wire, frozen=True):
        names: tuple[str, ...]

    long = msgspec.json.encode(["bella"] * 20_000)
    assert len(BodyReader(Herd).read(b'{"names": %b}' % long, JSON).names) == 20_000
    for more in (b'"x": 1, "x": 1', b'"x": {"y": 1, "y": 1}', b'"x": NaN', b'"x": 9223372036854775808'):
        with pytest.raises(Malformed, match="the request body is missing or malformed"):
            BodyReader(Herd).read(b'{"names": %b, %b}' % (long, more), JSON)


@pytest.mark.parametrize(
    ("number", "is_read"),
    [
        (b"9223372036854775807", True),
        (b"9223372036854775808", False),
        (b"-9223372036854775808", True),
        (b"-9223372036854775809", False),
        (b"123456789012345678", True),
        (b"1.00000000000000000000001", True),
    ],
)
def test_a_number_fits_64_bits(number: bytes, *, is_read: bool) -> None:
    body = b'{"metadata": {"name": "a"}, "spec": {"age": 7}, "x": %b}' % number
    if is_read:
        assert READER.read(body, JSON)
    else:
        with pytest.raises(Malformed, match='"/x" does not fit 64 bits: use a number from -9223372036854775808 to'):
            READER.read(body, JSON)


@pytest.mark.parametrize("number", [b"9223372036854775808", b"1" + b"0" * 5000, b"-1" + b"0" * 20, b"1e300"])
def test_a_number_beyond_64_bits_is_named_by_its_location_in_a_list(number: bytes) -> None:
    class Limit(Wire, frozen=True):
        quantity: int

    class Limits(Wire, frozen=True):
        limits: tuple[Limit, ...]

    body = b'{"limits": [{"quantity": 1}, {"quantity": %b}, {"quantity": %b}]}' % (number, number)
    with pytest.raises(Malformed) as caught:
        BodyReader(Limits).read(body, JSON)
    assert [location for location, _ in caught.value.problems] == ["/limits/1/quantity", "/limits/2/quantity"]
    assert {reason.partition(":")[0] for _, reason in caught.value.problems} == {"does not fit 64 bits"}


def test_a_newline_far_behind_the_beginning_is_found_all_the_same() -> None:
    class Herd(Wire, frozen=True):
        names: tuple[Annotated[str, msgspec.Meta(pattern="^[a-z]+$")], ...]

    reader = BodyReader(Herd)
    assert len(reader.read(msgspec.json.encode({"names": ["bella"] * 5000}), JSON).names) == 5000
    with pytest.raises(Malformed):
        reader.read(msgspec.json.encode({"names": ["bella"] * 5000 + ["bella\n"]}), JSON)


def test_a_pointer_is_escaped_and_bounded() -> None:
    assert pointer(["a/b", 3, "c~d"]) == "/a~1b/3/c~0d"
    assert len(pointer(["x" * 5000])) < 100


SCHEMA = jsonschema_rs.Draft202012Validator(msgspec.json.schema(HorseWrite, schema_hook=wire_schema))
LEAVES = st.none() | st.booleans() | st.integers(-100, 100) | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "spec", "name", "age", "hoof", "kind", "x"]), inner, max_size=4)
    ),
)


@given(ANYTHING)
def test_any_json_is_read_or_refused_with_a_place(body: Any) -> None:
    text = json.dumps(body).encode()
    rejection: Malformed | None = None
    try:
        READER.read(text, JSON)
    except Malformed as error:
        rejection = error
    if rejection is None:
        assert SCHEMA.is_valid(json.loads(text))
    else:
        assert rejection.problems or str(rejection) == "the request body is missing or malformed"


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        READER.read(body, JSON)


async def test_the_answer_has_the_problems_for_programs_too(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        reply = await api.client.post(HORSES, {"metadata": {"name": 7}, "spec": {"age": -1}})
        assert (reply.status, reply.json["error"], reply.json["code"]) == (400, "invalid_request", "malformed")
        assert reply.json["problems"] == [
            {"pointer": "/metadata/name", "reason": "must be a string"},
            {"pointer": "/spec/age", "reason": "must be at least 0"},
        ]
        assert (await api.client.send("POST", HORSES)).status == 400
        assert (await api.client.post(HORSES, GOOD, content_type="text/plain")).status == 400
