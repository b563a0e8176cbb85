"""References that the store does not protect: of groups to their members, and of projects to their groups.

A deletion is responded to when no group or project refers to the deleted object any more, also if an earlier attempt
crashed after the deletion itself. Controllers remove what a crash leaves (`remuda.identity.users.controller`).

A request that writes references validates them first. If it has validated one before the deletion, and writes it after
that, the deletion waits for it: as in read-copy-update, every write that runs has ended before references are removed.
A later one finds the object deleted. Between processes, this is the controllers' work.

A deletion is one write. The removals that follow are work that its request waits for and that a controller would do
otherwise, so they are no part of the request: a client that disconnects does not stop them.
"""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic

from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.identity.kinds.tenancy import PROJECT, Project
from remuda.identity.kinds.users import (
    GROUP,
    Group,
    GroupSpec,
    OrganizationUser,
    ServiceAccount,
    Subject,
    account_member,
    membership_id,
    user_id,
    user_member,
)
from remuda.kernel.errors import Conflict, NotFound
from remuda.kernel.locks import RunningWrites
from remuda.resources.crud import exists, find, requested_event
from remuda.store.contract import Store
from remuda.store.kinds import Kind
from remuda.store.logs import Record
from remuda.store.objects import Resource, ResourceT


def without_members(spec: GroupSpec, organization: str, matches: Callable[[str], bool]) -> GroupSpec:
    """Return a group without the local members whose index value `member` matches."""

    def is_kept(subject: Subject) -> bool:
        return not subject.is_local or not matches(user_member(membership_id(organization, user_id(subject.id))))

    return replace(
        spec,
        user_ids=tuple(each for each in spec.user_ids if not matches(user_member(each))),
        service_account_ids=tuple(each for each in spec.service_account_ids if not matches(account_member(each))),
        subjects=tuple(filter(is_kept, spec.subjects)),
    )


@dataclass(frozen=True, slots=True)
class OrganizationReferences:
    """References within organizations. A process has one of these, which all its writers of references share."""

    store: Store
    _writes: RunningWrites = field(default_factory=RunningWrites)

    def writing(self, organization: str) -> AbstractContextManager[None]:
        """Make deletions in an organization wait for a write of references, which includes their validation."""
        return self._writes.add(organization)

    @asynccontextmanager
    async def member_deletion(
        self, context: Context, organization: str, kind: type[OrganizationUser] | type[ServiceAccount], deleted: str
    ) -> AsyncIterator[None]:
        """Delete a membership or service account within this: then, or if it is gone, it is removed from groups."""
        member = user_member(deleted) if kind is OrganizationUser else account_member(deleted)

        def without(group: Group) -> Group:
            return replace(group, spec=without_members(group.spec, organization, member.__eq__))

        def event(group: Group) -> Record:
            return requested_event(context, GROUP, group, "MembersRemoved", members=[member])

        async with self._deletion(organization, kind, deleted, _Referrers(GROUP, ("member", member), without, event)):
            yield

    @asynccontextmanager
    async def group_deletion(self, context: Context, organization: str, deleted: str) -> AsyncIterator[None]:
        """Delete a group within this: then, or if it is gone, it is removed from projects."""

        def without(project: Project) -> Project:
            kept = tuple(each for each in project.spec.group_ids if each != deleted)
            return replace(project, spec=replace(project.spec, group_ids=kept))

        def event(project: Project) -> Record:
            return requested_event(context, PROJECT, project, "GroupsRemoved", groups=[deleted])

        async with self._deletion(
            organization, Group, deleted, _Referrers(PROJECT, ("group", deleted), without, event)
        ):
            yield

    @asynccontextmanager
    async def _deletion(
        self, organization: str, kind: type[Resource], deleted: str, referrers: "_Referrers[Any]"
    ) -> AsyncIterator[None]:
        try:
            yield
        except NotFound:  # an attempt that crashed may have deleted it
            await self._remove(organization, kind, deleted, referrers)
            raise
        await self._remove(organization, kind, deleted, referrers)

    async def _remove(
        self, organization: str, kind: type[Resource], deleted: str, referrers: "_Referrers[Any]"
    ) -> None:
        """Remove an object from all its referrers, unless it exists (again)."""
        await self._writes.wait(organization)
        if names := (await self.store.list_names(referrers.kind.type, index=referrers.index)).items:
            removal = self._remove_from(names, kind, deleted, referrers)
            await asyncio.shield(asyncio.create_task(removal, context=contextvars.Context()))

    async def _remove_from(
        self, names: Sequence[str], kind: type[Resource], deleted: str, referrers: "_Referrers[Any]"
    ) -> None:
        async def write(name: str) -> None:
            while (found := await find(self.store, referrers.kind.type, name)) is not None:
                changed = referrers.without(found)
                if changed == found or await exists(self.store, kind, deleted, include_deleting=False):
                    return
                with suppress(Conflict, NotFound):
                    await self.store.update(changed, log=[referrers.event(found)])

        await asyncio.gather(*map(write, names))


@dataclass(frozen=True, slots=True)
class _Referrers(Generic[ResourceT]):
    """Objects that refer to a deleted one."""

    kind: Kind[ResourceT]
    index: tuple[str, str]
    """Index entry under which they are found."""
    without: Callable[[ResourceT], ResourceT]
    """Returns an object without the reference."""
    event: Callable[[ResourceT], Record]
    """Returns the timeline event of the removal."""
