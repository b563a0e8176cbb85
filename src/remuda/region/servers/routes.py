"""The room's routes. Tenants do not call them: the services that act for them do.

The room's handlers: each asks the service and renders what it says.
"""

from typing import Any

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.region.kinds.servers import Server
from remuda.region.names import permission
from remuda.region.servers import rules
from remuda.region.servers import schema as wire
from remuda.region.servers.facade import ServerRoom
from remuda.resources.query import NetworkedQuery

_OnServer = Call[wire.ServerPath, Nothing, Nothing]


async def list_all(
    room: ServerRoom, call: Call[Nothing, NetworkedQuery, Nothing]
) -> Collection[Server, list[wire.ServerRead]]:
    return await room.servers.list(call.context, call.query)


async def create(room: ServerRoom, call: Call[Nothing, Nothing, wire.ServerCreate]) -> Shown[wire.ServerRead]:
    return Shown(rules.SERVER_VIEW, await room.servers.create(call.context, call.body))


async def tell_created(room: ServerRoom, call: Call[Nothing, Nothing, wire.ServerCreate]) -> Shown[wire.ServerRead]:
    """Answer a create that was carried out before: how the server stands now that it made."""
    return Shown(rules.SERVER_VIEW, await room.servers.get_made(call.context, call.body))


async def get(room: ServerRoom, call: _OnServer) -> Rendered[wire.ServerRead]:
    found = await room.servers.get(call.context, call.path.server)
    return untag(await room.servers.store.get_view(Server, found.name, rules.SERVER_VIEW))


async def update(
    room: ServerRoom, call: Call[wire.ServerPath, wire.RevisionQuery, wire.ServerUpdate]
) -> Shown[wire.ServerRead]:
    server, revision = call.path.server, call.query.revision
    return Shown(rules.SERVER_VIEW, await room.servers.update(call.context, server, call.body, revision=revision))


async def replace(
    room: ServerRoom, call: Call[wire.ServerPath, wire.RevisionQuery, wire.ReplaceWrite]
) -> Shown[wire.ServerRead]:
    """Put another server in the place of one."""
    server, revision = call.path.server, call.query.revision
    return Shown(rules.SERVER_VIEW, await room.servers.replace(call.context, server, call.body, revision=revision))


async def tell_again(room: ServerRoom, call: Call[wire.ServerPath, wire.RevisionQuery, Any]) -> Shown[wire.ServerRead]:
    """Answer a change that was made before: how the server stands now."""
    return Shown(rules.SERVER_VIEW, await room.servers.get(call.context, call.path.server))


async def delete(room: ServerRoom, call: _OnServer) -> None:
    """Give a server up."""
    await room.servers.delete(call.context, call.path.server)


async def start(room: ServerRoom, call: _OnServer) -> None:
    await room.verbs.start(call.context, call.path.server)


async def stop(room: ServerRoom, call: _OnServer) -> None:
    await room.verbs.stop(call.context, call.path.server)


async def soft_reboot(room: ServerRoom, call: _OnServer) -> None:
    """Ask a server's system to reboot."""
    await room.verbs.reboot(call.context, call.path.server, "soft")


async def hard_reboot(room: ServerRoom, call: _OnServer) -> None:
    """Cut a server's power, and give it back."""
    await room.verbs.reboot(call.context, call.path.server, "hard")


async def open_console(room: ServerRoom, call: _OnServer) -> wire.ConsoleSessionRead:
    """Let a browser see a server's screen."""
    return wire.ConsoleSessionRead(url=await room.verbs.open_console(call.context, call.path.server))


async def console_output(
    room: ServerRoom, call: Call[wire.ServerPath, wire.ConsoleQuery, Nothing]
) -> wire.ConsoleOutputRead:
    """Show what a server wrote to its console."""
    contents = await room.verbs.console_output(call.context, call.path.server, call.query.length)
    return wire.ConsoleOutputRead(contents=contents)


async def ssh_key(room: ServerRoom, call: _OnServer) -> wire.SshKeyRead:
    """Show the key that opens a server."""
    return wire.SshKeyRead(private_key=await room.verbs.ssh_key(call.context, call.path.server))


SERVERS = "/api/v2/servers"
"""All servers."""
_SERVER = f"{SERVERS}/{{serverID}}"


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [*_servers(), *_power(), *_access()]


