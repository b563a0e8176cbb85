"""Formats that the program itself tells: its commands, its registries, and what a fresh start leaves and shows."""

import contextlib
import dataclasses
import inspect
import io
import json
import sqlite3
import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import yaml
from cyclopts import App

import remuda
from remuda.app import registry, tables
from remuda.cli import main
from remuda.cli.app import build_app
from remuda.compute.instances.rules import instance_id
from remuda.config.schema import SETTINGS
from remuda.http.audit import AuditRecord
from remuda.http.server.server import ListenAddress
from remuda.identity.kinds.tenancy import domain_id
from remuda.identity.kinds.users import membership_id, user_id
from remuda.identity.tokens.sessions import session_of_code
from remuda.kernel.errors import RemudaError
from remuda.kernel.ids import derived_id
from remuda.kernel.secrets import Secret
from remuda.operations.reporter import TimelineEntry
from remuda.operations.saga import Saga
from remuda.providers.contract.common import (
    Handle,
    balancer_name,
    group_name,
    network_name,
    port_name,
    server_name,
    storage_name,
    tenancy_name,
)
from remuda.region.catalogue.seed import region_id
from remuda.region.filestorage.classes import class_id
from remuda.region.kinds.orphans import orphan_id
from remuda.region.networks.rules import identity_id
from remuda.region.servers.rules import server_id
from tests.formats.text import inlined, without_texts

_PACKAGE = f"{remuda.__name__}."
_ID, _OTHER_ID = "a0000000-0000-4000-8000-000000000001", "a0000000-0000-4000-8000-000000000002"
_LEAVES: Mapping[Any, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "boolean",
    Path: "path",
    timedelta: "duration",
    ListenAddress: "address",
    Secret: "secret",
    NoneType: "none",
}


@cache
def modules() -> Mapping[str, ModuleType]:
    """Import everything there is."""
    found = [each.name for each in walk_packages(remuda.__path__, _PACKAGE)]
    return {name: import_module(name) for name in found} | {remuda.__name__: remuda}


def services() -> list[str]:
    """Return the names of all documents, which `remuda openapi` takes."""
    return sorted(tables())


def openapi(service: str) -> Any:
    """Return the OpenAPI document of a service without texts, and the names of its schemas."""
    document = json.loads(_printed("openapi", service))
    kept = {name: part for name, part in document["components"].items() if name != "schemas"}
    names = sorted(document["components"]["schemas"])
    frozen = {"servers": document["servers"], "paths": document["paths"], "components": kept, "schemas": names}
    return _ordered(without_texts(inlined(frozen, document, "#/components/schemas/")))


def kinds() -> Any:
    """Return the definition of every kind, and what its index entries depend on."""
    documents = yaml.safe_load_all(_printed("crds"))
    definitions = {each["metadata"]["name"]: without_texts(each["spec"]) for each in documents}
    signatures = {kind.qualified: kind.signature for kind in registry().kinds}
    assert signatures.keys() <= definitions.keys(), "every kind can be stored in Kubernetes, which has some of its own"
    return {
        name: {"signature": signatures.get(name), "definition": _ordered(definitions[name])}
        for name in sorted(definitions)
    }


def sagas() -> Any:
    """Return every saga with its steps and what is stored of its input."""
    everywhere = (value for module in modules().values() for value in vars(module).values())
    found = {each.name: each for each in everywhere if isinstance(each, Saga)}
    return {
        name: {
            "steps": [step.name for step in found[name].steps],
            "holdsSecret": found[name].has_secret,
            "input": _stored(found[name].input_type),
        }
        for name in sorted(found)
    }


def records() -> Any:
    """Return what the log keeps of operations and of requests."""
    return {name: _stored(kept) for name, kept in (("timeline of operations", TimelineEntry), ("audit", AuditRecord))}


def names() -> Any:
    """Return what our things are called at a provider."""
    made = [
        name("ID", "UID") for name in (tenancy_name, network_name, group_name, balancer_name, storage_name, port_name)
    ]
    return [*made, server_name("ID", "UID", 7)]


def ids() -> Any:
    """Return some derived ids: they find again what was made under them."""
    return {
        "of a namespace": derived_id(_ID, "name"),
        "domain": domain_id("Example.com"),
        "user": user_id("Ann@Example.com"),
        "membership": membership_id(_ID, _OTHER_ID),
        "session": session_of_code("code"),
        "region": region_id("sim-north"),
        "identity": identity_id(_ID),
        "server": server_id(_ID, "web"),
        "instance": instance_id(_ID, "web"),
        "file storage class": class_id(_ID, "fast"),
        "orphan": orphan_id(_ID, "server", Handle("tenancy", "server")),
    }


def _stored(kept: type[msgspec.Struct]) -> Any:
    schema = msgspec.json.schema(kept, schema_hook=lambda _: {"type": "string"})
    return _ordered(without_texts(inlined({"$ref": schema["$ref"]}, schema, "#/$defs/")))


def errors() -> Any:
    """Return every code that an error can have, with its status, whether to retry, and its exit code."""
    found: dict[str, dict[str, Any]] = {}
    for error in _heirs(RemudaError):
        told = {"status": error.status, "retry": error.retry, "exitCode": getattr(error, "exit_code", 1)}
        found.setdefault(error.code, told)
        assert found[error.code] == told, f"{error.code} means two things"
    return {code: found[code] for code in sorted(found)}


