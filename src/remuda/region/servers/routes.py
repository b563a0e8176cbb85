"""The room's routes. Tenants do not call them: the services that act for them do."""

from remuda.http.routes import AnyRoute, Route
from remuda.region.permissions import permission
from remuda.region.servers import handlers
from remuda.region.servers import schema as wire
from remuda.resources.query import NetworkedQuery

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
            handler=handlers.list_all,
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
            repeated=handlers.tell_created,
            handler=handlers.create,
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
            handler=handlers.get,
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
            repeated=handlers.tell_again,
            description="Another image rebuilds it: the root disk is lost, and port, addresses and id stay.",
            handler=handlers.update,
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
            handler=handlers.delete,
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
            repeated=handlers.tell_again,
            description="It gets the port, with addresses and MAC; everything else is new. Only services may. "
            "422 if another flavor is asked for of which none is free: nothing is changed then.",
            handler=handlers.replace,
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
            handler=handlers.start,
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
            handler=handlers.stop,
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
            handler=handlers.soft_reboot,
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
            handler=handlers.hard_reboot,
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
            handler=handlers.open_console,
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
            handler=handlers.console_output,
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
            handler=handlers.ssh_key,
        ),
    ]
