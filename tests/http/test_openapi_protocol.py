"""What the document says of forms, pages, redirects and OAuth2."""

from typing import Any

import msgspec

from remuda.http.bodies import FORM
from remuda.http.docs import render_docs
from remuda.http.openapi import document
from tests.kit.sample_api import pipeline as sample
from tests.kit.sample_api.browser import table

API: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document(table(), version="1.2.3")))


def operation(name: str) -> dict[str, Any]:
    (found,) = (each for item in API["paths"].values() for each in item.values() if each["operationId"] == name)
    return dict(found)


def response(name: str, status: int) -> dict[str, Any]:
    found = operation(name)["responses"][str(status)]
    return dict(API["components"]["responses"][found["$ref"].rpartition("/")[2]] if "$ref" in found else found)


def test_a_form_is_documented_under_its_media_type() -> None:
    body = operation("log_in")["requestBody"]
    assert body["required"]
    (media,) = body["content"]
    assert media == FORM
    assert body["content"][FORM]["schema"]["required"] == ["user", "password"]


def test_a_page_is_html_and_its_errors_are_html_or_json() -> None:
    assert set(response("show_login", 200)["content"]) == {"text/html"}
    for status in (400, 401, 500):
        assert set(response("show_login", status)["content"]) == {"text/html", "application/json"}
        assert "Content-Security-Policy" in response("show_login", status)["headers"]


def test_where_a_route_redirects_is_documented() -> None:
    for name in ("show_login", "log_in", "come_back", "leave"):
        redirect = response(name, 302)
        assert "content" not in redirect
        assert {"Location", "Set-Cookie"} <= redirect["headers"].keys()
    assert "302" not in operation("get_token")["responses"]
    assert next(iter(operation("come_back")["responses"])) == "302", "what it answers when all is well comes first"


def test_errors_of_oauth_are_a_schema_that_holds_for_both_kinds_of_body() -> None:
    for status in (400, 401, 500, 503):
        schema = response("get_token", status)["content"]["application/json"]["schema"]
        found = API["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        assert found["required"] == ["error", "error_description"]
        assert "enum" not in found["properties"]["error"]
        assert "Pragma" in response("get_token", status)["headers"]
    assert operation("get_token")["security"] == []


def test_declared_headers_are_optional_parameters_unless_openapi_has_another_place_for_them() -> None:
    (parameter,) = operation("headers")["parameters"]
    assert parameter == {"name": "x-flavour", "in": "header", "schema": {"type": "string"}}


def test_a_table_without_them_has_no_such_components() -> None:
    plain = document(sample.table(), version="1")
    assert all(name.isdigit() for name in plain["components"]["responses"])
    assert "OAuth2Error" not in plain["components"]["schemas"]


def test_the_page_to_read_shows_forms_and_pages() -> None:
    html = render_docs(API)[0].decode()
    assert "password" in html
    assert "a page" in html
