"""Errors of the running API name only fields that the caller can send, never those of a request that Remuda makes."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.kit.api_examples import API, EXAMPLES, STEPS, first_caller

NUMBERS = (-1, 0, 2**31, 2**53 - 1, 2**53, 2**63 - 1, 2**63, 10**40, 1e300, 1.5)
UNKNOWN_ID = "0e55d1d2-0000-4000-8000-000000000000"
POINTER = re.compile(r'"/([^"]*)"')
DOTTED = re.compile(r"\b(?:spec|metadata|status|quotas)(?:\.[A-Za-z]\w*|\[\d+\])+")

Steps = tuple[str | int, ...]


def resolved(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the alternatives of a schema without references."""
    if "$ref" in schema:
        yield from resolved(API["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    elif "anyOf" in schema or "oneOf" in schema:
        for each in schema.get("anyOf") or schema["oneOf"]:
            yield from resolved(each)
    else:
        yield schema


def numbers(schema: Mapping[str, Any], value: Any, at: Steps = ()) -> Iterator[Steps]:
    """Yield the locations of all numbers that an example has, or could have in the objects and lists that it has."""
    for each in resolved(schema):
        if each.get("type") in ("integer", "number"):
            yield at
        elif isinstance(value, dict):
            for name, inner in each.get("properties", {}).items():
                yield from numbers(inner, value.get(name), (*at, name))
        elif isinstance(value, list) and "items" in each:
            for number, inner_value in enumerate(value):
                yield from numbers(each["items"], inner_value, (*at, number))


def ids(value: Any, at: Steps = ()) -> Iterator[Steps]:
    """Yield the locations of all ids of an example."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from ids(inner, (*at, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from ids(inner, (*at, number))
    elif any(str(step).lower().endswith(("id", "ids")) for step in at[-2:]):
        yield at


def changed(example: Any, at: Steps, value: Any) -> Any:
    body = inner = deepcopy(example)
    for step in at[:-1]:
        inner = inner[step]
    inner[at[-1]] = value
    return body


def is_field(schema: Mapping[str, Any], steps: list[str]) -> bool:
    """Tell whether a schema has a field, given by its names and the locations in lists."""
    if not steps:
        return True
    for each in resolved(schema):
        inner = each.get("properties", {}).get(steps[0]) or each.get("additionalProperties")
        if steps[0].isdigit():
            inner = each.get("items")
        if isinstance(inner, Mapping) and is_field(inner, steps[1:]):
            return True
    return False


def named_fields(text: str) -> Iterator[list[str]]:
    """Yield the fields that an error names, as JSON pointers or with dots."""
    yield from (found.split("/") for found in POINTER.findall(text))
    yield from (re.findall(r"\w+", found) for found in DOTTED.findall(text))


def request_schema(name: str) -> Mapping[str, Any]:
    method, path, _ = EXAMPLES[name]
    found: Mapping[str, Any] = API["paths"][path][method.lower()]["requestBody"]["content"]["application/json"][
        "schema"
    ]
    return found


@pytest.mark.thorough
def test_every_field_that_an_error_names_is_one_of_the_request(tmp_path: Path) -> None:
    told, inner = set[str](), []
    with first_caller(tmp_path) as caller:
        for name in STEPS:
            caller.take(name)
        # Backwards, since a quota of 0 comes first and would hide what the others say.
        for name in reversed([*STEPS]):
            schema, example = request_schema(name), EXAMPLES[name][2]
            bodies = [changed(example, at, number) for at in numbers(schema, example) for number in NUMBERS]
            bodies += [changed(example, at, UNKNOWN_ID) for at in ids(example)]
            for body in bodies:
                reply = caller.send(name, body)
                assert reply.status_code < 500, f"{name} {body}: {reply.text}"
                if reply.is_success:
                    continue
                text = reply.json()["error_description"]
                for steps in named_fields(text):
                    told.add(f"{name} {'.'.join(steps)}")
                    if not is_field(schema, steps):
                        inner.append(f"{name} {body}: {text}")
    assert not inner
    assert {
        "region_create_file_storage spec.sizeGiB",
        "region_create_load_balancer spec.listeners.0.port",
        "region_create_security_group spec.rules.0.port",
        "identity_set_quotas quotas.0.quantity",
        "identity_change_project_quotas quotas.0.quantity",
    } <= told


def test_a_field_of_an_inner_request_would_be_found() -> None:
    text = "spec.allocations[0].committed is too large: use at most 9007199254740991."
    assert list(named_fields(text)) == [["spec", "allocations", "0", "committed"]]
    assert not is_field(request_schema("region_create_file_storage"), ["spec", "allocations", "0", "committed"])
    assert is_field(request_schema("region_create_load_balancer"), ["spec", "listeners", "0", "port"])
