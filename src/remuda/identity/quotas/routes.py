"""The room's routes. Beside the reference's: limits of projects, the usage, and the two steps of a row's life."""

from remuda.http.routes import AnyRoute, Route
from remuda.identity.names import ORGANIZATION, PROJECT, OrganizationPath, ProjectPath
from remuda.identity.permissions import permission
from remuda.identity.quotas import handlers
from remuda.identity.quotas import schema as wire

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
            handler=handlers.get_quotas,
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
            handler=handlers.set_quotas,
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
            handler=handlers.get_project_quotas,
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
            handler=handlers.set_project_quotas,
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
            handler=handlers.list_usage,
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
            handler=handlers.create_allocation,
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
            handler=handlers.get_allocation,
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
            handler=handlers.change_allocation,
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
            handler=handlers.delete_allocation,
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
            handler=handlers.confirm_allocation,
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
            handler=handlers.renew_allocation,
        ),
    ]
