from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from remuda.http.api import ApiSettings
from remuda.http.cors import Cors
from remuda.http.openapi import AUTHENTICATION, HEADERS, document
from remuda.http.routes import Table
from remuda.http.schema import ENCODED_TWICE
from tests.kit.sample_api.pipeline import ORGANIZATION, ReferencePath, do_nothing, route, running, table

API: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document(table(), version="1.2.3", server="/sample")))


def operation(name: str) -> dict[str, Any]:
    (found,) = (each for item in API["paths"].values() for each in item.values() if each["operationId"] == name)
    return dict(found)


def parameters(name: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in operation(name)["parameters"]}


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(references(value) for value in node.values()))
    return set[str]().union(*map(references, node)) if isinstance(node, list) else set()


def test_the_document_says_what_it_is() -> None:
    assert API["openapi"] == "3.1.0"
    about = f"Horses & such. Every path with GET also supports HEAD.{AUTHENTICATION}"
    assert API["info"] == {"title": "Sample", "version": "1.2.3", "description": about}
    assert API["servers"] == [{"url": "/sample"}]


def test_every_route_is_an_operation() -> None:
    documented = {
        (method.upper(), path, each["operationId"], each["summary"])
        for path, item in API["paths"].items()
        for method, each in item.items()
    }
    assert documented == {(route.method, route.path, route.name, route.summary) for route in table().routes}


def test_every_reference_leads_somewhere() -> None:
    for reference in references(API):
        node = API
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]
        assert node


def test_every_schema_is_one() -> None:
    for schema in API["components"]["schemas"].values():
        jsonschema_rs.Draft202012Validator({**schema, "components": API["components"]})


def test_parameters_are_described_by_their_types() -> None:
    listed = parameters("list")
    assert listed["organizationID"]["required"]
    assert listed["organizationID"]["in"] == "path"
    assert listed["organizationID"]["schema"]["format"] == "uuid"
    assert listed["age"]["schema"] == {"type": "integer", "minimum": 0, "maximum": 60}
    assert listed["breed"]["schema"] == {"type": "array", "items": {"type": "string"}, "default": []}
    assert listed["sort"]["schema"] == {"enum": ["age", "name"], "default": "name"}
    assert listed["tame"] == {
        "name": "tame",
        "in": "query",
        "required": False,
        "schema": {"type": "boolean", "default": False},
    }
    assert parameters("refer")["reference"] == {
        "name": "reference",
        "in": "path",
        "required": True,
        "description": f"Who uses it. {ENCODED_TWICE}",
        "schema": {"type": "string", "minLength": 1},
    }


def test_headers_that_a_route_understands_are_parameters() -> None:
    assert {"Idempotency-Key", "If-Match"} <= parameters("create").keys()
    assert parameters("refer").keys() == {"reference", "Idempotency-Key"}
    assert {"limit", "continue", "watch", "Last-Event-ID", "If-None-Match"} == parameters("collect").keys()
    assert not {"Idempotency-Key", "If-Match"} & parameters("list").keys()
    assert "parameters" not in operation("public")
    assert "parameters" not in operation("publish"), "a stranger has no keys"


def test_bodies_and_answers_are_those_of_the_types() -> None:
    created = operation("create")
    assert created["requestBody"] == {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/HorseWrite"}}},
    }
    answer = created["responses"]["201"]["content"]["application/json"]["schema"]
    assert answer == {"$ref": "#/components/schemas/HorseRead"}
    assert "content" not in operation("delete")["responses"]["202"]
    assert "requestBody" not in operation("refer")
    assert API["components"]["schemas"]["HorseSpec"]["properties"]["password"]["anyOf"][0]["format"] == "password"


def test_a_collection_is_an_array_or_a_stream() -> None:
    content = operation("collect")["responses"]["200"]["content"]
    assert content.keys() == {"application/json", "text/event-stream"}
    assert content["application/json"]["schema"]["type"] == "array"
    assert operation("list")["responses"]["200"]["content"].keys() == {"application/json"}


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("public", {200, 400, 408, 414, 422, 429, 431, 500, 503}),
        ("get", {200, 400, 401, 403, 404, 408, 414, 422, 429, 431, 500, 503}),
        ("collect", {200, 304, 400, 401, 403, 408, 410, 414, 422, 429, 431, 500, 503}),
        ("delete", {202, 400, 401, 403, 404, 408, 409, 412, 414, 422, 429, 431, 500, 503}),
        ("refer", {201, 400, 401, 403, 404, 408, 409, 414, 422, 429, 431, 500, 503}),
        ("create", {201, 400, 401, 403, 404, 408, 409, 412, 413, 414, 422, 429, 431, 500, 503}),
    ],
)
def test_every_status_that_can_come_is_there(name: str, statuses: set[int]) -> None:
    assert set(map(int, operation(name)["responses"])) == statuses


