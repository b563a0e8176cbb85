"""Resource types of the CLI against the route tables, which the CLI does not import."""

import re
from typing import Any, get_args

import pytest

from remuda.app import tables
from remuda.cli import resources
from remuda.cli.resources import ResourceType, schema_type

TYPES = [each for each in vars(resources).values() if isinstance(each, ResourceType)]


def route(resource_type: ResourceType[Any], method: str, path: str) -> Any:
    """Return the route with this method and path, whatever its parameters are called."""
    found = [
        each
        for each in tables()[resource_type.service].table.routes
        if each.method == method and re.sub(r"\{\w+\}", "{}", each.path) == re.sub(r"\{\w+\}", "{}", path)
    ]
    assert len(found) == 1, (resource_type.name, method, path)
    return found[0]


@pytest.mark.parametrize("resource_type", TYPES, ids=lambda each: each.name)
def test_paths_and_schema_types_are_those_of_the_routes(resource_type: ResourceType[Any]) -> None:
    assert len(TYPES) == 8
    listed = route(resource_type, "GET", resource_type.path)
    assert get_args(listed.response_type)[0] is resource_type.read_type
    if resource_type.create:
        created = route(resource_type, "POST", resource_type.path)
        assert created.body_type is schema_type(resource_type.create)
        assert created.response_type is resource_type.read_type
        one = route(resource_type, "GET", f"{resource_type.path}/{{id}}")
        assert one.response_type is resource_type.read_type
    if resource_type.update:
        updated = route(resource_type, "PUT", f"{resource_type.path}/{{id}}")
        assert updated.body_type is schema_type(resource_type.update)
        assert updated.response_type is resource_type.read_type