def _heirs(error: type[RemudaError]) -> Iterator[type[RemudaError]]:
    assert modules()  # a class that was never imported has not inherited yet
    if error.__module__.startswith(_PACKAGE):
        yield error
    for each in error.__subclasses__():
        yield from _heirs(each)


def configuration() -> Any:
    """Return every key with its variable, its type and its default."""
    shown = tomllib.loads(
        _printed("config", "show", "--data", "DATA", "--listen", str(ListenAddress("127.0.0.1", 8080)))
    )
    return {
        setting.name: {
            "variable": setting.variable,
            "type": _type(setting.type),
            "default": reduce(lambda table, key: table.get(key, {}), setting.path[:-1], shown).get(setting.path[-1]),
        }
        for setting in sorted(SETTINGS.values(), key=lambda each: each.name)
    }


def commands() -> Any:
    """Return every command with its arguments and options, and the exit codes that all have in common."""
    found = {" ".join(words): [*_arguments(command)] for words, command in _commands(build_app())}
    codes = {"success": _code("--version"), "failure": _code("openapi", "nonsense"), "usageError": _code("nonsense")}
    return {"exitCodes": codes, "commands": {name: found[name] for name in sorted(found)}}


def _commands(app: App, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    for name in (each for each in app if not each.startswith("-")):
        words, command = (*above, name), app[name]
        if any(not each.startswith("-") for each in command):
            yield from _commands(command, words)
        else:
            yield words, command


def _arguments(command: App) -> Iterator[dict[str, Any]]:
    for argument in command.assemble_argument_collection():
        if argument.names == ("*",):
            continue  # a class whose fields are options: these follow
        default = argument.field_info.default
        told = {"names": [*argument.names], "type": _type(argument.hint), "required": argument.required}
        has_one = default is not None and default is not inspect.Parameter.empty
        yield {**told, "default": _plain(default)} if has_one else told


def _code(*words: str) -> int:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return main(words)


def databases(data: Path) -> Any:
    """Return the tables of every database of a data directory that no process uses: the clouds' are all alike."""
    found: dict[str, Any] = {}
    for path in sorted(data.rglob("*.db")):
        name = "store" if path.parent == data else "simulated cloud"
        schema = _schema(path)
        assert found.setdefault(name, schema) == schema, f"{path} is another"
    return found


def _schema(path: Path) -> Any:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").fetchall()
        tables = {name: " ".join(sql.split()).rpartition(")")[2].strip() for kind, name, sql in rows if kind == "table"}
        pragmas = ("application_id", "user_version", "page_size", "auto_vacuum", "encoding")
        return {
            "pragmas": {name: database.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas},
            "tables": {
                name: {
                    "options": tables[name],
                    "columns": [_column(*row) for row in database.execute(f"PRAGMA table_info({name})")],
                }
                for name in sorted(tables)
            },
            "others": {name: " ".join(sql.split()) for kind, name, sql in sorted(rows) if kind != "table"},
        }


def _column(_: int, name: str, kind: str, needed: int, default: str | None, key: int) -> str:
    parts = (name, kind, "NOT NULL" * needed, f"DEFAULT {default}" * (default is not None), f"KEY {key}" * bool(key))
    return " ".join(filter(None, parts))


def data_directory(data: Path) -> Any:
    """Return the files of a data directory, and the keys of those that are JSON."""
    paths = {str(path.relative_to(data)): path for path in sorted(data.rglob("*")) if path.is_file()}
    return {name: _keys(json.loads(path.read_text())) if path.suffix == ".json" else "" for name, path in paths.items()}


def _keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _keys(each) for key, each in sorted(value.items())}
    return [_keys(value[0])] if isinstance(value, list) and value else type(value).__name__


def _printed(*words: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(words) == 0
    return said.getvalue()


def _type(annotation: Any) -> Any:  # noqa: PLR0911  one for each sort of type
    """Return what a value has to be, without the names of classes."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return {"one of": [*arguments]}
    if origin is UnionType or str(origin) == "typing.Union":
        return {"any of": sorted(map(_type, arguments), key=json.dumps)}
    if origin is tuple or origin is list:
        return {"list of": _type(arguments[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"mapping of": _type(arguments[1])}
    if annotation in _LEAVES:
        return _LEAVES[annotation]
    assert dataclasses.is_dataclass(annotation), f"{annotation} is a type that the freeze does not know"
    hints = get_type_hints(annotation, include_extras=True)
    return {field.name: [_type(hints[field.name]), *_default(field)] for field in dataclasses.fields(annotation)}


def _default(field: "dataclasses.Field[Any]") -> Iterator[Any]:
    if field.default is not dataclasses.MISSING:
        yield _plain(field.default)
    elif field.default_factory is not dataclasses.MISSING:
        yield _plain(field.default_factory())


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | NoneType) else msgspec.to_builtins(value, enc_hook=str)


def _ordered(value: Any, key: str = "") -> Any:
    """Return a document whose order means nothing in one order."""
    if isinstance(value, dict):
        return {name: _ordered(each, name) for name, each in sorted(value.items())}
    if isinstance(value, list):
        parts = [_ordered(each) for each in value]
        return sorted(parts, key=json.dumps) if key in {"anyOf", "oneOf", "required", "enum", "parameters"} else parts
    return value
