"""The livery's handlers: each asks the service and renders what it says."""

import msgspec

from remuda.http.responses import Collection, Rendered, Viewed, split_etag
from remuda.http.routes import Call, ListQuery, Nothing
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import parse_tag_selector
from remuda.operations.kinds import Operation
from tests.example import rules, wire
from tests.example.kinds import Mount, Yard
from tests.example.scoping import Filters
from tests.example.service import Livery


async def list_yards(
    livery: Livery, call: Call[wire.ProjectPath, ListQuery, Nothing]
) -> Collection[Yard, list[wire.YardRead]]:
    return await livery.list_yards(call.context, call.path.organization, call.path.project)


async def create_yard(livery: Livery, call: Call[wire.ProjectPath, Nothing, wire.YardWrite]) -> Viewed[wire.YardRead]:
    path = call.path
    return Viewed(rules.YARD_VIEW, await livery.create_yard(call.context, path.organization, path.project, call.body))


async def get_yard(livery: Livery, call: Call[wire.YardPath, Nothing, Nothing]) -> Viewed[wire.YardRead]:
    path = call.path
    return Viewed(rules.YARD_VIEW, await livery.get_yard(call.context, path.organization, path.project, path.yard))


async def update_yard(livery: Livery, call: Call[wire.YardPath, Nothing, wire.YardWrite]) -> Viewed[wire.YardRead]:
    path = call.path
    changed = await livery.update_yard(call.context, path.organization, path.project, path.yard, call.body)
    return Viewed(rules.YARD_VIEW, changed)


async def delete_yard(livery: Livery, call: Call[wire.YardPath, Nothing, Nothing]) -> None:
    await livery.delete_yard(call.context, call.path.organization, call.path.project, call.path.yard)


async def add_reference(livery: Livery, call: Call[wire.ReferencePath, Nothing, Nothing]) -> None:
    path = call.path
    await livery.add_reference(call.context, path.organization, path.project, path.yard, path.reference)


async def remove_reference(livery: Livery, call: Call[wire.ReferencePath, Nothing, Nothing]) -> None:
    path = call.path
    await livery.remove_reference(call.context, path.organization, path.project, path.yard, path.reference)


async def list_mounts(
    livery: Livery, call: Call[Nothing, wire.MountQuery, Nothing]
) -> Collection[Mount, list[wire.MountRead]]:
    query = call.query
    tags = tuple(parse_tag_selector(text) for text in query.tag)
    filters = Filters(query.organizations, query.projects, query.yards, tags)
    return await livery.list_mounts(call.context, filters)


async def create_mount(livery: Livery, call: Call[Nothing, Nothing, wire.MountCreate]) -> Viewed[wire.MountRead]:
    return Viewed(rules.MOUNT_VIEW, await livery.create_mount(call.context, call.body))


async def get_mount(livery: Livery, call: Call[wire.MountPath, Nothing, Nothing]) -> Rendered[wire.MountRead]:
    found = await livery.get_mount(call.context, call.path.mount)
    return split_etag(await livery.store.get_view(Mount, found.name, rules.MOUNT_VIEW))


async def update_mount(livery: Livery, call: Call[wire.MountPath, Nothing, wire.MountUpdate]) -> Viewed[wire.MountRead]:
    return Viewed(rules.MOUNT_VIEW, await livery.update_mount(call.context, call.path.mount, call.body))


async def delete_mount(livery: Livery, call: Call[wire.MountPath, Nothing, Nothing]) -> None:
    await livery.delete_mount(call.context, call.path.mount)


async def brand_mount(livery: Livery, call: Call[wire.MountPath, Nothing, Nothing]) -> wire.BrandRead:
    return wire.BrandRead(brand=Secret(await livery.brand_mount(call.context, call.path.mount)))


async def read_timeline(livery: Livery, call: Call[wire.MountPath, Nothing, Nothing]) -> list[wire.TimelineEvent]:
    entries = await livery.timeline(call.context, call.path.mount)
    return [wire.TimelineEvent(time=entry.time, event=msgspec.json.decode(entry.data)) for entry in entries]


async def list_operations(livery: Livery, call: Call[Nothing, Nothing, Nothing]) -> list[wire.OperationRead]:
    return [_operation(each) for each in await livery.list_operations(call.context)]


async def retry_operation(livery: Livery, call: Call[wire.OperationPath, Nothing, Nothing]) -> wire.OperationRead:
    return _operation(await livery.retry_operation(call.context, call.path.operation))


async def abandon_operation(
    livery: Livery, call: Call[wire.OperationPath, Nothing, wire.AbandonWrite]
) -> wire.OperationRead:
    return _operation(await livery.abandon_operation(call.context, call.path.operation, call.body.reason))


async def read_version(_livery: Livery, _call: Call[Nothing, Nothing, Nothing]) -> wire.VersionRead:
    return wire.VersionRead(name="remuda-livery", version="0.1.0")


def _operation(operation: Operation) -> wire.OperationRead:
    spec, status = operation.spec, operation.status
    return wire.OperationRead(
        id=operation.name,
        operation=spec.saga,
        subject=f"{spec.subject_kind}/{spec.subject}",
        actor=spec.actor,
        state=status.phase,
        reason=status.error.message if status.error is not None else "",
    )
