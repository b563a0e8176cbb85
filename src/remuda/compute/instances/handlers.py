"""The room's handlers: each asks the service and renders what it says."""

from remuda.compute.instances import rules
from remuda.compute.instances import schema as wire
from remuda.compute.instances.actions import Verbs
from remuda.compute.instances.service import Instances
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.names import InstancePath
from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import Call, Nothing
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
