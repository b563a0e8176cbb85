"""What makes organizations and projects provisioned, and lets them go.

Neither needs anything made for it, so both are provisioned by the first look at them, and stay so whatever is changed;
only an organization whose domain somebody else has is not what it wishes to be.

A project goes when no other service refers to it, which the lifecycle sees by its finalizers, and no quota row names
it, and none can any more: a row that is still alive stands for something that was made there. An organization owns
everything in it and goes last. Both say in their conditions what they wait for.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from remuda.identity.kinds.quotas import Allocation
from remuda.identity.kinds.tenancy import IN_CARE, Domain, Organization, Project
from remuda.identity.quotas.writer import Closing, Combiner
from remuda.identity.tenancy.domains import claim, domains_of, give_up
from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition, find_condition, set_condition
from remuda.kernel.text import folded
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Lifecycle, Outcome, any_children
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Result
from remuda.reconcile.sources import KeyFunction, Source, through
from remuda.reconcile.status import AVAILABLE
from remuda.resources import conventions as labels
from remuda.resources.crud import describe_references, find
from remuda.store.contract import Store
from remuda.store.objects import Resource, ResourceT

_NAMED = 3
"""How many of those that something waits for are named."""
_A_MOMENT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationController:
    """Gives organizations the domains they wish for, and says what keeps them."""

    store: Store
    clock: Clock

    async def provision(self, organization: Organization, run: ReconcileContext) -> Outcome[Organization]:
        """See that an organization has its domain and no other: first it gives up what it does not want any more."""
        wanted, held = organization.spec.domain, await domains_of(self.store, organization)
        unwanted = [domain for domain in held if domain.spec.domain != wanted]
        if unwanted:
            await give_up(self.store, unwanted[0])
            run.acted = True
            run.requeue_after(0)
        elif wanted and not held:
            run.acted = await claim(self.store, organization, wanted)
            if not run.acted:
                return Outcome(Blocked("DomainTaken", f"another organization has the domain {wanted}"), organization)
        return Outcome(Done(), _healthy(organization, self.clock))

    async def deprovision(self, organization: Organization, run: ReconcileContext) -> Result:  # noqa: ARG002  the signature of a step
        """Do nothing: what it owns is gone already, or it would not be asked."""
        return Done()

    async def waits_for(self, organization: Organization) -> str:
        """Say which projects are still there, and why."""
        projects = (await self.store.list(Project, labels={labels.ORGANIZATION: organization.name})).items
        if not projects:
            return await any_children(organization)
        return f"waiting for {_listed('project', map(_standing, projects[:_NAMED]), len(projects))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectController:
    """Keeps a project for as long as a quota row names it."""

    store: Store
    clock: Clock
    closing: Closing

    async def provision(self, project: Project, run: ReconcileContext) -> Outcome[Project]:  # noqa: ARG002  the signature of a step
        """Say that all is well: a project needs nothing."""
        return Outcome(Done(), _healthy(project, self.clock))

    async def deprovision(self, project: Project, run: ReconcileContext) -> Result:
        """Let a project go unless rows that are alive name it."""
        living = ("living", project.name)
        rows = (await self.store.list(Allocation, index=living, limit=_NAMED)).items
        if not rows:
            if await self.closing.close(labels.organization_of(project), project.name):
                return Done()
            run.requeue_after(_A_MOMENT_S)  # what is being taken is a row soon, or never: only the head can tell
            return Blocked("InUse", "in use by an allocation that is being taken")
        count = len((await self.store.list_names(Allocation, index=living)).items)
        return Blocked("InUse", f"in use by what it still pays for, {_listed('thing', map(_owner, rows), count)}")


def drivers(
    ports: ReconcilePorts, heads: Combiner, *, settings: ControllerSettings | None = None
) -> Sequence[Controller]:
    """Return the controllers of organizations and projects; through `heads` they close a project's quota."""
    store = ports.store
    organizations = OrganizationController(store=store, clock=ports.clock)
    projects = ProjectController(store=store, clock=ports.clock, closing=Closing(store, heads))
    return (
        Controller(
            "organizations",
            Lifecycle(
                Organization,
                provision=organizations.provision,
                deprovision=organizations.deprovision,
                waits_for=organizations.waits_for,
                finalizer=IN_CARE,
                ports=ports,
            ),
            kind=Organization,
            ports=ports,
            sources=(
                Source(Organization),
                Source(Domain, keys=through(store, Organization, "domain", lambda domain: folded(domain.spec.domain))),
                Source(Project, when=_standing, keys=_if_marked(store, Organization, labels.organization_of)),
            ),
            settings=settings,
        ),
        Controller(
            "projects",
            Lifecycle(
                Project,
                provision=projects.provision,
                deprovision=projects.deprovision,
                describe=_kept_by,
                finalizer=IN_CARE,
                ports=ports,
            ),
            kind=Project,
            ports=ports,
            sources=(
                Source(Project),
                Source(
                    Allocation,
                    when=lambda row: row.spec.life,
                    keys=_if_marked(store, Project, labels.project_of),
                ),
            ),
            settings=settings,
        ),
    )


def _if_marked(store: Store, kind: type[Resource], name_of: Callable[[ResourceT], str]) -> KeyFunction[ResourceT]:
    """Map an object to what it belongs to, if that waits to go: else nothing about it can have changed."""

    async def keys(resource: ResourceT) -> Iterable[str]:
        found = await find(store, kind, name_of(resource))
        return (found.name,) if found is not None and found.is_deleting else ()

    return keys


def _healthy(resource: ResourceT, clock: Clock) -> ResourceT:
    status = resource.status  # type: ignore[attr-defined]  # both kinds have the same one
    healthy = Condition(
        type="Healthy",
        status="True",
        reason="Healthy",
        message="healthy",
        last_transition_time=clock.now().replace(microsecond=0),
    )
    return replace(resource, status=replace(status, conditions=set_condition(status.conditions, healthy)))


def _standing(project: Project) -> str:
    """Say which project it is, and why it is not gone."""
    available = find_condition(project.status.conditions, AVAILABLE)
    why = available.message if available is not None and available.status == "False" else "being removed"
    return f"{project.metadata.labels[labels.NAME]} ({project.name}), {why}"


def _kept_by(references: Sequence[str]) -> str:
    """Say what is in a project that is to go, and who can do something if it stays."""
    return (
        f"{describe_references(references)}: what is there goes by itself; if it does not, "
        "it says itself what keeps it, and an operator can let go of it"
    )


def _owner(row: Allocation) -> str:
    return describe_references(
        [f"{row.metadata.labels[labels.RESOURCE_KIND]}/{row.metadata.labels[labels.RESOURCE_ID]}"]
    )


def _listed(what: str, first: Iterable[str], count: int) -> str:
    """Return how many there are, and the first of them: `2 projects: a; b`."""
    plural, more = "" if count == 1 else "s", "; and more" if count > _NAMED else ""
    return f"{count} {what}{plural}: {'; '.join(first)}{more}"
