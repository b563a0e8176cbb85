"""List, show, create, update and delete resources of any type. Tables show names instead of ids."""

import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import msgspec

from remuda.cli.client.session import Query
from remuda.cli.lookup import ExistingResource, NamedResource, ScopedSession, find_resource, is_id, reject_duplicate
from remuda.cli.options import WaitOptions
from remuda.cli.output import (
    Columns,
    Format,
    ResourceT,
    as_rows,
    dump,
    echo,
    echo_error,
    is_terminal,
    json_text,
    show_many,
    show_one,
    write,
)
from remuda.cli.progress import status_of, wait_until, wait_until_deleted
from remuda.cli.resources import INSTANCE, NETWORK, SECURITY_GROUP, SSH_CA, ResourceType, state_of
from remuda.kernel.errors import Forbidden, RemudaError, Unusable
from remuda.kernel.secrets import reveal

_WIDTHS = {"ID": 36, "STATUS": 14, "POWER": 10, "PRIVATE IP": 15, "PUBLIC IP": 15, "PREFIX": 18, "CREATED": 16}
"""Widths of the columns of a table that is written row by row."""
_OTHER_WIDTH = 20
_MAX_NAMES = 5
IN_USE = "is in use"
_USED_BY: Final[Mapping[str, Callable[[Any], Iterable[str | None]]]] = {
    NETWORK.name: lambda instance: [instance.status.network_id],
    SECURITY_GROUP.name: lambda instance: instance.spec.networking.security_groups if instance.spec.networking else (),
    SSH_CA.name: lambda instance: [instance.spec.ssh_certificate_authority_id],
}
"""Ids of the resources that an instance uses, by their type."""


async def find(
    api: ScopedSession, resource_type: ResourceType[ResourceT], name: str, more: Query | None = None
) -> ResourceT:
    return await _find(api, resource_type, resource_type.read_type, name, more)


async def find_named(
    api: ScopedSession, resource_type: ResourceType[Any], name: str, more: Query | None = None
) -> NamedResource:
    return await _find(api, resource_type, NamedResource, name, more)


async def find_id(api: ScopedSession, resource_type: ResourceType[Any], name: str, more: Query | None = None) -> str:
    return (await find_named(api, resource_type, name, more)).metadata.id


async def _find(
    api: ScopedSession, resource_type: ResourceType[Any], item_type: type[ResourceT], name: str, more: Query | None
) -> ResourceT:
    scope = api.scope.query if resource_type.is_in_projects else {}
    query = None if is_id(name) else {**scope, **(more or {})}
    return await find_resource(
        *(api.session, resource_type.service, resource_type.path, item_type, name, resource_type.name, query),
        paged=resource_type.is_in_projects,
    )


async def list_resources(
    api: ScopedSession,
    resource_type: ResourceType[ResourceT],
    output: Format,
    *,
    watch: bool = False,
    more: Query | None = None,
) -> None:
    """Print the resources of the project, or their changes."""
    query = {**api.scope.query, **(more or {})}
    if watch:
        await _watch(api, resource_type, query, output)
        return
    items = await api.session.list_all(resource_type.service, resource_type.path, resource_type.read_type, query)
    names = await _names_of(api, resource_type, items, resource_type.columns) if output == "table" else {}
    empty = f"No {resource_type.name} found."
    show_many(items, _named(resource_type.columns, names), output, empty=empty)


async def show_resource(
    api: ScopedSession,
    resource_type: ResourceType[ResourceT],
    item: ResourceT,
    output: Format,
    more: Mapping[str, str] | None = None,
) -> None:
    """Print one resource; `more` are further names by id."""
    names = await _names_of(api, resource_type, [item], resource_type.details) if output == "table" else {}
    others = await _namesakes(api, resource_type, item.metadata.name) if output == "name" else ()
    show_one(item, _named(resource_type.details, {**names, **(more or {})}), output, others)


async def _namesakes(api: ScopedSession, resource_type: ResourceType[Any], name: str) -> Sequence[NamedResource]:
    """Return the resources of the project with this name; other types have each name once."""
    if not resource_type.is_in_projects:
        return ()
    query = {**api.scope.query, "name": name}
    return await api.session.list_all(resource_type.service, resource_type.path, NamedResource, query)


