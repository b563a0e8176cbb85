"""The room's handlers: each asks the service and renders what it says."""

import msgspec

from remuda.http.etag import untag
from remuda.http.replies import Collection, Rendered
from remuda.http.routes import Call, Nothing
from remuda.identity.kinds.quotas import Allocation
from remuda.identity.quotas import rules, wire
from remuda.identity.quotas.service import Limited, Quotas

__all__ = [
    "change_allocation",
    "confirm_allocation",
    "create_allocation",
    "delete_allocation",
    "get_allocation",
    "get_project_quotas",
    "get_quotas",
    "list_usage",
    "renew_allocation",
    "set_project_quotas",
    "set_quotas",
]

_encode = msgspec.json.Encoder().encode


def _limited(limited: Limited) -> Rendered[wire.QuotasRead]:
    return Rendered(_encode(limited.quotas), etag=limited.etag)


def _row(row: Allocation) -> Rendered[wire.AllocationRead]:
    return untag(rules.ALLOCATION_VIEW(row))


async def get_quotas(quotas: Quotas, call: Call[wire.OrganizationPath, Nothing, Nothing]) -> Rendered[wire.QuotasRead]:
    """Answer with the limits of an organization."""
    return _limited(await quotas.limits(call.context, call.path.organization))


async def set_quotas(
    quotas: Quotas, call: Call[wire.OrganizationPath, Nothing, wire.QuotasWrite]
) -> Rendered[wire.QuotasRead]:
    """Replace the limits of an organization."""
    return _limited(await quotas.set_limits(call.context, call.path.organization, call.body))


async def get_project_quotas(
    quotas: Quotas, call: Call[wire.ProjectPath, Nothing, Nothing]
) -> Rendered[wire.QuotasRead]:
    """Answer with the limits of a project."""
    return _limited(await quotas.project_limits(call.context, call.path.organization, call.path.project))


async def set_project_quotas(
    quotas: Quotas, call: Call[wire.ProjectPath, Nothing, wire.QuotasWrite]
) -> Rendered[wire.QuotasRead]:
    """Replace the limits of a project."""
    path = call.path
    return _limited(await quotas.set_project_limits(call.context, path.organization, path.project, call.body))


async def list_usage(
    quotas: Quotas, call: Call[wire.OrganizationPath, wire.UsageQuery, Nothing]
) -> Collection[Allocation, list[wire.AllocationRead]]:
    """List who uses what."""
    return await quotas.usage(call.context, call.path.organization, call.query)


async def create_allocation(
    quotas: Quotas, call: Call[wire.ProjectPath, Nothing, wire.AllocationWrite]
) -> Rendered[wire.AllocationRead]:
    """Make an allocation."""
    return _row(await quotas.allocate(call.context, call.path.organization, call.path.project, call.body))


async def get_allocation(
    quotas: Quotas, call: Call[wire.AllocationPath, Nothing, Nothing]
) -> Rendered[wire.AllocationRead]:
    """Answer with an allocation."""
    path = call.path
    return _row(await quotas.get(call.context, path.organization, path.project, path.allocation))


async def change_allocation(
    quotas: Quotas, call: Call[wire.AllocationPath, Nothing, wire.AllocationWrite]
) -> Rendered[wire.AllocationRead]:
    """Change an allocation."""
    path = call.path
    return _row(await quotas.change(call.context, path.organization, path.project, path.allocation, call.body))


async def delete_allocation(quotas: Quotas, call: Call[wire.AllocationPath, Nothing, Nothing]) -> None:
    """Release an allocation."""
    path = call.path
    await quotas.release(call.context, path.organization, path.project, path.allocation)


async def confirm_allocation(
    quotas: Quotas, call: Call[wire.AllocationPath, Nothing, Nothing]
) -> Rendered[wire.AllocationRead]:
    """Confirm an allocation."""
    path = call.path
    return _row(await quotas.confirm(call.context, path.organization, path.project, path.allocation))


async def renew_allocation(
    quotas: Quotas, call: Call[wire.AllocationPath, Nothing, Nothing]
) -> Rendered[wire.AllocationRead]:
    """Renew an allocation."""
    path = call.path
    return _row(await quotas.renew(call.context, path.organization, path.project, path.allocation))
