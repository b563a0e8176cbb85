"""The policies room: one policy for each project, which is there as soon as somebody has set it.

Every method takes the context of the call, checks the caller's rights itself, and has at most one effect. Whoever may
read a project's instances may know what holds for them. What holds for a project is for those to say who may change the
projects of its organization.
"""

from dataclasses import dataclass

from remuda.access.checks import allow_in_organization, allow_in_project
from remuda.access.principal import Context, Permission
from remuda.compute.kinds.instances import Protection
from remuda.compute.kinds.policies import POLICY, ProjectPolicy
from remuda.compute.permissions import permission
from remuda.compute.policies.wire import PolicyWire
from remuda.http.responses import check_match, etag_of
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.quota.ports import Ledger
from remuda.resources.conventions import ORGANIZATION, PROJECT
from remuda.resources.crud import find, until_written, witnessed
from remuda.store.contract import Store
from remuda.store.objects import Metadata

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
