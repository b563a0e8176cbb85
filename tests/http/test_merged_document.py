"""One document of several APIs: names are kept apart or shared, and never mean two things."""

from typing import Any

import pytest

from remuda.http.components import components_of, example_of
from remuda.http.merged_document import Published, merged_document
from remuda.http.routes import AnyRoute, Table
from remuda.http.schema import Wire
from tests.kit.sample_api.pipeline import HorseSpec, HorseWrite, do_nothing, route, table


def of(service: str, *routes: AnyRoute) -> Table:
    return Table(service, title=service, description="", routes=routes)


def test_operations_and_tags_are_those_of_their_service() -> None:
    both = merged_document(
        [Published("/one", of("one", route("GET", "/things", "list", do_nothing))), Published("/two", table())],
        version="1",
    )
    assert both["paths"]["/one/things"]["get"]["operationId"] == "one_list"
    assert both["paths"]["/one/things"]["get"]["tags"] == ["one: things"]
    assert {"one: things", "sample: horses"} <= {tag["name"] for tag in both["tags"]}
    assert all(path.startswith(("/one/", "/two/")) for path in both["paths"])


def test_a_schema_that_means_two_things_is_rejected() -> None:
    class HorseRead(Wire, frozen=True):
        """Another one."""

        legs: int

    other = of("other", route("GET", "/horses", "list", do_nothing, response_type=HorseRead))
    with pytest.raises(ValueError, match="mean different things in two APIs: HorseRead"):
        merged_document([Published("/one", table()), Published("/two", other)], version="1")


def test_two_classes_of_one_name_are_rejected() -> None:
    first, second = HorseSpec, type("HorseSpec", (Wire,), {"__annotations__": {"legs": int}}, frozen=True)
    with pytest.raises(ValueError, match="there are two classes of one name"):
        components_of([first, second])


def test_a_class_whose_name_without_suffix_is_another_is_rejected() -> None:
    class HorseSpecWire(Wire, frozen=True):
        legs: int

    with pytest.raises(ValueError, match="two schemas have the same name"):
        components_of([HorseSpec, HorseSpecWire])


def test_an_example_without_that_of_a_required_field_is_none() -> None:
    schemas, components = components_of([HorseWrite])
    with pytest.raises(LookupError, match=r"the required field metadata\.name has no example"):
        example_of(schemas[HorseWrite], components)


def test_an_example_has_what_is_required_or_has_an_example() -> None:
    fields: Any = {
        "name": {"type": "string", "examples": ["bella", "max"]},
        "age": {"type": "integer", "examples": [7]},
        "weight": {"type": "number"},
        "tags": {"type": "array", "default": []},
        "stable": {"$ref": "#/components/schemas/Stable"},
    }
    components = {"Stable": {"type": "object", "properties": {"id": {"examples": ["a"]}}}}
    schema = {"type": "object", "properties": fields, "required": ["name", "tags", "stable"]}
    assert example_of(schema, components) == {"name": "bella", "age": 7, "tags": [], "stable": {"id": "a"}}
