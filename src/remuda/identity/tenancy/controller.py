"""Controllers of organizations and projects.

Neither needs any resources, so both are provisioned by the first reconcile and stay so; only an organization whose
domain another organization has proven is not. A domain that is merely claimed has no effect (`domain_proofs`).

A project is removed when it has no references, which the lifecycle checks by its finalizers, no active allocation, and
no way to get one. An organization owns everything in it and is removed last. The conditions of both name what they wait
for.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from remuda.identity.kinds.quotas import Allocation
from remuda.identity.kinds.tenancy import CONTROLLER_FINALIZER, Domain, Organization, Project
from remuda.identity.quotas.writer import ProjectCloser, QuotaWriter
from remuda.identity.tenancy.domains import domains_of, find_proven, release
from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition, find_condition, set_condition
from remuda.kernel.text import folded
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Outcome, any_children, lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Result
from remuda.reconcile.sources import KeyMapper, Source, indexed
from remuda.reconcile.status import AVAILABLE
from remuda.resources.conventions import NAME, ORGANIZATION, RESOURCE_ID, RESOURCE_KIND, organization_of, project_of
from remuda.resources.crud import describe_references, find
from remuda.store.contract import Store
from remuda.store.objects import Resource, ResourceT

_MAX_NAMED = 3
_RETRY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationController:
    """Releases the domains that organizations no longer claim, and describes what blocks their removal."""

    store: Store
    clock: Clock

    async def provision(self, organization: Organization, context: ReconcileContext) -> Outcome[Organization]:
        """Release every domain but the claimed one, and report if another organization has proven that."""
        claimed = organization.spec.domain
        for domain in await domains_of(self.store, organization):
            if domain.spec.domain != claimed:
                await release(self.store, domain)
                context.acted = True
        owner = await find_proven(self.store, claimed) if claimed else None
        if owner is not None and organization_of(owner) != organization.name:
            return Outcome(Blocked("DomainTaken", f"another organization owns the domain {claimed}"), organization)
        return Outcome(Done(), _with_healthy(organization, self.clock))

    async def deprovision(self, organization: Organization, context: ReconcileContext) -> Result:  # noqa: ARG002  the signature of a step
        """Do nothing: everything that the organization owned is removed."""
        return Done()

    async def waits_for(self, organization: Organization) -> str:
        """Describe the projects that still exist."""
        projects = (await self.store.list(Project, labels={ORGANIZATION: organization.name})).items
        if not projects:
            return await any_children(organization)
        return f"waiting for {_listed('project', map(_describe_project, projects[:_MAX_NAMED]), len(projects))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectController:
    """Blocks the removal of a project while it has active allocations."""

    store: Store
    clock: Clock
    closer: ProjectCloser

    async def provision(self, project: Project, context: ReconcileContext) -> Outcome[Project]:  # noqa: ARG002  the signature of a step
        """Report that the project is healthy: it needs no resources."""
        return Outcome(Done(), _with_healthy(project, self.clock))

    async def deprovision(self, project: Project, context: ReconcileContext) -> Result:
        """Close the project unless it has active allocations."""
        active_index = ("active", project.name)
        allocations = (await self.store.list(Allocation, index=active_index, limit=_MAX_NAMED)).items
        if not allocations:
            if await self.closer.close(organization_of(project), project.name):
                return Done()
            context.requeue_after(_RETRY_S)  # an open reservation becomes an allocation soon, or never
            return Blocked("InUse", "in use by an allocation that is being reserved")
        count = len((await self.store.list_names(Allocation, index=active_index)).items)
        return Blocked("InUse", f"in use by allocations of {_listed('object', map(_owner, allocations), count)}")


def controllers(
    ports: ReconcilePorts, writer: QuotaWriter, *, settings: ControllerSettings | None = None
) -> Sequence[Controller]:
    """Return the controllers of organizations and projects; `writer` closes the quota of a project."""
    store = ports.store
    organizations = OrganizationController(store=store, clock=ports.clock)
    projects = ProjectController(store=store, clock=ports.clock, closer=ProjectCloser(store, writer))
    return (
        lifecycle_controller(
            "organizations",
            Organization,
            provision=organizations.provision,
            deprovision=organizations.deprovision,
            waits_for=organizations.waits_for,
            finalizer=CONTROLLER_FINALIZER,
            ports=ports,
            sources=(
                Source(Domain, keys=indexed(store, Organization, "domain", lambda domain: folded(domain.spec.domain))),
                Source(Project, when=_describe_project, keys=_if_deleting(store, Organization, organization_of)),
            ),
            settings=settings,
        ),
        lifecycle_controller(
            "projects",
            Project,
            provision=projects.provision,
            deprovision=projects.deprovision,
            describe=_describe_blockers,
            finalizer=CONTROLLER_FINALIZER,
            ports=ports,
            sources=(
                Source(
                    Allocation,
                    when=lambda allocation: allocation.spec.state,
                    keys=_if_deleting(store, Project, project_of),
                ),
            ),
            settings=settings,
        ),
    )


def _if_deleting(store: Store, kind: type[Resource], name_of: Callable[[ResourceT], str]) -> KeyMapper[ResourceT]:
    """Map an object to its owner, if that is deleting: otherwise nothing can have changed for it."""

    async def keys(resource: ResourceT) -> Iterable[str]:
        found = await find(store, kind, name_of(resource))
        return (found.name,) if found is not None and found.is_deleting else ()

    return keys


def _with_healthy(resource: ResourceT, clock: Clock) -> ResourceT:
    status = resource.status  # type: ignore[attr-defined]  # both kinds have the same one
    healthy = Condition(
        type="Healthy",
        status="True",
        reason="Healthy",
        message="healthy",
        last_transition_time=clock.now().replace(microsecond=0),
    )
    return replace(resource, status=replace(status, conditions=set_condition(status.conditions, healthy)))


def _describe_project(project: Project) -> str:
    """Return the name of a project, and why it still exists."""
    available = find_condition(project.status.conditions, AVAILABLE)
    state = available.message if available is not None and available.status == "False" else "being removed"
    return f"{project.metadata.labels[NAME]} ({project.name}), {state}"


def _describe_blockers(references: Sequence[str]) -> str:
    """Describe the references of a deleting project, and the remedy."""
    return (
        f"{describe_references(references)}, deleted first; if one stays, its own conditions name the cause, and an "
        "operator can remove its reference"
    )


def _owner(allocation: Allocation) -> str:
    return describe_references(
        [f"{allocation.metadata.labels[RESOURCE_KIND]}/{allocation.metadata.labels[RESOURCE_ID]}"]
    )


def _listed(what: str, items: Iterable[str], count: int) -> str:
    """Return a number and the first items: `2 projects: a; b`."""
    plural, more = "" if count == 1 else "s", "; and more" if count > _MAX_NAMED else ""
    return f"{count} {what}{plural}: {'; '.join(items)}{more}"
