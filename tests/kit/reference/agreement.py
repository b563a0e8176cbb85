"""Compares our OpenAPI document with the wire contract: would an existing client trip over anything?

What a client sends must be taken: every parameter, every field, every value of an enumeration; and nothing may be
demanded that it may leave out. What it reads must be there: every documented status in its media type, every field,
those that it relies on always, and no value of an enumeration that it does not know. What we add is fine.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.kit.reference.contract import Body, Operation, WireContract

Node = Mapping[str, Any]
Way = Literal["sent", "sent in a form", "read"]
"""Which way something goes, as clients see it."""

_PARAMETER = re.compile(r"\{[^{}/]+\}")


@dataclass(frozen=True)
class Shape:
    """What a schema says, with its references followed and its parts built."""

    type: str = ""
    """Empty where it can be several."""
    fields: Mapping[str, Node] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    items: Node | None = None
    values: frozenset[Any] | None = None
    """The values of an enumeration."""
    is_open: bool = False
    """It takes fields that it does not name."""


class Reading:
    """Reads the schemas of one document."""

    def __init__(self, document: Node) -> None:
        self._document = document

    def followed(self, node: Node) -> Node:
        """Return what a node refers to, or the node itself."""
        while "$ref" in node:
            target: Any = self._document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def shape(self, node: Node) -> Shape:
        """Return what a schema says."""
        node = self.followed(node)
        options = [each for key in ("anyOf", "oneOf") for each in node.get(key, ()) if each.get("type") != "null"]
        parts = [self.shape(each) for each in (*node.get("allOf", ()), *(options if len(options) == 1 else ()))]
        own = Shape(
            type=_type(node),
            fields=node.get("properties", {}),
            required=frozenset(node.get("required", ())),
            items=node.get("items"),
            values=frozenset(node.get("enum", [node["const"]] if "const" in node else ())) or None,
            is_open=bool(node.get("additionalProperties")),
        )
        for part in parts:
            own = _merged(own, part)
        return own


def _type(node: Node) -> str:
    told = node.get("type", "object" if "properties" in node else "")
    several = [told] if isinstance(told, str) else [each for each in told if each != "null"]
    return several[0] if len(several) == 1 else ""


def _merged(one: Shape, other: Shape) -> Shape:
    return Shape(
        type=one.type or other.type,
        fields={**other.fields, **one.fields},
        required=one.required | other.required,
        items=one.items or other.items,
        values=one.values or other.values,
        is_open=one.is_open or other.is_open,
    )


class Agreement:
    """Finds where a document of ours and the contract differ."""

    def __init__(self, contract: WireContract, document: Node) -> None:
        self._theirs, self._ours = Reading({"$defs": contract.schemas}), Reading(document)
        self._contract = contract
        self._paths = {_PARAMETER.sub("{}", path): item for path, item in document["paths"].items()}

    def differences(self, operation: Operation) -> list[str]:
        """Return what a client of this operation could trip over."""
        item = self._paths.get(_PARAMETER.sub("{}", operation.path), {})
        ours = item.get(operation.method.lower())
        if ours is None:
            return ["it is missing"]
        return [
            *self._in_parameters(operation, [*item.get("parameters", ()), *ours.get("parameters", ())]),
            *self._in_request(operation, ours),
            *self._in_answers(operation, ours["responses"]),
        ]

    def _in_parameters(self, operation: Operation, sent: list[Node]) -> Iterator[str]:
        ours = {(each["in"], each["name"]): each for each in map(self._ours.followed, sent)}
        theirs = {(each.place, each.name): each for each in operation.parameters if each.place != "path"}
        yield from (f"it takes no {place} parameter {name}" for place, name in theirs.keys() - ours.keys())
        for (place, name), each in ours.items():
            known = theirs.get((place, name))
            if place != "path" and each.get("required") and not (known and known.required):
                yield f"it demands the {place} parameter {name}"

    def _in_request(self, operation: Operation, ours: Node) -> Iterator[str]:
        if operation.request is None:
            return
        content = self._ours.followed(ours.get("requestBody", {})).get("content", {})
        yield from self._in_body(
            "the request", operation.request, content, "sent in a form" if "form" in operation.request.mime else "sent"
        )

    def _in_answers(self, operation: Operation, ours: Node) -> Iterator[str]:
        for status, body in operation.responses.items():
            if status not in ours:
                yield f"it documents no {status}"
                continue
            content = self._ours.followed(ours[status]).get("content", {})
            if body is not None:
                yield from self._in_body(status, body, content, "read")
            elif content:
                yield f"{status} has a body"

    def _in_body(self, where: str, body: Body, content: Node, way: Way) -> Iterator[str]:
        if body.mime not in content:
            yield f"{where} is not {body.mime}"
        elif body.schema:
            theirs = self._contract.whole(body.schema)
            yield from self._in_schema(where, theirs, content[body.mime]["schema"], way)

    def _in_schema(self, where: str, theirs: Node, ours: Node, way: Way) -> Iterator[str]:
        known, mine = self._theirs.shape(theirs), self._ours.shape(ours)
        if way == "sent in a form" and mine.items is not None and known.items is None:
            mine = self._ours.shape(mine.items)  # a field that is sent once is a list of one
        if known.type and mine.type and known.type != mine.type:
            yield f"{where} is {mine.type}, not {known.type}"
            return
        yield from _in_values(where, known, mine, way)
        yield from _in_required(where, known, mine, way)
        if known.items is not None:
            yield from self._in_schema(f"{where}[]", known.items, mine.items or {}, way)
        for name, inner in known.fields.items():
            if name in mine.fields:
                yield from self._in_schema(f"{where}.{name}", inner, mine.fields[name], way)
            elif not mine.is_open:
                yield f"{where} has no field {name}"


def _in_values(where: str, known: Shape, mine: Shape, way: Way) -> Iterator[str]:
    if known.values is None or mine.values is None:
        return
    surplus = mine.values - known.values if way == "read" else known.values - mine.values
    if surplus:
        yield f"{where} {'may be' if way == 'read' else 'rejects'} {', '.join(sorted(map(str, surplus)))}"


def _in_required(where: str, known: Shape, mine: Shape, way: Way) -> Iterator[str]:
    if way != "read":
        yield from (f"{where} demands {name}" for name in sorted(mine.required - known.required))
    else:
        missing = (known.required & mine.fields.keys()) - mine.required
        yield from (f"{where} may leave out {name}" for name in sorted(missing))
