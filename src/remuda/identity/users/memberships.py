"""Group memberships of users and service accounts, and the locks of operations that change them.

A changed group records the member change with the operation's id, in the same write. A rollback reverts these only: a
later change of the members by another caller removes the record, and stays.

An operation locks a user or a service account, so that a second one on the same object is rejected. The lock needs no
release, since it ends with its operation.

A global user is created by the first operation that needs it. Operations of other organizations that need it before the
first is done add themselves to its creators, and the last of them to be rolled back removes the user. Once one is done,
the user stays.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec.structs import replace

from remuda.identity.kinds.users import TOKENS_FINALIZER, Group, OperationLock, OrganizationUser, ServiceAccount, User
from remuda.identity.references import OrganizationReferences
from remuda.identity.users.rules import Member, changed_by, is_in, locked_by, restored, reverted
from remuda.kernel.errors import AlreadyExists, Conflict, Malformed, NotFound
from remuda.kernel.locks import KeyedLock
from remuda.operations.kinds import Operation, attempt_id
from remuda.resources.crud import exists, find, find_in, without_finalizer
from remuda.store.contract import Store

LockedT = TypeVar("LockedT", OrganizationUser, ServiceAccount)


async def is_open(store: Store, operation: str) -> bool:
    """Return whether an operation is running or has yet to be rolled back. An unknown one is closed."""
    found = await find(store, Operation, operation)
    return found is not None and found.is_open


async def is_done(store: Store, operation: str) -> bool:
    """Return whether an operation is done, so that it will not be rolled back."""
    found = await find(store, Operation, operation)
    return found is None or found.phase == "done"


async def is_locked(store: Store, lock: OperationLock | None) -> bool:
    return lock is not None and await is_open(store, lock.operation)


async def was_done(store: Store, request: str) -> bool:
    """Return whether a request, which may be repeated because its response was lost, was carried out."""
    first = await find(store, Operation, request)
    latest = None if first is None else await find(store, Operation, attempt_id(request, first.status.attempts))
    return latest is not None and latest.phase == "done"


async def lock_and_change(
    store: Store,
    kind: type[LockedT],
    name: str,
    operation: str,
    change: Callable[[LockedT], LockedT] = lambda found: found,
) -> LockedT:
    """Lock an object for an operation and change it. Raises Conflict while another operation has it."""
    while True:
        found = await store.get(kind, name)
        if found.spec.lock is not None and found.spec.lock.operation == operation:
            return found
        if found.is_deleting or await is_locked(store, found.spec.lock):
            raise Conflict(kind.__name__, name)
        try:
            return await store.update(change(locked_by(found, operation)))
        except Conflict:
            continue


async def restore(store: Store, kind: type[LockedT], name: str, operation: str) -> None:
    """Restore an object to its state before an operation, or remove it if the operation created it."""

    async def write() -> None:
        found = await store.get(kind, name)
        lock = found.spec.lock
        if lock is None or lock.operation != operation:
            return
        if lock.previous is not None:
            await store.update(restored(found, lock.previous))
        else:
            await _remove(store, kind, found)

    with suppress(NotFound):
        await _repeat_until_written(write)


async def _repeat_until_written(write: Callable[[], Awaitable[None]]) -> None:
    """Repeat a read and write after every conflict: a rollback does not give up."""
    while True:
        with suppress(Conflict):
            return await write()


async def _remove(store: Store, kind: type[LockedT], found: LockedT) -> None:
    """Remove an object without revoking its token, which no client has received."""
    unprotected = await store.update(without_finalizer(found, TOKENS_FINALIZER))
    await store.delete(kind, unprotected.name, uid=unprotected.uid, version=unprotected.version)


async def find_group(store: Store, organization: str, name: str) -> Group:
    """Return a group that a request names, or raise Malformed."""
    group = await find_in(store, Group, name, organization, include_deleting=False)
    if group is None:
        raise Malformed(f"group ID {name} does not exist", [("/spec/groupIDs", "names a group that does not exist")])
    return group


async def groups_of(store: Store, member: Member) -> Sequence[str]:
    return (await store.list_names(Group, index=("member", member.value))).items


class Memberships:
    """Changes of the groups of a member."""

    def __init__(self, references: OrganizationReferences) -> None:
        self.references, self._locks = references, KeyedLock()
        self._store = references.store

    async def update(
        self,
        operation: str,
        member: Member,
        desired: Sequence[str],
        *,
        granted_roles: Mapping[str, tuple[str, ...]],
        is_new: bool = False,
    ) -> None:
        """Put a member into the desired groups, and no others.

        `granted_roles` has the roles, by group, that the caller may grant: the member is added to no other group, and
        to none whose roles have changed since. A new member is also added to a group that has its id already, which is
        left from an earlier member of this id and may be about to be cleaned up. One that was deleted meanwhile is not
        added.
        """
        for name in await groups_of(self._store, member):
            if name not in desired:
                await self._remove(operation, member, name)
        for name in desired:
            await self._add(operation, member, name, granted_roles.get(name), is_new=is_new)

    async def restore(self, operation: str, member: Member) -> None:
        """Revert the changes of an operation to a member's groups. A member that was deleted meanwhile stays out."""
        for name in (await self._store.list_names(Group, index=("operation", operation))).items:
            await self._revert(operation, member, name)

    async def _add(
        self, operation: str, member: Member, name: str, roles: tuple[str, ...] | None, *, is_new: bool
    ) -> None:
        with self.references.writing(member.organization):
            async with self._locks.acquire(name):
                while await self._exists(member):
                    group = await find_group(self._store, member.organization, name)
                    if is_in(group, member) and (_has_mark(group, member, operation) or not is_new):
                        return
                    if group.spec.role_ids != roles:
                        raise Conflict(Group.__name__, name)
                    if await self._write(group, member, operation, inside=True):
                        return

    async def _exists(self, member: Member) -> bool:
        """Return whether a member exists: one that was deleted meanwhile stays out of groups."""
        kind = OrganizationUser if member.subject else ServiceAccount
        return await exists(self._store, kind, member.id, include_deleting=False)

    async def _remove(self, operation: str, member: Member, name: str) -> None:
        async with self._locks.acquire(name):
            while True:
                group = await find(self._store, Group, name)
                if group is None or not is_in(group, member):
                    return
                if await self._write(group, member, operation, inside=False):
                    return

    async def _revert(self, operation: str, member: Member, name: str) -> None:
        async def write() -> None:
            group, is_left = await self._store.get(Group, name), await self._exists(member)
            await self._store.update(reverted(group, member, operation, is_left=is_left))

        with self.references.writing(member.organization), suppress(NotFound):
            async with self._locks.acquire(name):
                await _repeat_until_written(write)

    async def _write(self, group: Group, member: Member, operation: str, *, inside: bool) -> bool:
        """Write a group, and return whether there was no conflict."""
        others = [
            entry
            for entry in group.spec.member_changes
            if entry.member != member.value and await is_open(self._store, entry.operation)
        ]
        try:
            await self._store.update(changed_by(group, member, operation, inside=inside, others=others))
        except Conflict:
            return False
        except NotFound:
            return not inside
        return True


