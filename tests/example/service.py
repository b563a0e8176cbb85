"""The livery's port: what can be asked of it, over HTTP or in the same process.

Every method takes the context of the call, checks the caller's rights itself, and has at most one effect; what needs
more than one is an operation. What the caller may not see is told as design section 7 says: naming a foreign
organization or project is 403, another organization's object is 404, one's own without the right is 403.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from remuda.access.checks import ProjectExists, allow_everywhere, allow_in_project, allow_new_in_project
from remuda.access.principal import Context, Permission
from remuda.http.responses import Collection
from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.operations.kinds import OPEN, Operation
from remuda.operations.service import Operations
from remuda.resources.crud import audit_records, check_state, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.logs import Entry, Log
from remuda.store.objects import Resource
from tests.example import kinds, rules, wire
from tests.example.kinds import MOUNT, YARD, Ledger, Mount, Yard
from tests.example.permissions import permission
from tests.example.sagas import CREATE_MOUNT, NewMount
from tests.example.scoping import Filters, allow_for, allow_naming


@dataclass(frozen=True, slots=True, kw_only=True)
class Livery:
    """The service."""

    store: Store
    log: Log
    randomness: Randomness
    operations: Operations
    project_exists: ProjectExists

    # Yards: organization and project are in the path.

    async def list_yards(
        self, context: Context, organization: str, project: str
    ) -> Collection[Yard, list[wire.YardRead]]:
        """Return the yards of a project."""
        allow_in_project(context.principal, permission("yards", "read"), organization, project)
        labels = {kinds.ORGANIZATION: organization, kinds.PROJECT: project}
        return Collection(store=self.store, kind=Yard, view=rules.YARD_VIEW, labels=labels)

    async def create_yard(self, context: Context, organization: str, project: str, wanted: wire.YardWrite) -> Yard:
        """Make a yard. It is named after the request, so sending that again does not make another."""
        right = permission("yards", "create")
        await allow_new_in_project(context.principal, right, organization, project, exists=self.project_exists)
        rules.check_tags(wanted.metadata.tags)
        yard = rules.new_yard(context.operation, organization, project, wanted, creator=context.principal.actor_name)
        try:
            return await self.store.create(yard, log=audit_records(context, YARD.plural, yard))
        except AlreadyExists:  # the same request, whose answer was lost
            return await self.store.get(Yard, yard.name)

    async def get_yard(self, context: Context, organization: str, project: str, yard: str) -> Yard:
        """Return a yard."""
        return await self._yard(context, permission("yards", "read"), organization, project, yard)

    async def update_yard(
        self, context: Context, organization: str, project: str, yard: str, wanted: wire.YardWrite
    ) -> Yard:
        """Replace what a client may change of a yard."""

        async def change() -> Yard:
            found = await self._yard(context, permission("yards", "update"), organization, project, yard)
            check_state(context, found, rules.writable_yard(found))
            rules.check_tags(wanted.metadata.tags)
            rules.check_stalls(wanted.spec.stalls, await self._used(found))
            changed = rules.changed_yard(found, wanted)
            return await self.store.update(changed, log=audit_records(context, YARD.plural, found))

        return await retry_on_conflict(change)

    async def delete_yard(self, context: Context, organization: str, project: str, yard: str) -> None:
        """Ask for a yard to go, and for everything in it."""

        async def delete() -> None:
            found = await self._yard(context, permission("yards", "delete"), organization, project, yard)
            await self._delete(context, found, rules.writable_yard(found), YARD.plural)

        await retry_on_conflict(delete)

    async def add_reference(self, context: Context, organization: str, project: str, yard: str, reference: str) -> None:
        """Keep a yard from going, for somebody else."""

        async def change() -> None:
            right = permission("yards/references", "create")
            found = await self._yard(context, right, organization, project, yard)
            rules.check_reference(reference)
            kept = tuple(each for each in found.metadata.finalizers if each != reference)
            await self._write_finalizers(context, found, (*kept, reference))

        await retry_on_conflict(change)

    async def remove_reference(
        self, context: Context, organization: str, project: str, yard: str, reference: str
    ) -> None:
        """Let a yard go, as far as somebody else is concerned."""

        async def change() -> None:
            right = permission("yards/references", "delete")
            found = await self._yard(context, right, organization, project, yard)
            rules.check_reference(reference)
            kept = tuple(each for each in found.metadata.finalizers if each != reference)
            await self._write_finalizers(context, found, kept)

        await retry_on_conflict(change)

    # Mounts: organization and project are those of their yard.

    async def list_mounts(self, context: Context, filters: Filters) -> Collection[Mount, list[wire.MountRead]]:
        """Return the mounts that the caller may see."""
        right = permission("mounts", "read")
        await allow_naming(context.principal, right, filters, exists=self.project_exists)
        return Collection(
            store=self.store,
            kind=Mount,
            view=rules.MOUNT_VIEW,
            labels=filters.labels(),
            visible=filters.visible(context.principal, right),
        )

    async def create_mount(self, context: Context, wanted: wire.MountCreate) -> Mount:
        """Make a mount, if its yard has a stall for it."""
        yard = await self.store.get(Yard, wanted.spec.yard_id)
        allow_for(context.principal, permission("mounts", "create"), yard, "Yard")
        rules.check_tags(wanted.metadata.tags)
        rules.check_breed(wanted.spec.breed)
        mount = rules.mount_id(yard.name, wanted.metadata.name)
        await self.operations.run(
            CREATE_MOUNT,
            id=context.operation,
            actor=context.principal.actor_name,
            input=NewMount(
                yard=yard.name,
                name=wanted.metadata.name,
                breed=wanted.spec.breed,
                paddock=wanted.spec.paddock,
                description=wanted.metadata.description,
                tags=rules.stored_tags(wanted.metadata),
            ),
            trace_id=context.trace_id,
            log=context.audit(MOUNT.plural, mount, organization=kinds.scope_of(yard)[0]),
        )
        return await self.store.get(Mount, mount)

    async def get_mount(self, context: Context, mount: str) -> Mount:
        """Return a mount."""
        return await self._mount(context, permission("mounts", "read"), mount)

    async def update_mount(self, context: Context, mount: str, wanted: wire.MountUpdate) -> Mount:
        """Replace what a client may change of a mount."""

        async def change() -> Mount:
            found = await self._mount(context, permission("mounts", "update"), mount)
            check_state(context, found, rules.writable_mount(found))
            rules.check_tags(wanted.metadata.tags)
            rules.check_mount_update(found, wanted)
            changed = rules.changed_mount(found, wanted)
            return await self.store.update(changed, log=audit_records(context, MOUNT.plural, found))

        return await retry_on_conflict(change)

    async def delete_mount(self, context: Context, mount: str) -> None:
        """Ask for a mount to go."""

        async def delete() -> None:
            found = await self._mount(context, permission("mounts", "delete"), mount)
            await self._delete(context, found, rules.writable_mount(found), MOUNT.plural)

        await retry_on_conflict(delete)

    async def brand_mount(self, context: Context, mount: str) -> str:
        """Give a mount a new brand, and tell it this once."""
        brand = self.randomness.token_bytes(16).hex()

        async def change() -> None:
            found = await self._mount(context, permission("mounts", "update"), mount)
            branded = replace(found, spec=replace(found.spec, brand=Secret(brand)))
            await self.store.update(branded, log=audit_records(context, MOUNT.plural, found))

        await retry_on_conflict(change)
        return brand

    async def timeline(self, context: Context, mount: str) -> Sequence[Entry]:
        """Return what happened to a mount, oldest first."""
        found = await self._mount(context, permission("mounts", "read"), mount)
        entries: list[Entry] = []
        after: int | None = 0
        while after is not None:
            page = await self.log.read("timeline", f"{MOUNT.qualified}/{found.name}", after=after)
            entries += page.entries
            after = page.next
        return entries

    # Operations: for operators, everywhere.

    async def list_operations(self, context: Context) -> Sequence[Operation]:
        """Return the operations that are still open."""
        allow_everywhere(context.principal, permission("operations", "read"))
        return (await self.store.list(Operation, index=OPEN)).items

    async def retry_operation(self, context: Context, operation: str) -> Operation:
        """Try now to undo an operation that is stuck."""
        allow_everywhere(context.principal, permission("operations", "update"))
        return await self.operations.retry(operation)

    async def abandon_operation(self, context: Context, operation: str, reason: str) -> Operation:
        """Give up undoing an operation."""
        allow_everywhere(context.principal, permission("operations", "update"))
        return await self.operations.abandon(operation, reason=reason, actor=context.principal.actor_name)

    async def _yard(self, context: Context, right: Permission, organization: str, project: str, yard: str) -> Yard:
        allow_in_project(context.principal, right, organization, project)
        found = await self.store.get(Yard, yard)
        if kinds.scope_of(found) != (organization, project):
            raise NotFound("Yard", yard)
        return found

    async def _mount(self, context: Context, right: Permission, mount: str) -> Mount:
        found = await self.store.get(Mount, mount)
        allow_for(context.principal, right, found, "Mount")
        return found

    async def _used(self, yard: Yard) -> int:
        try:
            return (await self.store.get(Ledger, yard.name)).spec.used
        except NotFound:
            return 0

    async def _delete(self, context: Context, found: Resource, writable: msgspec.Struct, plural: str) -> None:
        check_state(context, found, writable)
        version = found.version if context.if_match is not None else None
        log = () if found.is_deleting else audit_records(context, plural, found)
        await self.store.delete(type(found), found.name, uid=found.uid, version=version, log=log)

    async def _write_finalizers(self, context: Context, yard: Yard, finalizers: tuple[str, ...]) -> None:
        changed = replace(yard, metadata=replace(yard.metadata, finalizers=finalizers))
        await self.store.update(changed, log=audit_records(context, YARD.plural, yard))