def _servers() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=SERVERS,
            name="list_servers",
            summary="List the servers that the caller may see",
            scope="project",
            permission=permission("servers", "read"),
            query_type=NetworkedQuery,
            answer_type=list[wire.ServerRead],
            handler=list_all,
        ),
        Route(
            method="POST",
            path=SERVERS,
            name="create_server",
            summary="Make a server",
            scope="project",
            permission=permission("servers", "create"),
            body_type=wire.ServerCreate,
            answer_type=wire.ServerRead,
            success=201,
            errors=(404,),
            holds_secret=True,  # its user data
            repeated=tell_created,
            handler=create,
        ),
        Route(
            method="GET",
            path=_SERVER,
            name="get_server",
            summary="Read a server",
            scope="project",
            permission=permission("servers", "read"),
            path_type=wire.ServerPath,
            answer_type=wire.ServerRead,
            handler=get,
        ),
        Route(
            method="PUT",
            path=_SERVER,
            name="update_server",
            summary="Change a server",
            scope="project",
            permission=permission("servers", "update"),
            path_type=wire.ServerPath,
            query_type=wire.RevisionQuery,
            body_type=wire.ServerUpdate,
            answer_type=wire.ServerRead,
            success=202,
            is_conditional=True,
            holds_secret=True,  # its user data
            repeated=tell_again,
            description="Another image rebuilds it: the root disk is lost, and port, addresses and id stay.",
            handler=update,
        ),
        Route(
            method="DELETE",
            path=_SERVER,
            name="delete_server",
            summary="Give a server up",
            scope="project",
            permission=permission("servers", "delete"),
            path_type=wire.ServerPath,
            success=202,
            is_conditional=True,
            handler=delete,
        ),
        Route(
            method="POST",
            path=f"{_SERVER}/replace",
            name="replace_server",
            summary="Put another server in the place of one",
            scope="project",
            permission=permission("servers", "update"),
            path_type=wire.ServerPath,
            query_type=wire.RevisionQuery,
            body_type=wire.ReplaceWrite,
            answer_type=wire.ServerRead,
            success=202,
            is_conditional=True,
            holds_secret=True,  # its user data
            repeated=tell_again,
            description="It gets the port, with addresses and MAC; everything else is new. Only services may. "
            "422 if another flavor is asked for of which none is free: nothing is changed then.",
            handler=replace,
        ),
    ]


def _power() -> list[AnyRoute]:
    return [
        Route(
            method="POST",
            path=f"{_SERVER}/start",
            name="start_server",
            summary="Start a stopped server",
            scope="project",
            permission=permission("servers", "update"),
            path_type=wire.ServerPath,
            success=202,
            handler=start,
        ),
        Route(
            method="POST",
            path=f"{_SERVER}/stop",
            name="stop_server",
            summary="Stop a running server",
            scope="project",
            permission=permission("servers", "update"),
            path_type=wire.ServerPath,
            success=202,
            handler=stop,
        ),
        Route(
            method="POST",
            path=f"{_SERVER}/softreboot",
            name="soft_reboot_server",
            summary="Ask a server's system to reboot",
            scope="project",
            permission=permission("servers", "update"),
            path_type=wire.ServerPath,
            success=202,
            handler=soft_reboot,
        ),
        Route(
            method="POST",
            path=f"{_SERVER}/hardreboot",
            name="hard_reboot_server",
            summary="Cut a server's power, and give it back",
            scope="project",
            permission=permission("servers", "update"),
            path_type=wire.ServerPath,
            success=202,
            handler=hard_reboot,
        ),
    ]


def _access() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=f"{_SERVER}/consolesessions",
            name="open_server_console",
            summary="Let a browser see a server's screen",
            scope="project",
            permission=permission("servers", "update"),
            path_type=wire.ServerPath,
            answer_type=wire.ConsoleSessionRead,
            holds_secret=True,
            handler=open_console,
        ),
        Route(
            method="GET",
            path=f"{_SERVER}/consoleoutput",
            name="get_server_console_output",
            summary="Show what a server wrote to its console",
            scope="project",
            permission=permission("servers", "read"),
            path_type=wire.ServerPath,
            query_type=wire.ConsoleQuery,
            answer_type=wire.ConsoleOutputRead,
            handler=console_output,
        ),
        Route(
            method="GET",
            path=f"{_SERVER}/sshkey",
            name="get_server_ssh_key",
            summary="Show the key that opens a server",
            scope="project",
            permission=permission("servers", "update"),
            path_type=wire.ServerPath,
            answer_type=wire.SshKeyRead,
            holds_secret=True,
            handler=ssh_key,
        ),
    ]
