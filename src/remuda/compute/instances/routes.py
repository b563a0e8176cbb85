"""Routes of instances."""

from collections.abc import Callable
from functools import partial

from remuda.compute.instances import rules, schema
from remuda.compute.instances.actions import Actions
from remuda.compute.instances.service import Instances
from remuda.compute.instances.updates import Updates
from remuda.compute.names import INSTANCE, INSTANCES, InstancePath, permission
from remuda.compute.plans.schema import PlanErrorBody, PlanRead
from remuda.http.crud import crud
from remuda.http.routes import AnyRoute, OtherResponseType, Route
from remuda.resources.query import NetworkedQuery
from remuda.resources.schema import ImageRead

_UPDATE: AnyRoute = Route(
    method="PUT",
    path=INSTANCE,
    name="update_instance",
    summary="Update an instance, or plan its update",
    description="A different image rebuilds the server. A different flavor or SSH certificate authority replaces it. "
    "Both lose the root disk and keep the addresses and the MAC address. Different user data takes effect with the "
    "next rebuild or replacement. With dryRun the response is the plan. With the hash of a plan, exactly that plan is "
    "carried out, or the response is 409 with the present plan. If the instance or its project's policy demands a "
    "plan, the response to a request without a hash is 409 with the plan.",
    scope="project",
    permission=permission("instances", "update"),
    path_type=InstancePath,
    query_type=schema.UpdateQuery,
    body_type=schema.InstanceUpdate,
    response_type=schema.InstanceRead,
    success=202,
    other=OtherResponseType(
        status=200, response_type=PlanRead, about="With dryRun: the plan. The instance is not updated."
    ),
    error_bodies={409: PlanErrorBody},
    is_conditional=True,
    has_secret=True,  # its user data
    view=rules.INSTANCE_VIEW,
    service=Updates,
    calls=Updates.update,
    repeat_calls=Updates.repeat,
)


_REBUILD: AnyRoute = Route(
    method="POST",
    path=f"{INSTANCE}/rebuild",
    name="rebuild_instance",
    summary="Rebuild an instance from its image, or plan that",
    description="The server gets a new root disk from the image that the instance has, as with an update to another "
    "image, and keeps its addresses. A stopped instance stays stopped. A server that cannot be rebuilt, because it "
    "never started or a rebuild failed, is replaced. With dryRun the response is the plan; plans are required as for "
    "updates.",
    scope="project",
    permission=permission("instances", "update"),
    path_type=InstancePath,
    query_type=schema.UpdateQuery,
    response_type=schema.InstanceRead,
    success=202,
    other=OtherResponseType(
        status=200, response_type=PlanRead, about="With dryRun: the plan. The instance is not rebuilt."
    ),
    error_bodies={409: PlanErrorBody},
    is_conditional=True,
    has_secret=True,  # its user data
    view=rules.INSTANCE_VIEW,
    service=Updates,
    calls=Updates.rebuild,
    repeat_calls=Updates.repeat_rebuild,
)

_action: Callable[..., AnyRoute] = partial(
    Route,
    method="POST",
    scope="project",
    permission=permission("instances", "update"),
    path_type=InstancePath,
    description="The action needs exactly one server. If the instance has none or several, nothing is done, and the "
    "response is 500.",
    service=Actions,
)

_ACTIONS = [
    _action(
        path=f"{INSTANCE}/start",
        name="start_instance",
        summary="Start a stopped instance",
        success=202,
        calls=Actions.start,
    ),
    _action(
        path=f"{INSTANCE}/stop",
        name="stop_instance",
        summary="Stop a running instance",
        success=202,
        calls=Actions.stop,
    ),
    _action(
        path=f"{INSTANCE}/reboot",
        name="reboot_instance",
        summary="Reboot a running instance",
        query_type=schema.RebootQuery,
        success=202,
        calls=Actions.reboot,
    ),
    _action(
        path=f"{INSTANCE}/snapshot",
        name="snapshot_instance",
        summary="Create an image of an instance",
        body_type=schema.InstanceSnapshotCreate,
        response_type=ImageRead,
        success=201,
        calls=Actions.snapshot,
    ),
    _action(
        method="GET",
        path=f"{INSTANCE}/sshkey",
        name="get_instance_ssh_key",
        summary="Read the private SSH key of an instance",
        response_type=schema.InstanceSshKeyRead,
        has_secret=True,
        calls=Actions.ssh_key,
    ),
    _action(
        method="GET",
        path=f"{INSTANCE}/consolesession",
        name="open_instance_console",
        summary="Open the console of an instance in a browser",
        response_type=schema.InstanceConsoleSessionRead,
        has_secret=True,
        calls=Actions.open_console,
    ),
    _action(
        method="GET",
        path=f"{INSTANCE}/consoleoutput",
        name="get_instance_console_output",
        summary="Read the console output of an instance",
        permission=permission("instances", "read"),
        query_type=schema.ConsoleQuery,
        response_type=schema.InstanceConsoleOutputRead,
        calls=Actions.console_output,
    ),
]

ROUTES = [
    *crud(
        Instances,
        path=INSTANCES,
        item=InstancePath,
        name="instance",
        noun="an instance",
        permission=partial(permission, "instances"),
        view=rules.INSTANCE_VIEW,
        query=NetworkedQuery,
        create=schema.InstanceCreate,
        read=schema.InstanceRead,
        descriptions={"create": "The id is derived from the network and the name, which is unique on the network."},
        overrides={
            "list": {"errors": (404,)},
            "create": {"is_idempotent": True},  # an operation runs once, and a response with user data is not stored
        },
    ),
    _UPDATE,
    _REBUILD,
    *_ACTIONS,
]
