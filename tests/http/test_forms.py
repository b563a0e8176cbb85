import re
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.http.bodies import FORM, FormReader, form_schema
from remuda.http.routes import Table
from remuda.http.schema import Wire
from remuda.kernel.errors import Malformed
from remuda.kernel.secrets import Secret
from tests.kit.sample_api.browser import LoginForm, TokenForm, opened, route

READER = FormReader(LoginForm)
TYPE = FORM.encode()
CANARY = "sesame-open"


def refused(body: bytes, content_type: bytes | None = TYPE) -> Malformed:
    with pytest.raises(Malformed) as caught:
        READER.read(body, content_type)
    return caught.value


def test_a_form_becomes_its_type_and_unknown_fields_are_ignored() -> None:
    body = b"user=anna%40example.com&password=a+b%26%C3%A9&other=1&other=2&scopeName=ab&scopeName=cd&remember=yes"
    assert READER.read(body, TYPE) == LoginForm(
        user="anna@example.com", password=Secret("a b&é"), remember="yes", scope_name=("ab", "cd")
    )


@pytest.mark.parametrize("content_type", [TYPE, TYPE + b"; charset=UTF-8", b" Application/X-WWW-Form-Urlencoded "])
def test_the_content_type_may_have_parameters(content_type: bytes) -> None:
    assert READER.read(b"user=anna&password=x", content_type).user == "anna"


@pytest.mark.parametrize("content_type", [None, b"application/json", b"multipart/form-data; boundary=x", b"text/plain"])
def test_another_content_type_is_refused_with_the_right_one(content_type: bytes | None) -> None:
    assert refused(b"user=anna&password=x", content_type).message.endswith(f"send {FORM}")


def test_a_field_without_a_value_is_as_good_as_not_sent() -> None:
    assert READER.read(b"user=anna&password=x&remember=&scopeName=", TYPE) == LoginForm(
        user="anna", password=Secret("x")
    )
    assert refused(b"user=anna&password=").problems == (("/password", "is required"),)
    assert FormReader(TokenForm).read(b"grant_type=x&code=", TYPE).code is None


def test_a_form_that_needs_nothing_may_be_no_body_at_all() -> None:
    class Visit(Wire, frozen=True):
        user: str = "nobody"
        password: Secret | None = None

    assert FormReader(Visit).read(b"", None) == Visit()
    assert dict(refused(b"", None).problems).keys() == {"/user", "/password"}


def test_a_field_that_comes_twice_is_refused_unless_it_takes_several() -> None:
    twice = refused(b"user=anna&user=&password=x&scopeName=ab&scopeName=cd")
    assert twice.problems == (("/user", "is repeated"),)


def test_a_field_with_a_description_takes_several_too() -> None:
    class Form(Wire, frozen=True):
        audience: Annotated[tuple[str, ...], msgspec.Meta(description="Services.")] = ()
        resource: Annotated[tuple[str, ...] | None, msgspec.Meta(description="URLs.")] = None

    read = FormReader(Form).read(b"audience=a&resource=b&audience=c", TYPE)
    assert read == Form(audience=("a", "c"), resource=("b",))


def test_all_faults_are_told_at_once_and_never_what_was_sent() -> None:
    body = f"user={CANARY.upper()}&remember={CANARY}&scopeName=a&scopeName={CANARY}".encode()
    told = refused(body)
    assert dict(told.problems) == {
        "/user": "does not match the required pattern: write it as ^[a-z@.]+$",
        "/password": "is required",
        "/remember": 'is not one of the allowed values: use "no" or "yes"',
        "/scopeName/0": "must have at least 2 characters",
    }
    assert CANARY not in told.message.lower()


def test_a_pattern_holds_for_a_newline_at_the_end_too() -> None:
    assert refused(b"user=anna%0a&password=x").problems == (
        ("/user", "does not match the required pattern: write it as ^[a-z@.]+$"),
    )
    assert READER.read(b"user=anna&password=x%0A", TYPE).password == Secret("x\n")


@pytest.mark.parametrize("body", [b"user=%ff&password=x", b"user=\xc3\xa9", b"&".join([b"a=1"] * 101)])
def test_what_is_no_form_in_utf8_or_too_long_is_refused(body: bytes) -> None:
    assert "malformed" in refused(body).message


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        read = READER.read(b"user=anna&password=x&" + body, TYPE)
    except Malformed:
        return
    assert re.fullmatch("[a-z@.]+", read.user)


def test_the_schema_of_a_form_has_no_null_and_names_secrets() -> None:
    schema: Any = form_schema(LoginForm)
    assert schema["required"] == ["user", "password"]
    assert schema["properties"]["password"]["format"] == "password"
    assert schema["properties"]["remember"]["enum"] == ["no", "yes"]
    assert "null" not in str(schema)


async def test_the_pipeline_reads_forms_within_its_limits(tmp_path: Path) -> None:
    async with opened(tmp_path, body_limit=60) as tack:
        assert (await tack.client.post("/login", form={"user": "anna", "password": CANARY})).status == 200
        assert tack.service.calls[0].body == LoginForm(user="anna", password=Secret(CANARY))
        long = await tack.client.post("/login", form={"user": "anna", "password": "x" * 60})
        assert long.status == 413
        wrong = await tack.client.post("/login", {"user": "anna", "password": CANARY})
        assert wrong.status == 400
        assert CANARY.encode() not in wrong.body
        assert len(tack.service.calls) == 1


def test_a_form_needs_a_body_to_be() -> None:
    with pytest.raises(ValueError, match="log_in is a form without a body"):
        Table("x", title="x", description="x", routes=[route("POST", "/login", "log_in", form=True)])
