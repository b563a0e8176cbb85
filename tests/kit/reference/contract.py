"""The wire contract that existing clients speak, as test data: which operations there are, and what they answer.

`<service>.json` says it in its own form; here it becomes values and JSON Schema.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

Schema = Mapping[str, Any]
TIERS = frozenset({"public", "internal"})
"""What must agree; what is deprecated need not."""

_PARAMETER = re.compile(r"\{[^{}/]+\}")


class Body(msgspec.Struct, frozen=True):
    """What is sent or answered."""

    mime: str
    schema: dict[str, Any]

    @property
    def is_json(self) -> bool:
        return "json" in self.mime


class Parameter(msgspec.Struct, frozen=True, rename={"place": "in"}):
    """A parameter of a path, a query or a header."""

    name: str
    place: str
    required: bool = False


class Operation(msgspec.Struct, frozen=True):
    """One operation, as clients know it."""

    method: str
    path: str
    tier: str
    authenticated: bool
    parameters: tuple[Parameter, ...]
    request: Body | None
    responses: dict[str, Body | None]

    @property
    def label(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_for_browsers(self) -> bool:
        """It sends a browser elsewhere, so what goes wrong is a page."""
        return "302" in self.responses


class _File(msgspec.Struct, frozen=True):
    service: str
    operations: tuple[Operation, ...]
    schemas: dict[str, Any]


@dataclass(frozen=True)
class WireContract:
    """All operations of a service, and the schemas that they share."""

    operations: Sequence[Operation]
    schemas: Mapping[str, Schema]
    """As JSON Schema whose references begin at `#/$defs/`."""

    def operation(self, method: str, path: str) -> Operation | None:
        """Return the operation that a request is of, if the contract knows it."""
        fitting = [each for each in self.operations if each.method == method and _pattern(each.path).fullmatch(path)]
        return min(fitting, key=lambda each: each.path.count("{"), default=None)

    def whole(self, schema: Schema) -> Schema:
        """Return a schema of an operation together with everything that it refers to."""
        return {**json_schema(schema), "$defs": self.schemas}


@cache
def wire_contract(service: str) -> WireContract:
    """Read the contract of a service."""
    file = msgspec.json.decode((Path(__file__).parents[2] / "wire" / f"{service}.json").read_bytes(), type=_File)
    return WireContract(
        operations=[each for each in file.operations if each.tier in TIERS],
        schemas={name: json_schema(schema) for name, schema in file.schemas.items()},
    )


def json_schema(node: Any) -> Any:
    """Return a schema of the file as JSON Schema: references are names there, and null is a flag."""
    if isinstance(node, list):
        return [json_schema(each) for each in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        return {"$ref": f"#/$defs/{node['$ref']}"}
    plain = {key: json_schema(value) for key, value in node.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if node.get("nullable") is True else plain


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return re.compile("[^/]*".join(re.escape(part) for part in _PARAMETER.split(template)))
