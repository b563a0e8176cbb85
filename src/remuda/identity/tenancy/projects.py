"""Projects, and what keeps them: references of other services, which are finalizers of the project."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from remuda.access.checks import (
    allow_everywhere,
    allow_in_organization,
    allow_in_project,
    allow_naming_organization,
    is_allowed_in_project,
)
from remuda.access.principal import Context, Permission
from remuda.http.responses import Collection
from remuda.identity.kinds.tenancy import IN_CARE, PROJECT, Organization, Project
from remuda.identity.kinds.users import Group
from remuda.identity.permissions import permission
from remuda.identity.tenancy import rules
from remuda.identity.tenancy.schema import ProjectRead, ProjectWrite
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Malformed
from remuda.kernel.ids import is_id
from remuda.resources import conventions as labels
from remuda.resources.crud import (
    check_reference,
    check_state,
    find_in,
    get_in,
    request_deletion,
    until_written,
    witnessed,
)
from remuda.resources.metadata import check_tags
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Projects:
    """What can be asked of projects."""

    store: Store
    clock: Clock

    def list_all(self, context: Context) -> Collection[Project, list[ProjectRead]]:
        """Return the projects of all organizations, to those who may read every one of them."""
        allow_everywhere(context.principal, permission("projects", "read"))
        return Collection(store=self.store, kind=Project, view=rules.PROJECT_VIEW)

    async def list_in(self, context: Context, organization: str) -> Collection[Project, list[ProjectRead]]:
        """Return the projects of an organization that the caller may read: perhaps none, but that is no refusal."""
        right, principal = permission("projects", "read"), context.principal
        allow_naming_organization(principal, right, organization)
        await self.store.get(Organization, organization)

        def visible(project: Project) -> bool:
            return is_allowed_in_project(principal, right, organization, project.name)

        return Collection(
            store=self.store,
            kind=Project,
            view=rules.PROJECT_VIEW,
            labels={labels.ORGANIZATION: organization},
            visible=None if _is_allowed_in_all(context, right, organization) else visible,
        )

    async def create(self, context: Context, organization: str, wanted: ProjectWrite) -> Project:
        """Make a project. It is named after the request, so sending that again does not make another."""
        allow_in_organization(context.principal, permission("projects", "create"), organization)
        home = await self.store.get(Organization, organization)
        await self._check(organization, wanted)
        project = rules.new_project(context.operation, home, wanted, context.principal)
        try:
            return await self.store.create(project, log=witnessed(context, PROJECT.plural, project))
        except AlreadyExists:  # the same request, whose answer was lost
            return await self.store.get(Project, project.name)

    async def get(self, context: Context, organization: str, project: str) -> Project:
        return await self._project(context, permission("projects", "read"), organization, project)

    async def update(self, context: Context, organization: str, project: str, wanted: ProjectWrite) -> None:
        """Replace what a client may change of a project."""

        async def change() -> None:
            found = await self._project(context, permission("projects", "update"), organization, project)
            check_state(context, found, rules.writable_project(found))
            await self._check(organization, wanted)
            changed = rules.changed_project(found, wanted, context.principal, self.clock.now())
            await self.store.update(changed, log=witnessed(context, PROJECT.plural, found))

        await until_written(change)

    async def delete(self, context: Context, organization: str, project: str) -> None:
        """Ask for a project to go, as soon as nothing needs it."""

        async def delete() -> None:
            found = await self._project(context, permission("projects", "delete"), organization, project)
            log = witnessed(context, PROJECT.plural, found)
            await request_deletion(self.store, context, found, rules.writable_project(found), log)

        await until_written(delete)

    async def add_reference(self, context: Context, organization: str, project: str, reference: str) -> None:
        """Keep a project from going, for something of another service."""

        async def change() -> None:
            right = permission("projects/references", "create")
            found = await self._project(context, right, organization, project)
            check_reference(reference, own=IN_CARE)
            if found.is_marked:
                raise Malformed("the project is being deleted: nothing new can keep it, choose another")
            if reference not in found.metadata.finalizers:
                await self._write_finalizers(context, found, (*found.metadata.finalizers, reference))

        await until_written(change)

    async def remove_reference(self, context: Context, organization: str, project: str, reference: str) -> None:
        """Let a project go, as far as something of another service is concerned."""

        async def change() -> None:
            right = permission("projects/references", "delete")
            found = await self._project(context, right, organization, project)
            check_reference(reference, own=IN_CARE)
            if reference in found.metadata.finalizers:
                kept = tuple(each for each in found.metadata.finalizers if each != reference)
                await self._write_finalizers(context, found, kept)

        await until_written(change)

    async def _project(self, context: Context, right: Permission, organization: str, project: str) -> Project:
        allow_in_project(context.principal, right, organization, project)
        return await get_in(self.store, Project, project, organization)

    async def _write_finalizers(self, context: Context, project: Project, finalizers: Sequence[str]) -> None:
        changed = replace(project, metadata=replace(project.metadata, finalizers=tuple(finalizers)))
        await self.store.update(changed, log=witnessed(context, PROJECT.plural, project))

    async def _check(self, organization: str, wanted: ProjectWrite) -> None:
        check_tags(wanted.metadata.tags)
        await self._check_groups(organization, wanted.spec.group_ids)

    async def _check_groups(self, organization: str, groups: Iterable[str]) -> None:
        for group in groups:
            if not await self._has_group(organization, group):
                raise Malformed(f"group ID {group} does not exist")

    async def _has_group(self, organization: str, group: str) -> bool:
        # Only an id is a name that can be looked for.
        return is_id(group) and await find_in(self.store, Group, group, organization, marked=False) is not None


def _is_allowed_in_all(context: Context, right: Permission, organization: str) -> bool:
    access = context.principal.access
    inside = access.organizations.get(organization)
    return right in access.everywhere or (inside is not None and right in inside.permissions)
