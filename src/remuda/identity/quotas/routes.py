"""Routes of limits, usage and allocations."""

from collections.abc import Callable
from functools import partial

from remuda.http.crud import crud
from remuda.http.routes import AnyRoute, Route
from remuda.identity.names import ORGANIZATION, PROJECT, ProjectPath, permission
from remuda.identity.quotas import rules, schema
from remuda.identity.quotas.service import Allocations, QuotaLimits
from remuda.resources.schema import OrganizationPath

_ALLOCATION = f"{PROJECT}/allocations/{{allocationID}}"

_limits: Callable[..., AnyRoute] = partial(
    Route, scope="organization", response_type=schema.QuotasRead, service=QuotaLimits
)
_get_limits = partial(_limits, method="GET", permission=permission("quotas", "read"), calls=QuotaLimits.get)
_set_limits = partial(
    _limits, method="PUT", body_type=schema.QuotasWrite, is_conditional=True, calls=QuotaLimits.update
)
_change_limits = partial(
    _limits, method="PATCH", body_type=schema.QuotasPatch, is_conditional=True, calls=QuotaLimits.patch
)

ROUTES: list[AnyRoute] = [
    _get_limits(
        path=f"{ORGANIZATION}/quotas",
        name="get_quotas",
        summary="Read the limits of an organization and their usage",
        path_type=OrganizationPath,
    ),
    _set_limits(
        path=f"{ORGANIZATION}/quotas",
        name="set_quotas",
        summary="Replace the limits of an organization",
        description="A kind that is left out falls back to its default. A limit below the usage is rejected.",
        permission=permission("quotas", "update"),
        path_type=OrganizationPath,
    ),
    _change_limits(
        path=f"{ORGANIZATION}/quotas",
        name="change_quotas",
        summary="Set or unset some limits of an organization",
        description=(
            "A kind that is left out keeps its limit, and one with the quantity null falls back to its default. "
            "A limit below the usage is rejected."
        ),
        permission=permission("quotas", "update"),
        path_type=OrganizationPath,
    ),
    _get_limits(
        path=f"{PROJECT}/quotas",
        name="get_project_quotas",
        summary="Read the limits of a project and their usage",
        description="Where a project has no limit of its own, the limit of its organization is shown.",
        path_type=ProjectPath,
    ),
    _set_limits(
        path=f"{PROJECT}/quotas",
        name="set_project_quotas",
        summary="Replace the limits of a project",
        description=(
            "A kind that is left out is limited by the organization only, whose limits always hold as well: "
            "a limit above that one limits nothing. A limit below the project's usage is rejected."
        ),
        permission=permission("projects", "update"),
        path_type=ProjectPath,
    ),
    _change_limits(
        path=f"{PROJECT}/quotas",
        name="change_project_quotas",
        summary="Set or unset some limits of a project",
        description=(
            "A kind that is left out keeps its limit, and one with the quantity null is limited by the organization "
            "only. A limit below the project's usage is rejected."
        ),
        permission=permission("projects", "update"),
        path_type=ProjectPath,
    ),
    Route(
        method="GET",
        path=f"{ORGANIZATION}/allocations",
        name="list_usage",
        summary="List the allocations of an organization",
        description="The present ones; with `at`, or `since` and `until`, those of that time.",
        scope="organization",
        permission=permission("quotas", "read"),
        path_type=OrganizationPath,
        query_type=schema.UsageQuery,
        response_type=list[schema.AllocationRead],
        errors=(422,),
        service=Allocations,
        calls=Allocations.usage,
    ),
    *crud(
        Allocations,
        path=f"{PROJECT}/allocations",
        item=schema.AllocationPath,
        parent=ProjectPath,
        name="allocation",
        noun="an allocation",
        permission=partial(permission, "allocations"),
        view=rules.ALLOCATION_VIEW,
        create=schema.AllocationWrite,
        update=schema.AllocationWrite,
        read=schema.AllocationRead,
        without=("list",),
        accepted=("delete",),
        summaries={
            "create": "Create an allocation within the limits",
            "update": "Replace the amounts of an allocation within the limits",
            "delete": "Release an allocation",
        },
        descriptions={
            "create": "With an Idempotency-Key the allocation is released unless it is confirmed in time; "
            "without one it is confirmed from the start."
        },
        overrides={
            "create": {"calls": Allocations.allocate, "is_idempotent": True},
            "update": {"name": "change_allocation", "calls": Allocations.change, "query_type": schema.FencingQuery},
            "delete": {"calls": Allocations.release, "query_type": schema.ReleaseQuery},
        },
    ),
    Route(
        method="POST",
        path=f"{_ALLOCATION}/confirm",
        name="confirm_allocation",
        summary="Confirm an allocation: the object that it was created for exists",
        scope="project",
        permission=permission("allocations", "update"),
        path_type=schema.AllocationPath,
        response_type=schema.AllocationRead,
        service=Allocations,
        calls=Allocations.confirm,
        view=rules.ALLOCATION_VIEW,
    ),
    Route(
        method="POST",
        path=f"{_ALLOCATION}/renew",
        name="renew_allocation",
        summary="Renew a released allocation within the limits",
        description="It must be confirmed again.",
        scope="project",
        permission=permission("allocations", "create"),
        path_type=schema.AllocationPath,
        query_type=schema.FencingQuery,
        response_type=schema.AllocationRead,
        is_conditional=True,
        service=Allocations,
        calls=Allocations.renew,
        view=rules.ALLOCATION_VIEW,
    ),
]
