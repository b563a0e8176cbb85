"""Project policies: the protection that a project requires for all its instances.

A caller who may read a project's instances may read its policy. Setting it requires the permission to update the
projects of the organization. An instance is protected by its own spec or by the policy of its project. The cascade from
the deletion of a network or project ignores the protection.
"""

from dataclasses import dataclass
from typing import Annotated

import msgspec

from remuda.access.checks import require_in_organization, require_in_project
from remuda.access.principal import Context, Permission
from remuda.compute.kinds import POLICY, ComputeInstance, ProjectPolicy, Protection
from remuda.compute.names import permission
from remuda.http.responses import Rendered, check_if_match, etag_of
from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import Wire
from remuda.kernel.errors import AlreadyExists, Conflict, Forbidden, NotFound
from remuda.resources.conventions import ORGANIZATION, PROJECT, project_of
from remuda.resources.crud import audit_records, find, retry_on_conflict
from remuda.resources.schema import OrganizationPath, ProjectId
from remuda.resources.service import ProjectLookup
from remuda.store.contract import Store
from remuda.store.objects import Metadata


class ProjectPolicySchema(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The protection of each instance of a project, in addition to the instance's own."""

    deletion: Annotated[
        bool, msgspec.Meta(description="No instance of the project can be deleted while this is set.", examples=[True])
    ] = False
    plan: Annotated[
        bool, msgspec.Meta(description="An update that destroys data has to carry the hash of its plan.")
    ] = False


class PolicyPath(OrganizationPath, frozen=True, rename={"project": "projectID"}):
    """A project."""

    project: ProjectId


MAY_READ = permission("instances", "read")
MAY_WRITE = Permission("identity:projects", "update")


async def policy_of(store: Store, project: str) -> Protection:
    """Return the protection that a project requires; none without a stored policy."""
    found = await find(store, ProjectPolicy, project, include_deleting=False)
    return Protection() if found is None else found.spec


async def protection_of(store: Store, instance: ComputeInstance) -> Protection:
    """Return the protection of an instance by its own spec or by the policy of its project."""
    own, policy = instance.spec.protection, await policy_of(store, project_of(instance))
    return Protection(deletion=own.deletion or policy.deletion, plan=own.plan or policy.plan)


async def check_deletion_allowed(store: Store, instance: ComputeInstance) -> None:
    """Raise Forbidden if an instance is protected from deletion; the message says how to remove the protection."""
    if instance.spec.protection.deletion:
        raise Forbidden(
            "The instance is protected from deletion: set spec.protection.deletion to false, then delete it."
        )
    if (await policy_of(store, project_of(instance))).deletion:
        raise Forbidden(
            "The policy of the project protects the instance from deletion: set deletion to false in the policy, "
            "then delete it."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """Policies of all projects."""

    store: Store
    identity: ProjectLookup

    async def get(self, context: Context, organization: str, project: str) -> Rendered[ProjectPolicySchema]:
        """Return the policy of a project; without a stored one, it requires nothing."""
        require_in_project(context.principal, MAY_READ, organization, project)
        await self._check_project(organization, project)
        return _rendered(await find(self.store, ProjectPolicy, project))

    async def put(
        self, context: Context, organization: str, project: str, body: ProjectPolicySchema
    ) -> Rendered[ProjectPolicySchema]:
        require_in_organization(context.principal, MAY_WRITE, organization)
        await self._check_project(organization, project)

        async def write() -> Rendered[ProjectPolicySchema]:
            found = await find(self.store, ProjectPolicy, project)
            check_if_match(context, _etag(found), kind="ProjectPolicy", name=project)
            return _rendered(await self._write(context, found or _new(organization, project), body))

        return await retry_on_conflict(write)

    async def _write(self, context: Context, policy: ProjectPolicy, body: ProjectPolicySchema) -> ProjectPolicy:
        spec = Protection(deletion=body.deletion, plan=body.plan)
        changed = ProjectPolicy(metadata=policy.metadata, spec=spec)
        log = audit_records(context, POLICY.plural, changed)
        if policy.version:
            return await self.store.update(changed, log=log)
        try:
            return await self.store.create(changed, log=log)
        except AlreadyExists:  # another request has created it: retry
            raise Conflict("ProjectPolicy", policy.name) from None

    async def _check_project(self, organization: str, project: str) -> None:
        if not await self.identity.has_project(organization, project):
            raise NotFound("Project", project)


def _new(organization: str, project: str) -> ProjectPolicy:
    return ProjectPolicy(metadata=Metadata(name=project, labels={ORGANIZATION: organization, PROJECT: project}))


def _read(policy: ProjectPolicy | None) -> ProjectPolicySchema:
    spec = Protection() if policy is None else policy.spec
    return ProjectPolicySchema(deletion=spec.deletion, plan=spec.plan)


def _etag(policy: ProjectPolicy | None) -> str:
    """Return the ETag of a policy. One that is not stored has one too, so that of two first writes one is rejected."""
    return etag_of("" if policy is None else policy.uid, _read(policy))


def _rendered(policy: ProjectPolicy | None) -> Rendered[ProjectPolicySchema]:
    return Rendered(msgspec.json.encode(_read(policy)), etag=_etag(policy))


_POLICY = "/api/v2/organizations/{organizationID}/projects/{projectID}/policy"

ROUTES: list[AnyRoute] = [
    Route(
        method="GET",
        path=_POLICY,
        name="get_project_policy",
        summary="Read the policy of a project",
        scope="project",
        permission=MAY_READ,
        path_type=PolicyPath,
        response_type=ProjectPolicySchema,
        service=Policies,
        calls=Policies.get,
    ),
    Route(
        method="PUT",
        path=_POLICY,
        name="update_project_policy",
        summary="Set the policy of a project",
        description="The policy takes effect at once, for every instance of the project. A field that is left out is "
        "false.",
        scope="organization",
        permission=MAY_WRITE,
        path_type=PolicyPath,
        body_type=ProjectPolicySchema,
        response_type=ProjectPolicySchema,
        is_conditional=True,
        service=Policies,
        calls=Policies.put,
    ),
]
