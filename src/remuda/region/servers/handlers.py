"""The room's handlers: each asks the service and renders what it says."""

from typing import Any

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import Call, Nothing
from remuda.region.kinds.servers import Server
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
