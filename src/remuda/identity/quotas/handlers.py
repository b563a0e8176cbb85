"""The room's handlers: each asks the service and renders what it says."""

import msgspec

from remuda.http.responses import Collection, Rendered, Shown
from remuda.http.routes import Call, Nothing
from remuda.identity.kinds.quotas import Allocation
from remuda.identity.names import OrganizationPath, ProjectPath
from remuda.identity.quotas import rules
from remuda.identity.quotas import schema as wire
from remuda.identity.quotas.facade import Quotas
from remuda.identity.quotas.limits import Limited

_encode = msgspec.json.Encoder().encode


def _limited(limited: Limited) -> Rendered[wire.QuotasRead]:
    return Rendered(_encode(limited.quotas), etag=limited.etag)


def _row(row: Allocation) -> Shown[wire.AllocationRead]:
    return Shown(rules.ALLOCATION_VIEW, row)


async def get_quotas(quotas: Quotas, call: Call[OrganizationPath, Nothing, Nothing]) -> Rendered[wire.QuotasRead]:
    """Answer with the limits of an organization."""
    return _limited(await quotas.limits.of_organization(call.context, call.path.organization))


async def set_quotas(
    quotas: Quotas, call: Call[OrganizationPath, Nothing, wire.QuotasWrite]
) -> Rendered[wire.QuotasRead]:
    """Replace the limits of an organization."""
    return _limited(await quotas.limits.set_for_organization(call.context, call.path.organization, call.body))


async def get_project_quotas(quotas: Quotas, call: Call[ProjectPath, Nothing, Nothing]) -> Rendered[wire.QuotasRead]:
    """Answer with the limits of a project."""
    return _limited(await quotas.limits.of_project(call.context, call.path.organization, call.path.project))


async def set_project_quotas(
    quotas: Quotas, call: Call[ProjectPath, Nothing, wire.QuotasWrite]
) -> Rendered[wire.QuotasRead]:
    """Replace the limits of a project."""
    path = call.path
    return _limited(await quotas.limits.set_for_project(call.context, path.organization, path.project, call.body))


async def list_usage(
    quotas: Quotas, call: Call[OrganizationPath, wire.UsageQuery, Nothing]
) -> Collection[Allocation, list[wire.AllocationRead]]:
    return await quotas.allocations.usage(call.context, call.path.organization, call.query)


async def create_allocation(
    quotas: Quotas, call: Call[ProjectPath, Nothing, wire.AllocationWrite]
) -> Shown[wire.AllocationRead]:
    return _row(await quotas.allocations.allocate(call.context, call.path.organization, call.path.project, call.body))


async def get_allocation(
    quotas: Quotas, call: Call[wire.AllocationPath, Nothing, Nothing]
) -> Shown[wire.AllocationRead]:
    path = call.path
    return _row(await quotas.allocations.get(call.context, path.organization, path.project, path.allocation))


async def change_allocation(
    quotas: Quotas, call: Call[wire.AllocationPath, wire.TurnQuery, wire.AllocationWrite]
) -> Shown[wire.AllocationRead]:
    path, turn = call.path, call.query.turn
    return _row(
        await quotas.allocations.change(
            call.context, path.organization, path.project, path.allocation, call.body, turn=turn
        )
    )


async def delete_allocation(quotas: Quotas, call: Call[wire.AllocationPath, wire.LastTurnQuery, Nothing]) -> None:
    path, turn = call.path, call.query.turn
    await quotas.allocations.release(call.context, path.organization, path.project, path.allocation, turn=turn)


async def confirm_allocation(
    quotas: Quotas, call: Call[wire.AllocationPath, Nothing, Nothing]
) -> Shown[wire.AllocationRead]:
    path = call.path
    return _row(await quotas.allocations.confirm(call.context, path.organization, path.project, path.allocation))


async def renew_allocation(
    quotas: Quotas, call: Call[wire.AllocationPath, wire.TurnQuery, Nothing]
) -> Shown[wire.AllocationRead]:
    path, turn = call.path, call.query.turn
    return _row(
        await quotas.allocations.renew(call.context, path.organization, path.project, path.allocation, turn=turn)
    )
