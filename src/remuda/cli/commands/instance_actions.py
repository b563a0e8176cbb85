"""Commands for a running instance: power, console, SSH key, snapshot, timeline and explanation."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from remuda.cli.crud import find, find_id, find_named
from remuda.cli.lookup import DEFAULT_SCOPE, ScopedSession, ScopeOptions, is_id
from remuda.cli.offers import reject_duplicate_image, show_image, wait_ready
from remuda.cli.options import NEW_METADATA, NO_WAIT, Flag, NewMetadataOptions, Output, WaitOptions, checked_number
from remuda.cli.output import as_table, dump, echo, is_terminal, write
from remuda.cli.progress import status_of, wait_until
from remuda.cli.resources import INSTANCE, SSH_CA
from remuda.compute.history.schema import CauseRead, EventRead, ExplanationRead
from remuda.compute.instances.schema import (
    InstanceConsoleOutputRead,
    InstanceConsoleSessionRead,
    InstanceRead,
    InstanceSnapshotCreate,
    InstanceSshKeyRead,
)
from remuda.kernel.errors import Invalid, RemudaError, Unusable
from remuda.kernel.files import write_private
from remuda.resources.schema import ImageRead

_MAX_LINES = 100_000
_MAX_EVENTS = 1_000
_UID_LENGTH = 8
"""Enough of a uid to tell a few incarnations apart."""
ReadT = TypeVar("ReadT")


async def start(instance: str, /, *, wait: WaitOptions = NO_WAIT, scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Start a stopped instance.

    Example::

        remuda instance start web --wait

    :param instance: Name or id of the instance.
    """
    async with scope.open() as api:
        found = await find(api, INSTANCE, instance)
        try:
            await _send(api, found, "start")
        except RemudaError:
            if found.status.power_state == "Error":
                raise _broken(found) from None
            raise
        await _report_power(api, found, "Running", "is running" if wait.wait else "is being started", wait=wait)


