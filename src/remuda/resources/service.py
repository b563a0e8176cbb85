"""Resource services: the use cases that the APIs of stored objects have in common.

Every use case takes the context of the call, checks the caller's permissions itself, and has at most one effect. A
subclass sets the class attributes and adds `create`, `update` and whatever else its resource has.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from remuda.access.checks import require_in_organization, require_new_in_project
from remuda.access.principal import Context, Permission, Verb
from remuda.http.responses import Collection, EtagView, StoredForm
from remuda.kernel.errors import Malformed, NotFound
from remuda.kernel.tags import Tag
from remuda.operations.kinds import Operation
from remuda.operations.saga import InputT, Saga
from remuda.operations.service import Operations
from remuda.resources.conventions import is_api_v2
from remuda.resources.crud import (
    audit_records,
    check_reference,
    check_state,
    ensure,
    get_in,
    reject_if_in_use,
    request_deletion,
    retry_on_conflict,
    without_finalizer,
)
from remuda.resources.query import ProjectQuery, filters_of, require_for
from remuda.store.contract import Store
from remuda.store.kinds import Kind
from remuda.store.logs import Record
from remuda.store.objects import ResourceT

ReadT = TypeVar("ReadT")

Find = Callable[[], Awaitable[ResourceT]]
"""Returns the object of a call, or raises unless the caller may change it."""
Update = Callable[[ResourceT], Awaitable[ResourceT]]
"""Returns what becomes of an object: itself if there is nothing to write. It raises if the request is invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceService(Generic[ResourceT, ReadT]):
    """The objects of one kind, as callers create, update and delete them."""

    kind: ClassVar[Kind[Any]]
    endpoint: ClassVar[str]
    """The endpoint of its permissions, with the service, such as `region:networks:v2`."""
    view: ClassVar[EtagView[Any, Any]]
    noun: ClassVar[str]
    is_kept_in_use: ClassVar[bool] = False
    """An object that is in use cannot be deleted."""

    store: Store

    async def insert(self, context: Context, new: ResourceT) -> ResourceT:
        """Create an object. If the same request created it before, and its response was lost, return that one."""
        return await ensure(self.store, new, self.audit(context, new))

    async def update_found(self, context: Context, find: Find[ResourceT], change: Update[ResourceT]) -> ResourceT:
        """Write what `change` makes of an object that matches If-Match. Both are repeated after a conflict."""

        async def write() -> ResourceT:
            found = await find()
            self.check_if_match(context, found)
            changed = await change(found)
            return found if changed is found else await self.save(context, found, changed)

        return await retry_on_conflict(write)

    async def delete_found(self, context: Context, find: Find[ResourceT]) -> None:
        """Request the deletion of an object, if it has the caller's If-Match."""

        async def delete() -> None:
            found = await find()
            await request_deletion(
                self.store,
                context,
                found,
                self.writable(context, found),
                self.audit(context, found),
                check=lambda: self.check_deletion(found),
                unused=self.is_kept_in_use,
                if_unchanged=self.is_kept_in_use,
            )
            if not found.is_deleting:
                await self.after_deletion(found)

        await retry_on_conflict(delete)

    async def check_deletion(self, found: ResourceT) -> None:
        """Raise an error if an object must not be deleted now."""
        if self.is_kept_in_use:
            await reject_if_in_use(self.store, found, f"{self.noun} is in use and cannot be deleted")

    async def after_deletion(self, found: ResourceT) -> None:
        """Do what follows the requested deletion of an object: nothing, unless a subclass says so."""

    async def add_finalizer(
        self, context: Context, find: Find[ResourceT], reference: str, *, own: str, if_deleting: str
    ) -> None:
        """Add a reference of another service as a finalizer; `if_deleting` rejects an object that is being deleted."""

        async def add(found: ResourceT) -> ResourceT:
            check_reference(reference, own=own)
            if found.is_deleting:
                raise Malformed(if_deleting)
            before = found.metadata.finalizers
            if reference in before:
                return found
            return replace(found, metadata=replace(found.metadata, finalizers=(*before, reference)))

        await self.update_found(context, find, add)

    async def remove_finalizer(self, context: Context, find: Find[ResourceT], reference: str, *, own: str) -> None:
        """Remove a reference of another service."""

        async def remove(found: ResourceT) -> ResourceT:
            check_reference(reference, own=own)
            return without_finalizer(found, reference) if reference in found.metadata.finalizers else found

        await self.update_found(context, find, remove)

    async def save(self, context: Context, found: ResourceT, changed: ResourceT) -> ResourceT:
        """Write an object with the audit record of the caller's change."""
        return await self.store.update(changed, log=self.audit(context, found))

    def audit(self, context: Context, found: ResourceT) -> Sequence[Record]:
        """Return the audit record of a write to an object."""
        return audit_records(context, self.kind.plural, found)

    def check_if_match(self, context: Context, found: ResourceT) -> None:
        """Raise PreconditionFailed unless an object has the caller's If-Match, if there is one."""
        check_state(context, found, self.writable(context, found))

    def writable(self, context: Context, found: ResourceT) -> msgspec.Struct:
        """Return what determines the ETag of an object that the caller reads."""
        return self.view.of(context.principal, found).writable(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationResourceService(ResourceService[ResourceT, ReadT]):
    """Objects of organizations, whose paths name the organization, so that the permission is checked first.

    A caller without it gets Forbidden, whether the object exists or not, and a caller with it NotFound for an object of
    another organization.
    """

    async def delete(self, context: Context, organization: str, id: str) -> None:  # noqa: A002  the usual name
        """Request the deletion of an object, if it has the caller's If-Match."""
        await self.delete_found(context, lambda: self.get_authorized(context, "delete", organization, id))

    async def update_with(
        self,
        context: Context,
        organization: str,
        id: str,  # noqa: A002  the usual name
        change: Update[ResourceT],
    ) -> ResourceT:
        """Write what `change` makes of an object that matches If-Match."""
        return await self.update_found(
            context, lambda: self.get_authorized(context, "update", organization, id), change
        )

    async def get_authorized(self, context: Context, verb: Verb, organization: str, id: str) -> ResourceT:  # noqa: A002  the usual name
        """Return an object that the caller has this permission for."""
        self.authorize(context, verb, organization)
        found: ResourceT = await get_in(self.store, self.kind.type, id, organization)
        return found

    def authorize(self, context: Context, verb: Verb, organization: str) -> None:
        """Require a permission in an organization."""
        require_in_organization(context.principal, Permission(self.endpoint, verb), organization)


class ProjectLookup(Protocol):
    """Knows which projects exist."""

    async def has_project(self, organization: str, project: str) -> bool:
        """Return whether an organization has a project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectResourceService(ResourceService[ResourceT, ReadT]):
    """Objects of projects. They are found by their ids in all projects that the caller may read."""

    is_versioned: ClassVar[bool] = True
    """Only objects that the supported API version created exist for callers."""
    has_tag_labels: ClassVar[bool] = False
    """The tags of services are stored as labels, too."""

    identity: ProjectLookup

    async def list(self, context: Context, query: ProjectQuery) -> Collection[ResourceT, list[ReadT]]:
        """Return the objects that match a query and that the caller may read."""
        permission = Permission(self.endpoint, "read")
        filters = filters_of(query, is_labelled=self.has_tag_labels)
        has_visible_labels = filters.visible_labels(context.principal, permission)
        is_match = filters.visible(has_visible_labels, _tags)
        return Collection(
            store=self.store,
            kind=self.kind.type,
            view=self.view,
            reader=context.principal,
            selection=(self.endpoint, query),
            labels=filters.labels(),
            scopes=filters.scopes(context.principal, permission),
            stored_form=None if filters.tags else StoredForm(self.endpoint, has_visible_labels),
            visible=lambda found: self.is_shown(found) and is_match(found),
        )

    async def get(self, context: Context, id: str) -> ResourceT:  # noqa: A002  the usual name
        """Return an object that the caller may read."""
        return await self.get_authorized(context, "read", id)

    async def get_authorized(self, context: Context, verb: Verb, id: str) -> ResourceT:  # noqa: A002  the usual name
        """Return an object that the caller may read and has this permission for."""
        found = await self.load(id)
        self.authorize(context, "read", found)
        if verb != "read":
            self.authorize(context, verb, found)
        return found

    async def load(self, id: str) -> ResourceT:  # noqa: A002  the usual name
        """Return an object without a permission check, or raise NotFound, also if it is not shown to callers."""
        found: ResourceT = await self.store.get(self.kind.type, id)
        if not self.is_shown(found):
            raise NotFound(self.kind.name, id)
        return found

    def is_shown(self, found: ResourceT) -> bool:
        """Return whether an object exists for callers, whatever their permissions."""
        return not self.is_versioned or is_api_v2(found)

    async def run_create(
        self,
        context: Context,
        operations: Operations,
        saga: Saga[Any, InputT],
        input: InputT,  # noqa: A002  as in `Operations.run`
        *,
        organization: str,
    ) -> ResourceT:
        """Create an object by an operation, and return it."""
        done = await operations.run(
            saga,
            id=context.operation,
            actor=context.principal.actor_name,
            actor_name=context.principal.display_name,
            input=input,
            trace_id=context.trace_id,
            log=context.audit(self.kind.plural, saga.subject(input)[1], organization=organization),
        )
        return await self.created_by(done)

    async def created_by(self, operation: Operation) -> ResourceT:
        """Return the object that an operation has created."""
        created: ResourceT = await self.store.get(self.kind.type, operation.spec.subject)
        return created

    async def update_with(
        self,
        context: Context,
        id: str,  # noqa: A002  the usual name
        change: Update[ResourceT],
        *,
        check: Callable[[ResourceT], Awaitable[object]] | None = None,
    ) -> ResourceT:
        """Write what `change` makes of an object that matches If-Match and is not deleting; `check` runs first."""

        async def find() -> ResourceT:
            found = await self.get_authorized(context, "update", id)
            if check is not None:
                await check(found)
            self.reject_if_deleting(found)
            return found

        return await self.update_found(context, find, change)

    async def delete(self, context: Context, id: str) -> None:  # noqa: A002  the usual name
        """Request the deletion of an object, if it has the caller's If-Match."""
        await self.delete_found(context, lambda: self.get_authorized(context, "delete", id))

    def authorize(self, context: Context, verb: Verb, found: Any) -> None:
        """Require a permission for an object, or for the one on which a new object will depend."""
        require_for(context.principal, Permission(self.endpoint, verb), found)

    async def authorize_create(self, context: Context, organization: str, project: str) -> None:
        """Require the permission to create an object in a project, which must exist."""
        await require_new_in_project(
            context.principal,
            Permission(self.endpoint, "create"),
            organization,
            project,
            exists=self.identity.has_project,
        )

    def reject_if_deleting(self, found: ResourceT) -> None:
        """Raise Malformed for an object that is being deleted."""
        if found.is_deleting:
            raise Malformed(f"{self.noun} is being deleted")


def _tags(resource: Any) -> Sequence[Tag]:
    tags: Sequence[Tag] = resource.spec.tags
    return tags