def test_a_route_adds_statuses_of_its_own() -> None:
    mine = route("GET", "/{reference}", "one", do_nothing, path_type=ReferencePath, errors=(409,))
    made = document(Table("t", title="", description="", routes=[mine]), version="1")
    assert "409" in made["paths"]["/{reference}"]["get"]["responses"]


def test_errors_of_the_contract_have_its_words_and_others_have_ours() -> None:
    responses = API["components"]["responses"]

    def words(status: int) -> set[str]:
        schema = responses[str(status)]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        return set(API["components"]["schemas"][schema]["properties"]["error"]["enum"])

    assert (
        words(400)
        == words(500)
        == {
            "invalid_request",
            "access_denied",
            "forbidden",
            "not_found",
            "method_not_allowed",
            "conflict",
            "request_entity_too_large",
            "unsupported_media_type",
            "unprocessable_content",
            "server_error",
        }
    )
    for status in (408, 410, 412, 414, 429, 431, 503):
        assert not words(status) & words(400)


def test_the_headers_of_an_answer_are_documented() -> None:
    assert API["components"]["headers"].keys() == HEADERS.keys()
    assert {"Link", "X-Continue", "X-Resource-Version"} <= operation("collect")["responses"]["200"]["headers"].keys()
    assert "ETag" in operation("get")["responses"]["200"]["headers"]
    responses = API["components"]["responses"]
    assert "WWW-Authenticate" in responses["401"]["headers"]
    for status in ("409", "429", "503"):
        assert "Retry-After" in responses[status]["headers"]
    for response in responses.values():
        assert {"RateLimit", "RateLimit-Policy"} <= response["headers"].keys()


def test_who_may_call_it_is_told() -> None:
    assert operation("get")["security"] == [{"bearer": []}, {"service": []}]
    assert {name: scheme["type"] for name, scheme in API["components"]["securitySchemes"].items()} == {
        "bearer": "http",
        "service": "mutualTLS",
    }
    for header in ("X-Principal", "X-Impersonate"):
        assert header in API["components"]["securitySchemes"]["service"]["description"]
        assert API["components"]["parameters"][header]["in"] == "header"
    assert operation("get")["x-scope"] == "organization"
    assert operation("get")["x-permission"] == {"endpoint": "sample:horses", "operation": "read"}
    assert operation("public")["security"] == []
    assert "x-permission" not in operation("public")


async def test_the_document_is_served_to_anybody(tmp_path: Path) -> None:
    async with running(tmp_path, settings=ApiSettings(cors=Cors(["*"]))) as api:
        client = type(api.client)(app=api.api)
        reply = await client.get("/openapi.json")
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert reply.json["paths"] == API["paths"]
        refused = await client.post("/openapi.json")
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
        asked = {"origin": "https://page.example.com", "access-control-request-method": "GET"}
        for page in ("/openapi.json", "/docs"):
            assert (await client.get(page)).headers["access-control-allow-origin"] == "*"
            preflight = await client.send("OPTIONS", page, headers=asked)
            assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (204, "*")


async def test_a_mounted_api_knows_where_it_is(tmp_path: Path) -> None:
    async with running(tmp_path) as api:

        async def mounted(scope: Any, receive: Any, send: Any) -> None:
            await api.api({**scope, "root_path": "/sample"}, receive, send)

        client = type(api.client)(app=mounted, token="good")
        for root in ("/sample", "/sample/"):
            led = await client.get(root)
            assert (led.status, led.headers["location"]) == (307, "/sample/docs")
        assert (await client.post("/sample")).status == 405
        assert (await client.get("/sample/openapi.json")).json["servers"] == [{"url": "/sample"}]
        assert (await client.get(f"/sample/api/v1/organizations/{ORGANIZATION}/horses")).status == 200