async def stop(instance: str, /, *, wait: WaitOptions = NO_WAIT, scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Stop an instance, which keeps its disk, its addresses and its quota.

    Example::

        remuda instance stop web --wait

    :param instance: Name or id of the instance.
    """
    async with scope.open() as api:
        found = await _post(api, instance, "stop")
        await _report_power(api, found, "Stopped", "is stopped" if wait.wait else "is being stopped", wait=wait)


async def reboot(instance: str, /, *, hard: Flag = False, scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Reboot an instance.

    Example::

        remuda instance reboot web --hard

    :param instance: Name or id of the instance.
    :param hard: Cut the power instead of asking the operating system to reboot.
    """
    async with scope.open() as api:
        found = await _post(api, instance, "reboot", {"hard": "true"} if hard else {})
        echo(f"The instance {found.metadata.name} is being rebooted.")


async def snapshot(
    instance: str,
    name: str,
    /,
    *,
    metadata: NewMetadataOptions = NEW_METADATA,
    wait: WaitOptions = NO_WAIT,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    """Create an image from the disk of an instance.

    Example::

        remuda instance snapshot web web-backup --wait

    :param instance: Name or id of the instance.
    :param name: Name of the image.
    """
    async with scope.open() as api:
        found = await find(api, INSTANCE, instance)
        if not metadata.allow_duplicate:
            await reject_duplicate_image(api, found.status.region_id, name)
        body = InstanceSnapshotCreate(metadata=metadata.metadata(name))
        path = f"{INSTANCE.path}/{found.metadata.id}/snapshot"
        created = await api.session.send("POST", INSTANCE.service, path, body, response_type=ImageRead)
        region = found.status.region_id
        await show_image(api, region, await wait_ready(api, region, created, wait), output)


async def console(instance: str, /, *, open: Flag = False, scope: ScopeOptions = DEFAULT_SCOPE) -> None:  # noqa: A002  the option's name
    """Print the address of an instance's console, which gives access without further login.

    Example::

        remuda instance console web --open

    :param instance: Name or id of the instance.
    :param open: Open the console in a browser, too.
    """
    async with scope.open() as api:
        url = (await _get(api, instance, "consolesession", InstanceConsoleSessionRead)).url
    echo(url)
    if open:
        import webbrowser  # noqa: PLC0415  only needed here

        webbrowser.open(url)


async def output(instance: str, /, *, lines: int | None = None, scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Print the console output of an instance.

    Example::

        remuda instance output web --lines 20

    :param instance: Name or id of the instance.
    :param lines: Print only the last lines. The default is all that is stored.
    """
    query = {} if lines is None else {"length": str(checked_number("--lines", lines, _MAX_LINES))}
    async with scope.open() as api:
        text = (await _get(api, instance, "consoleoutput", InstanceConsoleOutputRead, query)).contents
    text = _printable(text) if is_terminal(sys.stdout) else text
    write(text if text.endswith("\n") or not text else f"{text}\n")


async def ssh_key(instance: str, /, *, save: Path | None = None, scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Print the private SSH key of an instance.

    Example::

        remuda instance ssh-key web --save web.key

    :param instance: Name or id of the instance.
    :param save: Write the key to this new file, for ssh -i, instead of printing it.
    """
    async with scope.open() as api:
        found = await find(api, INSTANCE, instance)
        if authority := found.spec.ssh_certificate_authority_id:
            raise Unusable(await _without_key(api, found.metadata.name, authority))
        path = f"{INSTANCE.path}/{found.metadata.id}/sshkey"
        key = (await api.session.get(INSTANCE.service, path, InstanceSshKeyRead)).private_key.reveal()
    if save is None:
        write(key if key.endswith("\n") else f"{key}\n")
        return
    try:
        if _is_taken(save, key):
            remedy = "give another name, or remove the file first"
            raise Invalid("--save", f"{save} exists and was not changed", remedy=remedy)
        write_private(save, key.encode())
    except OSError as error:
        cause = error.strerror or str(error)
        raise Invalid("--save", f"{save} cannot be written ({cause})", remedy="choose another path") from None
    echo(f"The key was written to {save}.")


async def _without_key(api: ScopedSession, instance: str, authority: str) -> str:
    """Return why an instance with an SSH certificate authority has no key; the authority's name may be unreadable."""
    with suppress(RemudaError):
        authority = (await find_named(api, SSH_CA, authority)).metadata.name
    return (
        f"The instance {instance} has no SSH key, because it trusts the SSH certificate authority {authority}: "
        "log in with a certificate that this authority has signed."
    )


def _is_taken(path: Path, key: str) -> bool:
    """Tell whether anything but this key exists at a path."""
    if path.is_file():
        return path.read_bytes().strip() != key.encode().strip()
    return os.path.lexists(path)


async def _post(api: ScopedSession, instance: str, action: str, query: dict[str, str] | None = None) -> InstanceRead:
    found = await find(api, INSTANCE, instance)
    await _send(api, found, action, query)
    return found


async def _send(api: ScopedSession, found: InstanceRead, action: str, query: dict[str, str] | None = None) -> None:
    path = f"{INSTANCE.path}/{found.metadata.id}/{action}"
    await api.session.send("POST", INSTANCE.service, path, response_type=type(None), query=query)


def _broken(found: InstanceRead) -> Unusable:
    """Return the error for an instance that cannot be started because its server has failed."""
    name = found.metadata.name
    return Unusable(
        f"The instance {name} is broken and cannot be started: remuda instance explain {name} shows the cause, and "
        f"remuda instance rebuild {name} creates its root disk again."
    )


async def _get(
    api: ScopedSession, instance: str, what: str, response_type: type[ReadT], query: dict[str, str] | None = None
) -> ReadT:
    path = f"{INSTANCE.path}/{await find_id(api, INSTANCE, instance)}/{what}"
    return await api.session.get(INSTANCE.service, path, response_type, query)


async def _report_power(
    api: ScopedSession, instance: InstanceRead, state: str, result: str, *, wait: WaitOptions
) -> None:
    name = instance.metadata.name
    if instance.status.power_state == state:
        result = f"is already {state.lower()}"
    elif wait.wait:
        await wait_until(
            lambda: api.session.get(INSTANCE.service, f"{INSTANCE.path}/{instance.metadata.id}", InstanceRead),
            lambda now: now.status.power_state == state,
            lambda now: now.status.power_state == "Error",
            limit_s=wait.limit_s,
            command=INSTANCE.show_command(name),
            progress=_power_of,
            remedy=INSTANCE.remedy.format(name=name),
        )
    echo(f"The instance {name} {result}.")


def _power_of(instance: InstanceRead) -> str:
    """Return the power state of an instance, or the reason for which it has failed."""
    power = instance.status.power_state
    return status_of(instance) if power == "Error" else f"{instance.metadata.name} is {power or 'unknown'}"


def _printable(text: str) -> str:
    """Return a text without control characters, which could do harm in the terminal."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")


async def timeline(
    instance: str, /, *, limit: int = 100, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """Show the events of an instance and their causes, the latest last.

    Example::

        remuda instance timeline web --limit 20

    :param instance: Name or id of the instance; of a deleted one, its id.
    :param limit: Show this many of the latest events.
    """
    checked_number("--limit", limit, _MAX_EVENTS)
    async with scope.open() as api:
        path = f"{INSTANCE.path}/{await _id(api, instance)}/timeline"
        events = await _latest(api, path, limit, is_table=output == "table")
    if output == "name":
        write("".join(f"{each.event}\n" for each in events))
    elif output != "table":
        write(dump(events, output))
    else:
        write(_table(events))


async def explain(instance: str, /, *, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Explain the state of an instance: what it waits for, since when, and who can unblock it.

    Example::

        remuda instance explain web

    :param instance: Name or id of the instance; of a deleted one, its id.
    """
    async with scope.open() as api:
        path = f"{INSTANCE.path}/{await _id(api, instance)}/explain"
        found = await api.session.get(INSTANCE.service, path, ExplanationRead)
    if output == "name":
        write(f"{found.state}\n")
    elif output != "table":
        write(dump(found, output))
    else:
        write("".join(f"{line}\n" for line in found.messages))


async def _latest(api: ScopedSession, path: str, limit: int, *, is_table: bool) -> Sequence[EventRead]:
    """Return the latest events in order. In a table, older events take the place of redundant ones."""
    count = limit
    while True:
        events = await api.session.get(INSTANCE.service, path, list[EventRead], {"limit": str(count)})
        kept = [each for each in events if not (is_table and _is_redundant(each))]
        if len(kept) >= limit or len(events) < count or count == _MAX_EVENTS:
            return kept[:limit][::-1]
        count = min(2 * count, _MAX_EVENTS)


def _table(events: Sequence[EventRead]) -> str:
    """Return a table of events, with a column for the incarnation if there are several."""
    if not events:
        return "No events found.\n"
    headings = ["TIME (UTC)", "CAUSE", "EVENT"]
    rows = [[f"{each.time:%Y-%m-%d %H:%M:%S}", _cause(each.cause), each.message] for each in events]
    incarnations = [each.incarnation[:_UID_LENGTH] for each in events]
    if len(set(incarnations)) > 1:
        headings.insert(1, "INCARNATION")
        for row, incarnation in zip(rows, incarnations, strict=True):
            row.insert(1, incarnation)
    return as_table(headings, rows)


async def _id(api: ScopedSession, instance: str) -> str:
    return instance if is_id(instance) else await find_id(api, INSTANCE, instance)


def _cause(cause: CauseRead) -> str:
    """Return the cause of an event in a word or two. The requester is part of the event's text."""
    match cause.type:
        case "generation":
            return f"generation {cause.generation or ''}".strip()
        case other:
            return str(other)


def _is_redundant(event: EventRead) -> bool:
    """Tell whether an event only repeats, for programs, the events of a rebuild."""
    is_rebuild = event.facts.get("type") == "Available" and event.reason == "Rebuilding"
    has_ended = event.facts.get("type") == "Rebuilding" and event.facts.get("status") == "False"
    return is_rebuild or has_ended
