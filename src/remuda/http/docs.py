"""Documentation of one API: its OpenAPI document, and an HTML page rendered from it.

Both are generated from the route table on first use, and the root of the API redirects to the page. The page is
self-contained: no script, font, image or other host.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any
from urllib.parse import quote

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from remuda.http.errors import NO_CACHE
from remuda.http.merged_document import Published, merged_document
from remuda.http.openapi import document
from remuda.http.responses import HTML, JSON, Response
from remuda.http.routes import Table
from remuda.http.static_content import StaticContent

JsonMapping = Mapping[str, Any]

_DEEPEST = 6
_MARKS = {"## ": "h2", "- ": "li"}
_PREFIX = "#/components/schemas/"


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field of a schema, as a row of the page."""

    name: str
    """With the names of its parents: `spec.rules[].port`."""
    type: str
    is_required: bool
    about: str


def field_rows(
    schema: JsonMapping, components: Mapping[str, JsonMapping], prefix: str = "", depth: int = 0
) -> Iterator[FieldRow]:
    """Yield the fields of an object, or of each item of an array, with those of nested objects."""
    node = _resolved(schema, components)
    if depth > _DEEPEST:
        return
    if node.get("type") == "array":
        yield from field_rows(node.get("items") or {}, components, f"{prefix}[]", depth)
    required = node.get("required", ())
    for name, field in node.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        about = _resolved(field, components).get("description", "") if "$ref" not in field else ""
        yield FieldRow(path, type_text(field, components), name in required, about)
        yield from field_rows(field, components, path, depth + 1)
    for option in _options(node):
        yield from field_rows(option, components, prefix, depth + 1)


def type_text(schema: JsonMapping, components: Mapping[str, JsonMapping]) -> str:
    """Return a short description of a type, with its bounds."""
    node = _resolved(schema, components)
    if options := _options(node):
        return " or ".join(dict.fromkeys(type_text(option, components) for option in options))
    if "enum" in node:
        return " | ".join(str(value) for value in node["enum"])
    kind = str(node.get("type", "any"))
    if kind == "array":
        return f"array of {type_text(node.get('items') or {}, components)}"
    return ", ".join([kind, *_bounds(node)])


def _bounds(node: JsonMapping) -> Iterator[str]:
    words = {
        "format": "{}",
        "minimum": "from {}",
        "maximum": "up to {}",
        "minLength": "at least {} characters",
        "maxLength": "at most {} characters",
    }
    yield from (text.format(node[key]) for key, text in words.items() if key in node)
    if "pattern" in node and "format" not in node:
        yield f"matching {node['pattern']}"


def _options(node: JsonMapping) -> list[JsonMapping]:
    """Return the alternatives of a value, without null: an optional field is shown as not required."""
    return [option for option in node.get("anyOf", ()) if option != {"type": "null"}]


def _resolved(schema: JsonMapping, components: Mapping[str, JsonMapping]) -> JsonMapping:
    while "$ref" in schema:
        schema = components[schema["$ref"].removeprefix(_PREFIX)]
    options = _options(schema)
    if len(options) == 1:
        return {**{key: value for key, value in schema.items() if key != "anyOf"}, **_resolved(options[0], components)}
    return schema


Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operation:
    """One operation, as the page shows it."""

    method: str
    path: str
    name: str
    heading: str
    summary: str
    about: str
    permission: str
    parameters: list[tuple[str, FieldRow]]
    body: list[FieldRow]
    success: str
    response: list[FieldRow]
    response_text: str
    other: tuple[str, str, list[FieldRow]] | None
    """Alternative success: its status, its description and its fields."""
    errors: list[str]


_ROOTS = frozenset({"", "/"})