async def create_resource(
    api: ScopedSession,
    resource_type: ResourceType[ResourceT],
    body: Any,
    *,
    wait: WaitOptions,
    duplicates: bool = True,
) -> ResourceT:
    """Create a resource, unless its name exists and may not be duplicated; return it at once or when provisioned."""
    if not duplicates:
        found = await api.session.list_all(resource_type.service, resource_type.path, ExistingResource, api.scope.query)
        reject_duplicate(body.metadata.name, found, resource_type.name)
    created = await api.session.send(
        "POST", resource_type.service, resource_type.path, body, response_type=resource_type.read_type
    )
    return await wait_provisioned(api, resource_type, created, wait=wait)


async def update_resource(
    api: ScopedSession, resource_type: ResourceType[ResourceT], name: str, body: Callable[[ResourceT], Any]
) -> ResourceT:
    """Send the body for the present resource, unless another client has changed the resource since it was read."""
    path = f"{resource_type.path}/{await find_id(api, resource_type, name)}"
    found, etag = await api.session.get_with_etag(resource_type.service, path, resource_type.read_type)
    return await api.session.send(
        "PUT", resource_type.service, path, body(found), response_type=resource_type.read_type, if_match=etag
    )


async def wait_provisioned(
    api: ScopedSession, resource_type: ResourceType[ResourceT], item: ResourceT, *, wait: WaitOptions
) -> ResourceT:
    """Return a resource as it is, or when it is provisioned and has not failed since."""
    if not wait.wait:
        return item
    path, name = f"{resource_type.path}/{item.metadata.id}", item.metadata.name
    return await wait_until(
        lambda: api.session.get(resource_type.service, path, resource_type.read_type),
        lambda now: state_of(now.metadata)[0] == "provisioned",
        lambda now: state_of(now.metadata)[0] == "error",
        limit_s=wait.limit_s,
        command=resource_type.show_command(name),
        remedy=resource_type.remedy.format(name=name),
    )


async def delete_resource(
    api: ScopedSession,
    resource_type: ResourceType[ResourceT],
    name: str,
    *,
    yes: bool,
    wait: WaitOptions,
    lost: str = "",
) -> None:
    """Delete a resource after confirmation, unless it was changed or replaced meanwhile."""
    path = f"{resource_type.path}/{await find_id(api, resource_type, name)}"
    item, etag = await api.session.get_with_etag(resource_type.service, path, resource_type.read_type)
    title = f"The {resource_type.name} {item.metadata.name}"
    confirm(f"{title} will be deleted{lost}. This cannot be undone.", yes=yes)
    await api.session.send("DELETE", resource_type.service, path, response_type=type(None), if_match=etag)
    if wait.wait:
        await wait_until_deleted(
            lambda: api.session.get_with_etag(resource_type.service, path, resource_type.read_type),
            lambda now: _is_other(now, (item, etag)),
            limit_s=wait.limit_s,
            command=resource_type.show_command(item.metadata.name),
            progress=lambda now: status_of(now[0]),
        )
    echo(f"{title} {'was deleted' if wait.wait else 'is being deleted'}.")


def confirm(question: str, *, yes: bool, ask: Callable[[str], str] | None = None) -> None:
    """Ask the user to confirm, and raise Unusable unless the response is yes."""
    if yes:
        return
    if ask is None and not is_terminal(sys.stdin):
        raise Unusable(f"{question} Confirmation needs a terminal: add --yes to confirm.")
    response = (ask or _prompt)(f"{question} Continue? [y/N] ")
    if response.strip().lower() not in {"y", "yes"}:
        raise Unusable("Nothing was done.")


def _prompt(question: str) -> str:
    """Read a line from the terminal. Ctrl-C interrupts it, although an event loop runs."""
    echo_error(question, end="")
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, handler)


