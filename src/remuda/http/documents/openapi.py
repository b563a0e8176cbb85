"""The OpenAPI 3.1 document of a table.

It is read from the table and from nothing else, so it cannot lag behind. Parameters, bodies and answers are the schemas
of the very types that requests are judged by.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from remuda.http.bodies import wire_schema
from remuda.http.errors import ErrorBody, OAuth2Error, OtherErrorBody
from remuda.http.forms import FORM, form_schema
from remuda.http.headers import HEADER_PATTERN
from remuda.http.openapi import HEADERS, error_responses, route_responses
from remuda.http.routes import AnyRoute, Parameters
from remuda.http.tables import Table

Node = dict[str, Any]

_ELSEWHERE = {"accept", "authorization", "content-type", "cookie"}
"""Headers that OpenAPI has other places for."""
_REF = "#/components/schemas/{name}"
_IDEMPOTENCY_KEY: Node = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A name for this request: sent again with it, the request is done once and answered twice.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}
_IF_MATCH: Node = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag of a read: the write happens only if nothing has changed since.",
    "schema": {"type": "string", "pattern": HEADER_PATTERN},
}
_LAST_EVENT_ID: Node = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "With `watch`: the id of the last event that was seen, to go on from there.",
    "schema": {"type": "string", "pattern": HEADER_PATTERN},
}
_OF_SERVICES: Node = {
    "X-Principal": {
        "name": "X-Principal",
        "in": "header",
        "description": "For whom a service acts, as JSON in unpadded base64url, or as a JWS that the key of its "
        "certificate signed. Always beside a certificate; beside a token it counts if that is a service's.",
        "schema": {"type": "string", "pattern": "^[0-9A-Za-z_.-]+$"},
    },
    "X-Impersonate": {
        "name": "X-Impersonate",
        "in": "header",
        "description": "The service wants no more than both it and the one it acts for may do.",
        "schema": {"enum": ["true", "false"]},
    },
}
"""No operation names them as its own: from whoever is no service they mean nothing."""
_SCHEMES: Node = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "service": {
        "type": "mutualTLS",
        "description": "For services. They say for whom they act: `X-Principal`, and `X-Impersonate` if they want no "
        "more than both may; see the parameters of this document.",
    },
}


def document(table: Table, *, version: str, server: str = "/") -> Node:
    """Return the document of a service that is mounted at `server`."""
    schemas, components = _schemas(table)
    return {
        "openapi": "3.1.0",
        "info": {"title": table.title, "version": version, "description": _about(table)},
        "servers": [{"url": server}],
        "tags": [{"name": name} for name in dict.fromkeys(route.heading for route in table.routes)],
        "paths": _paths(table, schemas),
        "components": {
            "schemas": dict(sorted(components.items())),
            "responses": error_responses(table.routes, schemas),
            "headers": {
                name: {"description": about, "schema": {"type": "string"}} for name, about in sorted(HEADERS.items())
            },
            "parameters": _OF_SERVICES,
            "securitySchemes": _SCHEMES,
        },
    }


def _about(table: Table) -> str:
    return f"{table.description} Every path that has GET answers HEAD likewise, without the body.".lstrip()


def _schemas(table: Table) -> tuple[Mapping[Any, Node], Node]:
    """Return the schema of each type on the wire, and the components that those refer to."""
    bodies = [route.body_type for route in table.routes if route.has_body and not route.form]
    answers = [route.answer_type for route in table.routes if not route.page]
    others = [route.other.answer_type for route in table.routes if route.other is not None]
    refusals = [body for route in table.routes for body in route.refusals.values()]
    errors = [ErrorBody, OtherErrorBody, *(OAuth2Error for route in table.routes if route.oauth)]
    kinds = list(dict.fromkeys([*errors, *bodies, *answers, *others, *refusals]))
    schemas, components = msgspec.json.schema_components(kinds, schema_hook=wire_schema, ref_template=_REF)
    return dict(zip(kinds, schemas, strict=True)), components


def _paths(table: Table, schemas: Mapping[Any, Node]) -> Node:
    paths: Node = {}
    for route in table.routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return paths


def _operation(route: AnyRoute, schemas: Mapping[Any, Node]) -> Node:
    operation: Node = {"operationId": route.name, "summary": route.summary, "tags": [route.heading]}
    if route.description:
        operation["description"] = route.description
    if parameters := [*_parameters(route.path_type, "path"), *_parameters(route.query_type, "query"), *_headers(route)]:
        operation["parameters"] = parameters
    if route.has_body:
        operation["requestBody"] = _body(route, schemas)
    operation["responses"] = route_responses(route, schemas)
    operation["security"] = [] if route.scope == "public" else [{name: []} for name in _SCHEMES]
    operation["x-scope"] = route.scope
    if route.permission is not None:
        operation["x-permission"] = {"endpoint": route.permission.endpoint, "operation": route.permission.verb}
    return operation


def _body(route: AnyRoute, schemas: Mapping[Any, Node]) -> Node:
    if not route.form:
        return {"required": True, "content": {"application/json": {"schema": schemas[route.body_type]}}}
    schema = form_schema(route.body_type)
    return {"required": "required" in schema, "content": {FORM: {"schema": schema}}}


def _parameters(kind: type[Parameters], place: str) -> Iterator[Node]:
    for field in msgspec.structs.fields(kind):
        schema = _without_null(msgspec.json.schema(field.type))
        if place == "path" and schema.get("type") == "string" and "pattern" not in schema:
            schema.setdefault("minLength", 1)
        description = schema.pop("description", None)
        if field.default not in {msgspec.NODEFAULT, None}:
            schema["default"] = field.default
        yield {
            "name": field.encode_name,
            "in": place,
            "required": field.required,
            **({"description": description} if description else {}),
            "schema": schema,
        }


def _without_null(schema: Node) -> Node:
    """Return the schema of the text that is sent: a parameter is left out, never null."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **options[0]}


def _headers(route: AnyRoute) -> Iterator[Node]:
    if route.is_collection:
        yield _LAST_EVENT_ID
    if route.takes_key:
        yield _IDEMPOTENCY_KEY
    if route.is_conditional:
        yield _IF_MATCH
    for name in route.headers:
        if name not in _ELSEWHERE:
            yield {"name": name, "in": "header", "schema": {"type": "string"}}