def _has_mark(group: Group, member: Member, operation: str) -> bool:
    return any((entry.member, entry.operation) == (member.value, operation) for entry in group.spec.member_changes)


async def ensure_user(store: Store, user: User, operation: str) -> None:
    """Create a user, or ensure that the existing one is not rolled back."""
    while True:
        try:
            found = await store.get(User, user.name)
            creators = found.spec.creators
            if creators and operation not in creators and not await _is_one_done(store, creators):
                await store.update(replace(found, spec=replace(found.spec, creators=(*creators, operation))))
        except NotFound:
            with suppress(AlreadyExists):
                await store.create(user)
            continue
        except Conflict:
            continue
        return


async def remove_unneeded_user(store: Store, user: str, operation: str) -> None:
    """Remove a user that an operation created, unless another operation needs it."""

    async def write() -> None:
        found = await store.get(User, user)
        if operation not in found.spec.creators:
            return
        others = tuple(each for each in found.spec.creators if each != operation)
        if others or await store.referrers(User, found.name, limit=1):
            await store.update(replace(found, spec=replace(found.spec, creators=others)))
        else:
            await store.delete(User, found.name, uid=found.uid, version=found.version)

    with suppress(NotFound):
        await _repeat_until_written(write)


async def _is_one_done(store: Store, operations: Sequence[str]) -> bool:
    return any([await is_done(store, each) for each in operations])
