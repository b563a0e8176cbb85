"""The room's routes. Beside the reference's: limits of projects, the usage, and the two steps of a row's life.

The room's handlers: each asks the service and renders what it says.
"""

import msgspec

from remuda.http.responses import Collection, Rendered, Shown
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.identity.kinds.quotas import Allocation
from remuda.identity.names import ORGANIZATION, PROJECT, OrganizationPath, ProjectPath, permission
from remuda.identity.quotas import rules
from remuda.identity.quotas import schema as wire
from remuda.identity.quotas.facade import Quotas
from remuda.identity.quotas.service import Limited

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


_ALLOCATION = f"{PROJECT}/allocations/{{allocationID}}"


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [*_limits(), *_allocations(), *_life()]


def _limits() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=f"{ORGANIZATION}/quotas",
            name="get_quotas",
            summary="Read what an organization may have, and what it has",
            scope="organization",
            permission=permission("quotas", "read"),
            path_type=OrganizationPath,
            answer_type=wire.QuotasRead,
            handler=get_quotas,
        ),
        Route(
            method="PUT",
            path=f"{ORGANIZATION}/quotas",
            name="set_quotas",
            summary="Replace what an organization may have",
            description="A kind that is left out falls back to its default. A limit under what is used is refused.",
            scope="organization",
            permission=permission("quotas", "update"),
            path_type=OrganizationPath,
            body_type=wire.QuotasWrite,
            answer_type=wire.QuotasRead,
            is_conditional=True,
            handler=set_quotas,
        ),
        Route(
            method="GET",
            path=f"{PROJECT}/quotas",
            name="get_project_quotas",
            summary="Read what a project may have, and what it has",
            description="Where a project has no limit of its own, its organization's is shown.",
            scope="organization",
            permission=permission("quotas", "read"),
            path_type=ProjectPath,
            answer_type=wire.QuotasRead,
            handler=get_project_quotas,
        ),
        Route(
            method="PUT",
            path=f"{PROJECT}/quotas",
            name="set_project_quotas",
            summary="Replace what a project may have of what its organization may",
            description=(
                "A kind that is left out has no limit but the organization's, which always holds as well: "
                "a limit above that one limits nothing. A limit under what the project uses is refused."
            ),
            scope="organization",
            permission=permission("projects", "update"),
            path_type=ProjectPath,
            body_type=wire.QuotasWrite,
            answer_type=wire.QuotasRead,
            is_conditional=True,
            handler=set_project_quotas,
        ),
        Route(
            method="GET",
            path=f"{ORGANIZATION}/allocations",
            name="list_usage",
            summary="List who uses what since when",
            description="What is held now; with `at`, or `since` and `until`, what was held then.",
            scope="organization",
            permission=permission("quotas", "read"),
            path_type=OrganizationPath,
            query_type=wire.UsageQuery,
            answer_type=list[wire.AllocationRead],
            errors=(422,),
            handler=list_usage,
        ),
    ]


def _allocations() -> list[AnyRoute]:
    return [
        Route(
            method="POST",
            path=f"{PROJECT}/allocations",
            name="create_allocation",
            summary="Hold something, if there is room for it",
            description=(
                "Under an Idempotency-Key the allocation is taken back unless it is confirmed in time; "
                "without one it is confirmed as it is made."
            ),
            scope="project",
            permission=permission("allocations", "create"),
            path_type=ProjectPath,
            body_type=wire.AllocationWrite,
            answer_type=wire.AllocationRead,
            success=201,
            is_idempotent=True,
            handler=create_allocation,
        ),
        Route(
            method="GET",
            path=_ALLOCATION,
            name="get_allocation",
            summary="Read an allocation",
            scope="project",
            permission=permission("allocations", "read"),
            path_type=wire.AllocationPath,
            answer_type=wire.AllocationRead,
            handler=get_allocation,
        ),
        Route(
            method="PUT",
            path=_ALLOCATION,
            name="change_allocation",
            summary="Hold something else instead, if there is room for it",
            scope="project",
            permission=permission("allocations", "update"),
            path_type=wire.AllocationPath,
            query_type=wire.TurnQuery,
            body_type=wire.AllocationWrite,
            answer_type=wire.AllocationRead,
            is_conditional=True,
            handler=change_allocation,
        ),
        Route(
            method="DELETE",
            path=_ALLOCATION,
            name="delete_allocation",
            summary="Hold nothing any more",
            scope="project",
            permission=permission("allocations", "delete"),
            path_type=wire.AllocationPath,
            query_type=wire.LastTurnQuery,
            success=202,
            is_conditional=True,
            handler=delete_allocation,
        ),
    ]


def _life() -> list[AnyRoute]:
    return [
        Route(
            method="POST",
            path=f"{_ALLOCATION}/confirm",
            name="confirm_allocation",
            summary="Say that what an allocation is for is there",
            scope="project",
            permission=permission("allocations", "update"),
            path_type=wire.AllocationPath,
            answer_type=wire.AllocationRead,
            handler=confirm_allocation,
        ),
        Route(
            method="POST",
            path=f"{_ALLOCATION}/renew",
            name="renew_allocation",
            summary="Hold again what was released, if there is room for it",
            description="It has to be confirmed anew.",
            scope="project",
            permission=permission("allocations", "create"),
            path_type=wire.AllocationPath,
            query_type=wire.TurnQuery,
            answer_type=wire.AllocationRead,
            is_conditional=True,
            handler=renew_allocation,
        ),
    ]
