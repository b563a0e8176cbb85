"""The policies room: one policy for each project, which is there as soon as somebody has set it.

Every method takes the context of the call, checks the caller's rights itself, and has at most one effect. Whoever may
read a project's instances may know what holds for them. What holds for a project is for those to say who may change the
projects of its organization.

What a project demands of all its instances.

What clients send and read of a project's policy.

The room's handlers: each asks the service and renders what it says.

The room's routes.

Protection: what must not happen to an instance by mistake.

An instance says so itself, or its project's policy does for all of them: whichever demands it counts. Nobody is kept
from anything for good: who may change the instance or the policy can take the protection away first, and that is a
step of its own. What goes because its network or project goes is not asked: whoever deletes those means all of it.
"""

from dataclasses import dataclass
from typing import Annotated

import msgspec

from remuda.access.checks import allow_in_organization, allow_in_project
from remuda.access.principal import Context, Permission
from remuda.compute.kinds import POLICY, ComputeInstance, ProjectPolicy, Protection
from remuda.compute.names import permission
from remuda.http.responses import Rendered, check_match, etag_of
from remuda.http.routes import AnyRoute, Call, Id, Nothing, Parameters, Route, Wire
from remuda.kernel.errors import AlreadyExists, Conflict, Forbidden, NotFound
from remuda.quota.ports import Ledger
from remuda.resources.conventions import ORGANIZATION, PROJECT, project_of
from remuda.resources.crud import find, until_written, witnessed
from remuda.store.contract import Store
from remuda.store.objects import Metadata


class PolicyWire(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What a project demands of each of its instances, whatever the instance itself says."""

    deletion: Annotated[bool, msgspec.Meta(description="None of them can be deleted while this is set.")] = False
    plan: Annotated[
        bool, msgspec.Meta(description="A change that destroys something has to carry the hash of its plan.")
    ] = False


class PolicyPath(Parameters, frozen=True, rename={"organization": "organizationID", "project": "projectID"}):
    """A project."""

    organization: Id
    project: Id


MAY_READ = permission("instances", "read")
"""The right to know a policy, in its project."""
MAY_WRITE = Permission("identity:projects", "update")
"""The right to set a policy, in its organization."""


@dataclass(frozen=True, slots=True)
class PolicyFound:
    """A policy as it stands, and its tag."""

    policy: PolicyWire
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The room."""

    store: Store
    identity: Ledger

    async def get(self, context: Context, organization: str, project: str) -> PolicyFound:
        """Return what holds in a project: nothing in particular, until somebody has set it."""
        allow_in_project(context.principal, MAY_READ, organization, project)
        await self._check_there(organization, project)
        return _found(await find(self.store, ProjectPolicy, project))

    async def put(self, context: Context, organization: str, project: str, wanted: PolicyWire) -> PolicyFound:
        """Set what holds in a project."""
        allow_in_organization(context.principal, MAY_WRITE, organization)
        await self._check_there(organization, project)

        async def write() -> PolicyFound:
            found = await find(self.store, ProjectPolicy, project)
            check_match(context, _found(found).etag, kind="ProjectPolicy", name=project)
            return _found(await self._written(context, found or _new(organization, project), wanted))

        return await until_written(write)

    async def _written(self, context: Context, policy: ProjectPolicy, wanted: PolicyWire) -> ProjectPolicy:
        spec = Protection(deletion=wanted.deletion, plan=wanted.plan)
        changed = ProjectPolicy(metadata=policy.metadata, spec=spec)
        log = witnessed(context, POLICY.plural, changed)
        if policy.version:
            return await self.store.update(changed, log=log)
        try:
            return await self.store.create(changed, log=log)
        except AlreadyExists:  # somebody else was faster: look at what they wrote
            raise Conflict("ProjectPolicy", policy.name) from None

    async def _check_there(self, organization: str, project: str) -> None:
        if not await self.identity.has_project(organization, project):
            raise NotFound("Project", project)


def _new(organization: str, project: str) -> ProjectPolicy:
    return ProjectPolicy(metadata=Metadata(name=project, labels={ORGANIZATION: organization, PROJECT: project}))


def _found(policy: ProjectPolicy | None) -> PolicyFound:
    """Return a policy as clients read it. That of nobody yet has a tag, too: so two who set it first are told apart."""
    spec, uid = (Protection(), "") if policy is None else (policy.spec, policy.uid)
    read = PolicyWire(deletion=spec.deletion, plan=spec.plan)
    return PolicyFound(read, etag_of(uid, read))


async def get(policies: Policies, call: Call[PolicyPath, Nothing, Nothing]) -> Rendered[PolicyWire]:
    """Read a project's policy."""
    return _rendered(await policies.get(call.context, call.path.organization, call.path.project))


async def put(policies: Policies, call: Call[PolicyPath, Nothing, PolicyWire]) -> Rendered[PolicyWire]:
    """Set a project's policy."""
    return _rendered(await policies.put(call.context, call.path.organization, call.path.project, call.body))


def _rendered(found: PolicyFound) -> Rendered[PolicyWire]:
    return Rendered(msgspec.json.encode(found.policy), etag=found.etag)


_POLICY = "/api/v2/organizations/{organizationID}/projects/{projectID}/policy"


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [
        Route(
            method="GET",
            path=_POLICY,
            name="get_project_policy",
            summary="Read what a project demands of its instances",
            scope="project",
            permission=MAY_READ,
            path_type=PolicyPath,
            answer_type=PolicyWire,
            handler=get,
        ),
        Route(
            method="PUT",
            path=_POLICY,
            name="update_project_policy",
            summary="Set what a project demands of its instances",
            description="It holds at once, for every instance of the project. What is left out is not demanded.",
            scope="organization",
            permission=MAY_WRITE,
            path_type=PolicyPath,
            body_type=PolicyWire,
            answer_type=PolicyWire,
            is_conditional=True,
            handler=put,
        ),
    ]


async def policy_of(store: Store, project: str) -> Protection:
    """Return what a project demands of its instances: nothing, if it has never said."""
    found = await find(store, ProjectPolicy, project, marked=False)
    return Protection() if found is None else found.spec


async def protection_of(store: Store, instance: ComputeInstance) -> Protection:
    """Return what an instance is protected from, by itself or by its project."""
    own, policy = instance.spec.protection, await policy_of(store, project_of(instance))
    return Protection(deletion=own.deletion or policy.deletion, plan=own.plan or policy.plan)


async def refuse_if_protected(store: Store, instance: ComputeInstance) -> None:
    """Raise Forbidden if an instance is not to be deleted; the sentence says who can change that, and how."""
    if instance.spec.protection.deletion:
        raise Forbidden(
            "the instance is protected from deletion: set spec.protection.deletion to false, then delete it"
        )
    if (await policy_of(store, project_of(instance))).deletion:
        raise Forbidden(
            "the policy of its project protects every instance from deletion: have deletion set to false in the "
            "project's policy, then delete it"
        )