def _is_other(now: tuple[ResourceT, str], deleted: tuple[ResourceT, str]) -> bool:
    """Tell whether a resource was created after the deletion. One with the same name has the same id."""
    (item, etag), (previous, previous_etag) = now, deleted
    if item.metadata.creation_time != previous.metadata.creation_time:
        return True
    return etag != previous_etag and not item.metadata.deletion_time  # both were created within a second


def _named(columns: Columns[ResourceT], names: Mapping[str, str]) -> Columns[ResourceT]:
    """Return columns that show names instead of ids, where they are known."""
    return {heading: cell if heading == "ID" else _with_names(cell, names) for heading, cell in columns.items()}


def _with_names(cell: Callable[[ResourceT], str], names: Mapping[str, str]) -> Callable[[ResourceT], str]:
    return lambda item: ", ".join(names.get(word, word) for word in cell(item).split(", "))


async def _names_of(
    api: ScopedSession, resource_type: ResourceType[ResourceT], items: Sequence[ResourceT], columns: Columns[ResourceT]
) -> dict[str, str]:
    """Return the names of the resources that these columns refer to by id, if they can be read and are unique."""
    unknown = {
        word
        for heading, cell in columns.items()
        for item in items
        for word in cell(item).split(", ")
        if heading != "ID" and is_id(word)
    }
    names: dict[str, str] = {}
    for each in resource_type.references:
        if unknown - names.keys():
            names |= await _names(api, each)
    return names


async def _names(api: ScopedSession, resource_type: ResourceType[Any]) -> dict[str, str]:
    is_paged = resource_type.is_in_projects
    query = api.scope.query if is_paged else None
    try:
        found = await api.session.list_all(
            resource_type.service, resource_type.path, NamedResource, query, paged=is_paged
        )
    except RemudaError:
        return {}
    names = Counter(each.metadata.name for each in found)
    return {each.metadata.id: each.metadata.name for each in found if names[each.metadata.name] == 1}


async def _watch(api: ScopedSession, resource_type: ResourceType[ResourceT], query: Query, output: Format) -> None:
    """Print the present resources, and then every change, until interrupted."""
    widths = [8, *(_WIDTHS.get(heading, _OTHER_WIDTH) for heading in resource_type.columns)]
    columns, names = resource_type.columns, dict[str, str]()
    if output == "table":
        write(as_rows([["CHANGE", *columns]], widths))
    changes = api.session.watch(resource_type.service, resource_type.path, resource_type.read_type, query)
    async with aclosing(changes):
        async for change, item in changes:
            if output == "table":
                names |= await _names_of(api, resource_type, [item], _named(columns, names))
                row = [change, *(cell(item) for cell in _named(columns, names).values())]
                write(as_rows([row], widths))
            elif output == "name":
                echo(f"{change} {item.metadata.name}")
            else:
                write(_document({"type": change, "object": item}, output))


def _document(value: Any, output: Format) -> str:
    """Return a change as one document of a stream: a line of JSON, or a YAML document."""
    if output == "yaml":
        return f"---\n{dump(value, output)}"
    return json_text(msgspec.json.encode(value, enc_hook=reveal)) + "\n"


@asynccontextmanager
async def naming_users(api: ScopedSession, resource_type: ResourceType[Any], name: str) -> AsyncIterator[None]:
    """Add the instances that use a resource to the error that rejects its deletion."""
    try:
        yield
    except Forbidden as error:
        if IN_USE in error.message and (names := await _users(api, resource_type, name)):
            error.message = error.message.replace(IN_USE, f"{IN_USE} by {_joined(names)}", 1)
        raise


async def _users(api: ScopedSession, resource_type: ResourceType[Any], name: str) -> list[str]:
    try:
        used = await find_id(api, resource_type, name)
        instances = await api.session.list_all(INSTANCE.service, INSTANCE.path, INSTANCE.read_type, api.scope.query)
    except RemudaError:
        return []
    return sorted(each.metadata.name for each in instances if used in _USED_BY[resource_type.name](each))


def _joined(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the instance {names[0]}"
    shown, left = ", ".join(names[:_MAX_NAMES]), len(names) - _MAX_NAMES
    return f"{len(names)} instances ({shown}{f' and {left} more' if left > 0 else ''})"
