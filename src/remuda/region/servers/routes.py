"""Routes of servers, which only services have permission to call, on behalf of users."""

from collections.abc import Callable
from functools import partial

from remuda.http.crud import crud
from remuda.http.routes import AnyRoute, Route
from remuda.region.images.schema import ServerSnapshotCreate
from remuda.region.names import permission
from remuda.region.servers import rules, schema
from remuda.region.servers.actions import ServerActions
from remuda.region.servers.service import Servers
from remuda.resources.query import NetworkedQuery
from remuda.resources.schema import ImageRead

SERVERS = "/api/v2/servers"
_SERVER = f"{SERVERS}/{{serverID}}"

_route: Callable[..., AnyRoute] = partial(Route, scope="project", path_type=schema.ServerPath)
_action = partial(_route, method="POST", permission=permission("servers", "update"), success=202, service=ServerActions)

ROUTES: list[AnyRoute] = [
    *crud(
        Servers,
        path=SERVERS,
        item=schema.ServerPath,
        name="server",
        noun="a server",
        permission=partial(permission, "servers"),
        view=rules.SERVER_VIEW,
        query=NetworkedQuery,
        create=schema.ServerCreate,
        update=schema.ServerUpdate,
        read=schema.ServerRead,
        descriptions={
            "update": "Another image rebuilds the server: data on its root disk is lost; its port, addresses and id "
            "are kept."
        },
        overrides={  # the secret is the user data
            "create": {"has_secret": True, "repeat_calls": Servers.get_created},
            "update": {"has_secret": True, "repeat_calls": Servers.get, "query_type": schema.RevisionQuery},
        },
    ),
    _route(
        method="POST",
        path=f"{_SERVER}/replace",
        name="replace_server",
        summary="Replace a server",
        description="The new server gets the port of the old one, with its addresses and MAC address; everything else "
        "is new. Only services may do this. 422 if another flavor is requested that has no free capacity: nothing is "
        "changed then.",
        permission=permission("servers", "update"),
        query_type=schema.RevisionQuery,
        body_type=schema.ReplaceWrite,
        response_type=schema.ServerRead,
        success=202,
        is_conditional=True,
        has_secret=True,  # the user data
        service=Servers,
        calls=Servers.replace,
        repeat_calls=Servers.get,
        view=rules.SERVER_VIEW,
    ),
    _action(path=f"{_SERVER}/start", name="start_server", summary="Start a stopped server", calls=ServerActions.start),
    _action(path=f"{_SERVER}/stop", name="stop_server", summary="Stop a running server", calls=ServerActions.stop),
    _action(
        path=f"{_SERVER}/softreboot",
        name="soft_reboot_server",
        summary="Reboot a server through its operating system",
        calls=ServerActions.soft_reboot,
    ),
    _action(
        path=f"{_SERVER}/hardreboot",
        name="hard_reboot_server",
        summary="Reboot a server by a power cycle",
        calls=ServerActions.hard_reboot,
    ),
    _route(
        method="POST",
        path=f"{_SERVER}/snapshot",
        name="snapshot_server",
        summary="Create an image of a server's disk",
        description="The image belongs to the server's organization, in which the caller needs permission to create "
        "images.",
        permission=permission("servers", "read"),
        body_type=ServerSnapshotCreate,
        response_type=ImageRead,
        success=201,
        service=ServerActions,
        calls=ServerActions.snapshot,
    ),
    _route(
        method="GET",
        path=f"{_SERVER}/consolesessions",
        name="open_server_console",
        summary="Open a console session of a server",
        permission=permission("servers", "update"),
        response_type=schema.ServerConsoleSessionRead,
        has_secret=True,
        service=ServerActions,
        calls=ServerActions.open_console,
    ),
    _route(
        method="GET",
        path=f"{_SERVER}/consoleoutput",
        name="get_server_console_output",
        summary="Read the console output of a server",
        permission=permission("servers", "read"),
        query_type=schema.ConsoleQuery,
        response_type=schema.ServerConsoleOutputRead,
        service=ServerActions,
        calls=ServerActions.console_output,
    ),
    _route(
        method="GET",
        path=f"{_SERVER}/sshkey",
        name="get_server_ssh_key",
        summary="Read the private SSH key of a server",
        permission=permission("servers", "update"),
        response_type=schema.ServerSshKeyRead,
        has_secret=True,
        service=ServerActions,
        calls=ServerActions.ssh_key,
    ),
]
