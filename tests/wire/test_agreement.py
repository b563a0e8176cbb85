"""The comparer finds every sort of difference that it is there for."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.reference.agreement import Agreement
from tests.kit.reference.contract import Body, Operation, Parameter, WireContract, json_schema

THING = {
    "type": "object",
    "required": ["name", "state"],
    "properties": {
        "name": {"type": "string"},
        "state": {"$ref": "state"},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "more": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
    },
}
OPERATION = Operation(
    method="POST",
    path="/things/{thing}",
    tier="public",
    authenticated=True,
    parameters=(Parameter(name="thing", place="path", required=True), Parameter(name="by", place="query")),
    request=Body("application/json", {"$ref": "thing"}),
    responses={"200": Body("application/json", {"$ref": "thing"}), "204": None},
)
STATE = {"type": "string", "enum": ["here", "gone"]}
CONTRACT = WireContract(operations=[OPERATION], schemas={"thing": json_schema(THING), "state": STATE})


def _document() -> Any:
    """Return a document of ours that agrees, and adds some."""
    thing = {
        "type": "object",
        "required": ["name", "state"],
        "properties": {
            "name": {"type": "string"},
            "state": {"anyOf": [{"enum": ["here", "gone"]}, {"type": "null"}]},
            "sizes": {"type": "array", "items": {"type": ["integer", "null"]}},
            "more": {"allOf": [{"$ref": "#/components/schemas/More"}]},
            "added": {"type": "string"},
        },
    }
    shown = {"content": {"application/json": {"schema": copy.deepcopy(thing)}}}
    operation = {
        "parameters": [{"name": "by", "in": "query"}, {"name": "new", "in": "query"}],
        "requestBody": {"content": {"application/json": {"schema": thing}}},
        "responses": {"200": shown, "204": {"description": "done"}, "418": {}},
    }
    more = {"type": "object", "properties": {"deep": {"const": True, "type": "boolean"}}}
    return {"paths": {"/things/{id}": {"post": operation}}, "components": {"schemas": {"More": more}}}


def _operation(document: Any) -> Any:
    return document["paths"]["/things/{id}"]["post"]


def _sent(document: Any) -> Any:
    return _operation(document)["requestBody"]["content"]["application/json"]["schema"]


def _read(document: Any) -> Any:
    return _operation(document)["responses"]["200"]["content"]["application/json"]["schema"]


Change = Callable[[Any], Any]
FLAWS: dict[str, Change] = {
    "it is missing": lambda it: it["paths"].clear(),
    "it takes no query parameter by": lambda it: _operation(it)["parameters"].pop(0),
    "it demands the query parameter new": lambda it: _operation(it)["parameters"][1].update(required=True),
    "the request is not application/json": lambda it: _operation(it).pop("requestBody"),
    "the request has no field sizes": lambda it: _sent(it)["properties"].pop("sizes"),
    "the request demands added": lambda it: _sent(it)["required"].append("added"),
    "the request.name is integer, not string": lambda it: _sent(it)["properties"].update(name={"type": "integer"}),
    "the request.state rejects gone": lambda it: _sent(it)["properties"].update(state={"enum": ["here"]}),
    "it documents no 204": lambda it: _operation(it)["responses"].pop("204"),
    "204 has a body": lambda it: _operation(it)["responses"]["204"].update(content={"text/html": {}}),
    "200 is not application/json": lambda it: _operation(it)["responses"]["200"]["content"].clear(),
    "200 may leave out state": lambda it: _read(it)["required"].remove("state"),
    "200.state may be odd": lambda it: _read(it)["properties"].update(state={"enum": ["here", "odd"]}),
    "200.sizes[] is string, not integer": lambda it: _read(it)["properties"]["sizes"].update(items={"type": "string"}),
}


def test_what_agrees_agrees() -> None:
    assert Agreement(CONTRACT, _document()).differences(OPERATION) == []


@pytest.mark.parametrize("flaw", FLAWS)
def test_every_flaw_is_found_and_no_other(flaw: str) -> None:
    document = _document()
    FLAWS[flaw](document)
    assert Agreement(CONTRACT, document).differences(OPERATION) == [flaw]


def test_a_flaw_deep_inside_is_found_on_both_ways() -> None:
    document = _document()
    document["components"]["schemas"]["More"]["properties"].clear()
    found = Agreement(CONTRACT, document).differences(OPERATION)
    assert found == ["the request.more has no field deep", "200.more has no field deep"]