class DocsPages:
    """Documentation pages of one API, by path: `/openapi.json`, `/docs`, and its root, which redirects there."""

    def __init__(self, table: Table, version: str, *, merged: Sequence[Published] = ()) -> None:
        """Take the APIs that `/openapi.json` describes in one document, if it is not this one alone."""
        self._table, self._version, self._merged = table, version, tuple(merged)
        self._cache: dict[tuple[str, str], StaticContent] = {}
        self._makers: Mapping[str, Callable[[str], StaticContent]] = {
            "/openapi.json": self._openapi,
            "/docs": self._docs,
        }

    def __contains__(self, path: str) -> bool:
        return path in self._makers or path in _ROOTS

    def response(self, path: str, headers: Mapping[bytes, bytes], *, mounted_at: str = "") -> Response:
        """Return the response to a request with these headers."""
        if path in _ROOTS:
            return _to_docs(mounted_at)
        if (path, mounted_at) not in self._cache:
            self._cache[path, mounted_at] = self._makers[path](mounted_at)
        return self._cache[path, mounted_at].response(headers)

    def _openapi(self, mounted_at: str) -> StaticContent:
        server = mounted_at or "/"
        content = (
            merged_document(self._merged, version=self._version, server=server)
            if self._merged
            else document(self._table, version=self._version, server=server)
        )
        return StaticContent(msgspec.json.encode(content), (JSON, NO_CACHE))

    def _docs(self, mounted_at: str) -> StaticContent:
        html, policy = render_docs(document(self._table, version=self._version, server=mounted_at or "/"))
        return StaticContent(html, (HTML, NO_CACHE, (b"content-security-policy", policy.encode())))


def _to_docs(mounted_at: str) -> Response:
    return Response(307, b"", ((b"location", quote(f"{mounted_at}/docs").encode()), NO_CACHE))


def render_docs(api: Document) -> tuple[bytes, str]:
    """Return an OpenAPI document as a page, and the content security policy that lets it load nothing else."""
    environment = Environment(
        loader=PackageLoader("remuda.http"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    style = environment.get_template("docs.css").render()
    operations = sorted(_operations(api), key=lambda one: [tag["name"] for tag in api["tags"]].index(one.heading))
    html = environment.get_template("docs.html").render(
        api=api,
        style=style,
        about=[(tag, list(group)) for tag, group in groupby(_blocks(api["info"]["description"]), key=itemgetter(0))],
        headings=[(heading, list(group)) for heading, group in groupby(operations, key=lambda one: one.heading)],
    )
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return html.encode(), f"default-src 'none'; style-src 'sha256-{allowed}'; frame-ancestors 'none'"


Block = tuple[str, list[tuple[str, bool]]]
"""An element of a page, and its text in parts: whether each is code."""


def _blocks(markdown: str) -> Iterator[Block]:
    """Yield the blocks of a description in Markdown: headings, paragraphs and items of lists, with code in them."""
    for block in filter(None, markdown.split("\n\n")):
        text = block.strip()
        tag = next((tag for mark, tag in _MARKS.items() if text.startswith(mark)), "p")
        parts = text.removeprefix("## ").removeprefix("- ").split("`")
        yield tag, [(part, number % 2 == 1) for number, part in enumerate(parts) if part]


def _operations(api: Document) -> Iterator[_Operation]:
    schemas = api["components"]["schemas"]
    for path, item in api["paths"].items():
        for method, operation in item.items():
            success, response = next(iter(operation["responses"].items()))
            content = response.get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            yield _Operation(
                method=method.upper(),
                path=path,
                name=operation["operationId"],
                heading=operation["tags"][0],
                summary=operation["summary"],
                about=operation.get("description", ""),
                permission=_permission(operation),
                parameters=[_parameter(each, schemas) for each in operation.get("parameters", ())],
                body=list(field_rows(_body(operation), schemas)),
                success=success,
                response=list(field_rows(schema, schemas)),
                response_text=type_text(schema, schemas) if schema else "a page" if content else "nothing",
                other=_other(operation, success, schemas),
                errors=[status for status in operation["responses"] if not status.startswith("2")],
            )


def _other(operation: Document, success: str, schemas: Document) -> tuple[str, str, list[FieldRow]] | None:
    for status, response in operation["responses"].items():
        if status != success and status.startswith("2"):
            schema = response["content"]["application/json"]["schema"]
            return status, response["description"], list(field_rows(schema, schemas))
    return None


def _permission(operation: Document) -> str:
    scope, permission = operation["x-scope"], operation.get("x-permission")
    if permission is None:
        return {"public": "Everyone", "authenticated": "Every authenticated caller"}[scope]
    where = {"everywhere": "everywhere", "organization": "in the organization", "project": "in the project"}[scope]
    return f"{permission['endpoint']} {permission['operation']}, {where}"


def _parameter(parameter: Document, schemas: Document) -> tuple[str, FieldRow]:
    kind = type_text(parameter["schema"], schemas)
    row = FieldRow(parameter["name"], kind, parameter.get("required", False), parameter.get("description", ""))
    return parameter["in"], row


def _body(operation: Document) -> Document:
    content: Document = operation.get("requestBody", {}).get("content", {})
    media: Document = next(iter(content.values()), {})
    schema: Document = media.get("schema", {})
    return schema
