"""The room's routes, but for the change of an instance (`update_api`).

`routes` go to `Instances`, and `verb_routes` to `Verbs`.

The room's handlers: each asks the service and renders what it says.

The handlers of a change: each asks the service and renders what it says.

The route that changes an instance, or tells what that would do. It goes to `Updates`.
"""

from typing import Annotated, Any

import msgspec

from remuda.compute.instances import rules
from remuda.compute.instances import schema as wire
from remuda.compute.instances.actions import Verbs
from remuda.compute.instances.service import Instances
from remuda.compute.instances.updates import Updates
from remuda.compute.kinds import ComputeInstance
from remuda.compute.names import INSTANCE, INSTANCES, InstancePath, permission
from remuda.compute.plans.schema import PlanHash, PlanRead, PlanRefusal
from remuda.http.responses import Collection, Other, Rendered, Shown, untag
from remuda.http.routes import AnyRoute, Call, Nothing, OtherAnswer, Parameters, Route
from remuda.resources.query import NetworkedQuery
from remuda.resources.schema import ImageRead

_OnInstance = Call[InstancePath, Nothing, Nothing]


async def list_all(
    instances: Instances, call: Call[Nothing, NetworkedQuery, Nothing]
) -> Collection[ComputeInstance, list[wire.InstanceRead]]:
    return await instances.list(call.context, call.query)


async def create(instances: Instances, call: Call[Nothing, Nothing, wire.InstanceCreate]) -> Shown[wire.InstanceRead]:
    return Shown(rules.INSTANCE_VIEW, await instances.create(call.context, call.body))


async def get(instances: Instances, call: _OnInstance) -> Rendered[wire.InstanceRead]:
    found = await instances.get(call.context, call.path.instance)
    return untag(await instances.store.get_view(ComputeInstance, found.name, rules.INSTANCE_VIEW))


async def delete(instances: Instances, call: _OnInstance) -> None:
    """Give an instance up."""
    await instances.delete(call.context, call.path.instance)


async def start(verbs: Verbs, call: _OnInstance) -> None:
    await verbs.start(call.context, call.path.instance)


async def stop(verbs: Verbs, call: _OnInstance) -> None:
    await verbs.stop(call.context, call.path.instance)


async def reboot(verbs: Verbs, call: Call[InstancePath, wire.RebootQuery, Nothing]) -> None:
    await verbs.reboot(call.context, call.path.instance, hard=call.query.hard)


async def snapshot(verbs: Verbs, call: Call[InstancePath, Nothing, wire.SnapshotCreate]) -> ImageRead:
    return await verbs.snapshot(call.context, call.path.instance, call.body.metadata)


async def ssh_key(verbs: Verbs, call: _OnInstance) -> wire.SshKeyRead:
    """Show the key that opens an instance."""
    return wire.SshKeyRead(private_key=await verbs.ssh_key(call.context, call.path.instance))


async def open_console(verbs: Verbs, call: _OnInstance) -> wire.ConsoleSessionRead:
    """Let a browser see an instance's screen."""
    return wire.ConsoleSessionRead(url=await verbs.open_console(call.context, call.path.instance))


async def console_output(verbs: Verbs, call: Call[InstancePath, wire.ConsoleQuery, Nothing]) -> wire.ConsoleOutputRead:
    """Show what an instance wrote to its console."""
    contents = await verbs.console_output(call.context, call.path.instance, call.query.length)
    return wire.ConsoleOutputRead(contents=contents)


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
            handler=list_all,
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
            handler=create,
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
            handler=get,
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
            handler=delete,
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
            handler=start,
        ),
        Route(
            **update,
            path=f"{INSTANCE}/stop",
            name="stop_instance",
            summary="Stop a running instance",
            success=202,
            handler=stop,
        ),
        Route(
            **update,
            path=f"{INSTANCE}/reboot",
            name="reboot_instance",
            summary="Reboot a running instance",
            query_type=wire.RebootQuery,
            success=202,
            handler=reboot,
        ),
        Route(
            **update,
            path=f"{INSTANCE}/snapshot",
            name="snapshot_instance",
            summary="Make an image of an instance",
            body_type=wire.SnapshotCreate,
            answer_type=ImageRead,
            success=201,
            handler=snapshot,
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
            handler=ssh_key,
        ),
        Route(
            **look,
            path=f"{INSTANCE}/consolesession",
            name="open_instance_console",
            summary="Let a browser see an instance's screen",
            permission=permission("instances", "update"),
            answer_type=wire.ConsoleSessionRead,
            holds_secret=True,
            handler=open_console,
        ),
        Route(
            **look,
            path=f"{INSTANCE}/consoleoutput",
            name="get_instance_console_output",
            summary="Show what an instance wrote to its console",
            permission=permission("instances", "read"),
            query_type=wire.ConsoleQuery,
            answer_type=wire.ConsoleOutputRead,
            handler=console_output,
        ),
    ]


class UpdateQuery(Parameters, frozen=True, rename={"dry_run": "dryRun"}):
    """How to change an instance."""

    dry_run: Annotated[bool, msgspec.Meta(description="Change nothing, and answer with the plan.")] = False
    plan: (
        Annotated[
            PlanHash,
            msgspec.Meta(description="The hash of the plan that is to be done: if it is another one by now, 409."),
        ]
        | None
    ) = None


_Asked = Call[InstancePath, UpdateQuery, wire.InstanceUpdate]
_Told = Shown[wire.InstanceRead] | Other[PlanRead]


async def update(updates: Updates, call: _Asked) -> _Told:
    """Change an instance, or tell what that would do."""
    context, instance = call.context, call.path.instance
    if call.query.dry_run:
        return Other(await updates.plan(context, instance, call.body))
    return Shown(rules.INSTANCE_VIEW, await updates.update(context, instance, call.body, call.query.plan))


async def tell_again(updates: Updates, call: _Asked) -> _Told:
    """Answer a change that was made before: how the instance stands now, or what the change would do now."""
    if call.query.dry_run:
        return Other(await updates.plan(call.context, call.path.instance, call.body))
    return Shown(rules.INSTANCE_VIEW, await updates.get(call.context, call.path.instance))


def update_routes() -> list[AnyRoute]:
    return [
        Route(
            method="PUT",
            path=INSTANCE,
            name="update_instance",
            summary="Change an instance, or tell what that would do",
            description="Another image rebuilds its server, another flavor or SSH authority replaces it: the root disk "
            "is lost, and addresses and MAC stay. Other user data takes effect when either next happens. With dryRun "
            "the answer is the plan; with the hash of a plan, exactly that plan is done, or the answer is 409 with the "
            "present one. Where the instance or its project's policy demands a plan, 409 without a hash shows it.",
            scope="project",
            permission=permission("instances", "update"),
            path_type=InstancePath,
            query_type=UpdateQuery,
            body_type=wire.InstanceUpdate,
            answer_type=wire.InstanceRead,
            success=202,
            other=OtherAnswer(
                status=200, answer_type=PlanRead, about="With dryRun: what the change would do. Nothing was changed."
            ),
            refusals={409: PlanRefusal},
            is_conditional=True,
            holds_secret=True,  # its user data
            repeated=tell_again,
            handler=update,
        )
    ]
