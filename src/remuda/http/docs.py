"""The pages of one API: its OpenAPI document, and the same to read.

Both are made from the table when they are first asked for, and the root of the API leads to the latter. That page needs
nothing but itself: no script, no font, no image, no other host.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import quote

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from remuda.http.documents.openapi import document
from remuda.http.documents.schemas import FieldRow, field_rows, type_text
from remuda.http.errors import NO_CACHE
from remuda.http.responses import HTML, JSON, Answer
from remuda.http.tables import Table

Node = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operation:
    """One operation, as the page shows it."""

    method: str
    path: str
    name: str
    heading: str
    summary: str
    about: str
    right: str
    parameters: list[tuple[str, FieldRow]]
    body: list[FieldRow]
    success: str
    answer: list[FieldRow]
    answer_type: str
    other: tuple[str, str, list[FieldRow]] | None
    """Another answer that it may give when all is well: its status, when that is, and its fields."""
    errors: list[str]


class Pages:
    """The pages of one API, by path: `/openapi.json`, `/docs`, and its root, which leads there."""

    def __init__(self, table: Table, version: str) -> None:
        self._table, self._version = table, version
        self._made: dict[tuple[str, str], Answer] = {}
        self._makers: Mapping[str, Callable[[str], Answer]] = {
            "/openapi.json": self._openapi,
            "/docs": self._docs,
            "/": _to_docs,
            "": _to_docs,
        }

    def __contains__(self, path: str) -> bool:
        return path in self._makers

    def answer(self, path: str, *, mounted_at: str = "") -> Answer:
        """Answer a GET with the page at one of these paths."""
        if (path, mounted_at) not in self._made:
            self._made[path, mounted_at] = self._makers[path](mounted_at)
        return self._made[path, mounted_at]

    def _openapi(self, mounted_at: str) -> Answer:
        made = document(self._table, version=self._version, server=mounted_at or "/")
        return Answer(200, msgspec.json.encode(made), (JSON, NO_CACHE))

    def _docs(self, mounted_at: str) -> Answer:
        html, policy = render_docs(document(self._table, version=self._version, server=mounted_at or "/"))
        return Answer(200, html, (HTML, NO_CACHE, (b"content-security-policy", policy.encode())))


def _to_docs(mounted_at: str) -> Answer:
    return Answer(307, b"", ((b"location", quote(f"{mounted_at}/docs").encode()), NO_CACHE))


def render_docs(api: Node) -> tuple[bytes, str]:
    """Return an OpenAPI document as a page, and the policy that lets a browser load nothing else for it."""
    environment = Environment(
        loader=PackageLoader("remuda.http.documents"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    style = environment.get_template("docs.css").render()
    operations = sorted(_operations(api), key=lambda one: [tag["name"] for tag in api["tags"]].index(one.heading))
    html = environment.get_template("docs.html").render(
        api=api,
        style=style,
        headings=[(heading, list(group)) for heading, group in groupby(operations, key=lambda one: one.heading)],
    )
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return html.encode(), f"default-src 'none'; style-src 'sha256-{allowed}'; frame-ancestors 'none'"


def _operations(api: Node) -> Iterator[_Operation]:
    schemas = api["components"]["schemas"]
    for path, item in api["paths"].items():
        for method, operation in item.items():
            success, answered = next(iter(operation["responses"].items()))
            content = answered.get("content", {})
            answer = content.get("application/json", {}).get("schema", {})
            yield _Operation(
                method=method.upper(),
                path=path,
                name=operation["operationId"],
                heading=operation["tags"][0],
                summary=operation["summary"],
                about=operation.get("description", ""),
                right=_right(operation),
                parameters=[_parameter(each, schemas) for each in operation.get("parameters", ())],
                body=list(field_rows(_body(operation), schemas)),
                success=success,
                answer=list(field_rows(answer, schemas)),
                answer_type=type_text(answer, schemas) if answer else "a page" if content else "nothing",
                other=_other(operation, success, schemas),
                errors=[status for status in operation["responses"] if not status.startswith("2")],
            )


def _other(operation: Node, success: str, schemas: Node) -> tuple[str, str, list[FieldRow]] | None:
    for status, answered in operation["responses"].items():
        if status != success and status.startswith("2"):
            schema = answered["content"]["application/json"]["schema"]
            return status, answered["description"], list(field_rows(schema, schemas))
    return None


def _right(operation: Node) -> str:
    scope, permission = operation["x-scope"], operation.get("x-permission")
    if permission is None:
        return {"public": "Anybody", "authenticated": "Anybody with credentials"}[scope]
    where = {"everywhere": "everywhere", "organization": "in the organization", "project": "in the project"}[scope]
    return f"{permission['endpoint']} {permission['operation']}, {where}"


def _parameter(parameter: Node, schemas: Node) -> tuple[str, FieldRow]:
    kind = type_text(parameter["schema"], schemas)
    row = FieldRow(parameter["name"], kind, parameter.get("required", False), parameter.get("description", ""))
    return parameter["in"], row


def _body(operation: Node) -> Node:
    content: Node = operation.get("requestBody", {}).get("content", {})
    media: Node = next(iter(content.values()), {})
    schema: Node = media.get("schema", {})
    return schema
