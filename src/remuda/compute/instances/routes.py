"""The room's routes, but for the change of an instance (`update_api`).

`routes` go to `Instances`, and `verb_routes` to `Verbs`.
"""

from typing import Any

from remuda.compute.instances import handlers
from remuda.compute.instances import schema as wire
from remuda.compute.names import INSTANCE, INSTANCES, InstancePath
from remuda.compute.permissions import permission
from remuda.http.routes import AnyRoute, Route
from remuda.resources.query import NetworkedQuery
from remuda.resources.schema import ImageRead

_ODD = "It is done to exactly one server: if there is none, or several, nothing is done, and the answer is 500."


def routes() -> list[AnyRoute]:
    """Return those of instances."""
    return [
        Route(
            method="GET",
            path=INSTANCES,
            name="list_instances",
            summary="List the instances that the caller may see",
            scope="project",
            permission=permission("instances", "read"),
            query_type=NetworkedQuery,
            answer_type=list[wire.InstanceRead],
            errors=(404,),
            handler=handlers.list_all,
        ),
        Route(
            method="POST",
            path=INSTANCES,
            name="create_instance",
            summary="Make an instance",
            description="Its id follows from its network and its name, which no other on that network has.",
            scope="project",
            permission=permission("instances", "create"),
            body_type=wire.InstanceCreate,
            answer_type=wire.InstanceRead,
            success=201,
            errors=(404,),
            is_idempotent=True,  # an operation is done once, and no answer with user data in it is to be kept
            handler=handlers.create,
        ),
        Route(
            method="GET",
            path=INSTANCE,
            name="get_instance",
            summary="Read an instance",
            scope="project",
            permission=permission("instances", "read"),
            path_type=InstancePath,
            answer_type=wire.InstanceRead,
            handler=handlers.get,
        ),
        Route(
            method="DELETE",
            path=INSTANCE,
            name="delete_instance",
            summary="Give an instance up",
            scope="project",
            permission=permission("instances", "delete"),
            path_type=InstancePath,
            success=202,
            is_conditional=True,
            handler=handlers.delete,
        ),
    ]


def verb_routes() -> list[AnyRoute]:
    """Return those of what can be done to an instance."""
    return [*_power(), *_access()]


def _power() -> list[AnyRoute]:
    update: dict[str, Any] = {
        "method": "POST",
        "scope": "project",
        "permission": permission("instances", "update"),
        "path_type": InstancePath,
        "description": _ODD,
    }
    return [
        Route(
            **update,
            path=f"{INSTANCE}/start",
            name="start_instance",
            summary="Start a stopped instance",
            success=202,
            handler=handlers.start,
        ),
        Route(
            **update,
            path=f"{INSTANCE}/stop",
            name="stop_instance",
            summary="Stop a running instance",
            success=202,
            handler=handlers.stop,
        ),
        Route(
            **update,
            path=f"{INSTANCE}/reboot",
            name="reboot_instance",
            summary="Reboot a running instance",
            query_type=wire.RebootQuery,
            success=202,
            handler=handlers.reboot,
        ),
        Route(
            **update,
            path=f"{INSTANCE}/snapshot",
            name="snapshot_instance",
            summary="Make an image of an instance",
            body_type=wire.SnapshotCreate,
            answer_type=ImageRead,
            success=201,
            handler=handlers.snapshot,
        ),
    ]


def _access() -> list[AnyRoute]:
    look: dict[str, Any] = {"method": "GET", "scope": "project", "path_type": InstancePath, "description": _ODD}
    return [
        Route(
            **look,
            path=f"{INSTANCE}/sshkey",
            name="get_instance_ssh_key",
            summary="Show the key that opens an instance",
            permission=permission("instances", "update"),
            answer_type=wire.SshKeyRead,
            holds_secret=True,
            handler=handlers.ssh_key,
        ),
        Route(
            **look,
            path=f"{INSTANCE}/consolesession",
            name="open_instance_console",
            summary="Let a browser see an instance's screen",
            permission=permission("instances", "update"),
            answer_type=wire.ConsoleSessionRead,
            holds_secret=True,
            handler=handlers.open_console,
        ),
        Route(
            **look,
            path=f"{INSTANCE}/consoleoutput",
            name="get_instance_console_output",
            summary="Show what an instance wrote to its console",
            permission=permission("instances", "read"),
            query_type=wire.ConsoleQuery,
            answer_type=wire.ConsoleOutputRead,
            handler=handlers.console_output,
        ),
    ]
