"""Routes of servers, which only services have permission to call, on behalf of users."""

from collections.abc import Callable
from functools import partial
from typing import Any

from remuda.http.crud import crud
from remuda.http.routes import AnyRoute, Route
from remuda.region.images.schema import SnapshotCreate
from remuda.region.names import permission
from remuda.region.servers import rules, schema
from remuda.region.servers.actions import ServerActions
from remuda.region.servers.service import Servers
from remuda.resources.query import NetworkedQuery
from remuda.resources.schema import ImageRead

SERVERS = "/api/v2/servers"
"""All servers."""
_SERVER = f"{SERVERS}/{{serverID}}"


def _power_route(segment: str, name: str, summary: str, calls: Callable[..., Any]) -> AnyRoute:
    return Route(
        method="POST",
        path=f"{_SERVER}/{segment}",
        name=name,
        summary=summary,
        scope="project",
        permission=permission("servers", "update"),
        path_type=schema.ServerPath,
        success=202,
        service=ServerActions,
        calls=calls,
    )


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
    Route(
        method="POST",
        path=f"{_SERVER}/replace",
        name="replace_server",
        summary="Replace a server",
        description="The new server gets the port of the old one, with its addresses and MAC address; everything else "
        "is new. Only services may do this. 422 if another flavor is requested that has no free capacity: nothing is "
        "changed then.",
        scope="project",
        permission=permission("servers", "update"),
        path_type=schema.ServerPath,
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
    _power_route("start", "start_server", "Start a stopped server", ServerActions.start),
    _power_route("stop", "stop_server", "Stop a running server", ServerActions.stop),
    _power_route(
        "softreboot", "soft_reboot_server", "Reboot a server through its operating system", ServerActions.soft_reboot
    ),
    _power_route("hardreboot", "hard_reboot_server", "Reboot a server by a power cycle", ServerActions.hard_reboot),
    Route(
        method="POST",
        path=f"{_SERVER}/snapshot",
        name="snapshot_server",
        summary="Create an image of a server's disk",
        description="The image belongs to the server's organization, in which the caller needs permission to create "
        "images.",
        scope="project",
        permission=permission("servers", "read"),
        path_type=schema.ServerPath,
        body_type=SnapshotCreate,
        response_type=ImageRead,
        success=201,
        service=ServerActions,
        calls=ServerActions.snapshot,
    ),
    Route(
        method="GET",
        path=f"{_SERVER}/consolesessions",
        name="open_server_console",
        summary="Open a console session of a server",
        scope="project",
        permission=permission("servers", "update"),
        path_type=schema.ServerPath,
        response_type=schema.ConsoleSessionRead,
        has_secret=True,
        service=ServerActions,
        calls=ServerActions.open_console,
    ),
    Route(
        method="GET",
        path=f"{_SERVER}/consoleoutput",
        name="get_server_console_output",
        summary="Read the console output of a server",
        scope="project",
        permission=permission("servers", "read"),
        path_type=schema.ServerPath,
        query_type=schema.ConsoleQuery,
        response_type=schema.ConsoleOutputRead,
        service=ServerActions,
        calls=ServerActions.console_output,
    ),
    Route(
        method="GET",
        path=f"{_SERVER}/sshkey",
        name="get_server_ssh_key",
        summary="Read the private SSH key of a server",
        scope="project",
        permission=permission("servers", "update"),
        path_type=schema.ServerPath,
        response_type=schema.SshKeyRead,
        has_secret=True,
        service=ServerActions,
        calls=ServerActions.ssh_key,
    ),
]
"""The routes of `Servers` and `ServerActions`."""
