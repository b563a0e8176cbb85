"""OpenAPI document of several APIs at once, for programs that generate one client for all of them.

Paths get the prefix of their API. Names of operations and tags begin with the name of the service, because several
services have `list_regions`. Schemas are shared: the same name is the same schema in each of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from remuda.http.components import JsonObject
from remuda.http.openapi import AUTHENTICATION, document
from remuda.http.routes import Table

_TITLE = "Remuda"
_ABOUT = (
    "A compute cloud for many tenants: {titles}. Names of operations and tags begin with the service. Every path with "
    "GET also supports HEAD."
)


@dataclass(frozen=True, slots=True)
class Published:
    """A route table and its mount point."""

    prefix: str
    """Such as `/compute`; empty for the root."""
    table: Table


def merged_document(apis: Iterable[Published], *, version: str, server: str = "/") -> JsonObject:
    """Return one document of all APIs. Raises ValueError if a name means different things in two of them."""
    apis = tuple(apis)
    documents = [(each, document(each.table, version=version)) for each in apis]
    paths: JsonObject = {}
    tags: JsonObject = {}
    components: dict[str, JsonObject] = {}
    for each, content in documents:
        service = each.table.service
        _join(paths, {f"{each.prefix}{path}": _named(item, service) for path, item in content["paths"].items()})
        _join(tags, {tag["name"]: tag for tag in _tags(content["tags"], service)})
        for section, named in content["components"].items():
            _join(components.setdefault(section, {}), named)
    titles = ", ".join(each.table.title.lower() for each in apis)
    return {
        "openapi": documents[0][1]["openapi"],
        "info": {"title": _TITLE, "version": version, "description": f"{_ABOUT.format(titles=titles)}{AUTHENTICATION}"},
        "servers": [{"url": server}],
        "tags": list(tags.values()),
        "paths": paths,
        "components": {section: dict(sorted(named.items())) for section, named in components.items()},
    }


def _named(item: JsonObject, service: str) -> JsonObject:
    return {
        method: {
            **operation,
            "operationId": f"{service}_{operation['operationId']}",
            "tags": [_tag(name, service) for name in operation["tags"]],
        }
        for method, operation in item.items()
    }


def _tags(tags: Iterable[JsonObject], service: str) -> Iterable[JsonObject]:
    return ({**tag, "name": _tag(tag["name"], service)} for tag in tags)


def _tag(name: str, service: str) -> str:
    return name if name == service else f"{service}: {name}"


def _join(joined: dict[str, Any], more: Mapping[str, Any]) -> None:
    if clashes := sorted(name for name, value in more.items() if joined.get(name, value) != value):
        raise ValueError(f"these names mean different things in two APIs: {', '.join(clashes)}")
    joined.update(more)
