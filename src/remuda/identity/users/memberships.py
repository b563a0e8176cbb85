"""A member's groups are made exactly those that are wanted, one group after the other, so that it can be taken back.

Each group that is changed keeps a mark with the operation's id, in the same write. Undoing goes by those marks alone:
what somebody else has said of the group's members since, which removes the mark, stays.

Claims: an operation that changes a user or a service account together with its groups has it in hand meanwhile.

So of two such operations on one object the second is refused rather than mixed with the first. Nothing has to be let
go: a claim ends with its operation, however that ends.

A global user is made by the first operation that needs it, and is not taken back while another one needs it too.

Two organizations may make the same person a user at the same moment. So whoever comes while nobody is done yet writes
itself down beside the maker, and of all those the last one to be undone removes the user. Once one of them is done,
the user stays.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TypeVar

from msgspec.structs import replace

from remuda.identity.kinds.users import KEEPS_ACCOUNT, Claim, Group, Mark, OrganizationUser, ServiceAccount, User
from remuda.identity.users.rules import Member, claimed, is_in, marked, restored, reverted
from remuda.kernel.errors import AlreadyExists, Conflict, Malformed, NotFound
from remuda.operations.kinds import Operation, attempt_id
from remuda.resources.crud import KeyedLock, find, find_in
from remuda.store.contract import Store

ClaimedT = TypeVar("ClaimedT", OrganizationUser, ServiceAccount)


async def is_open(store: Store, operation: str) -> bool:
    """Tell whether an operation is under way, or still to be undone. One that nobody remembers is long closed."""
    try:
        return (await store.get(Operation, operation)).is_open
    except NotFound:
        return False


async def is_done(store: Store, operation: str) -> bool:
    """Tell whether an operation is done, so that nobody will ever undo it."""
    try:
        return (await store.get(Operation, operation)).phase == "done"
    except NotFound:
        return True


async def is_claimed(store: Store, claim: Claim | None) -> bool:
    """Tell whether an operation has an object in hand."""
    return claim is not None and await is_open(store, claim.operation)


async def was_done(store: Store, request: str) -> bool:
    """Tell whether a request, which may come again because its answer was lost, was carried out."""
    for attempt in count(1):
        try:
            if (await store.get(Operation, attempt_id(request, attempt))).phase == "done":
                return True
        except NotFound:
            return False
    raise AssertionError("there is an end to attempts")


async def take(
    store: Store,
    kind: type[ClaimedT],
    name: str,
    operation: str,
    change: Callable[[ClaimedT], ClaimedT] = lambda found: found,
) -> ClaimedT:
    """Change an object and have it in hand; return it as it is then. Raises Conflict while another operation has it."""
    while True:
        found = await store.get(kind, name)
        if found.spec.claim is not None and found.spec.claim.operation == operation:
            return found
        if found.is_deleting or await is_claimed(store, found.spec.claim):
            raise Conflict(kind.__name__, name)
        try:
            return await store.update(change(claimed(found, operation)))
        except Conflict:
            continue


async def give_back(store: Store, kind: type[ClaimedT], name: str, operation: str) -> None:
    """Put an object back as it was before an operation had it in hand; remove it if the operation made it."""
    while True:
        try:
            found = await store.get(kind, name)
            claim = found.spec.claim
            if claim is None or claim.operation != operation:
                return
            if claim.before is not None:
                await store.update(restored(found, claim.before))
            else:
                await _remove(store, kind, found)
        except Conflict:
            continue
        except NotFound:
            pass
        return


async def _remove(store: Store, kind: type[ClaimedT], found: ClaimedT) -> None:
    """Remove an object at once: nobody was told of it, so there is no token of its to revoke."""
    finalizers = tuple(each for each in found.metadata.finalizers if each != KEEPS_ACCOUNT)
    freed = await store.update(replace(found, metadata=replace(found.metadata, finalizers=finalizers)))
    await store.delete(kind, freed.name, uid=freed.uid, version=freed.version)


async def find_group(store: Store, organization: str, name: str) -> Group:
    """Return a group that a request names, or raise Malformed."""
    group = await find_in(store, Group, name, organization, include_deleting=False)
    if group is None:
        raise Malformed(f"group ID {name} does not exist", [("/spec/groupIDs", "names a group that does not exist")])
    return group


async def groups_of(store: Store, member: Member) -> Sequence[str]:
    """Return the groups that a member is in."""
    return (await store.list_names(Group, index=("member", member.value))).items


class Joining:
    """Changes who is in which group."""

    def __init__(self, store: Store) -> None:
        self._store, self._turns = store, KeyedLock()

    async def settle(
        self,
        operation: str,
        member: Member,
        wanted: Sequence[str],
        *,
        judged: Mapping[str, tuple[str, ...]],
        is_new: bool = False,
    ) -> None:
        """Put a member into the wanted groups and no others.

        `judged` are the roles, by group, that whoever asks may give: into no other group the member comes, and into
        none whose roles have changed since. A new member is put even into a group that has its id already: that is
        left over from an earlier member of this id, and somebody may be about to tidy it up.
        """
        for name in await groups_of(self._store, member):
            if name not in wanted:
                await self._leave(operation, member, name)
        for name in wanted:
            await self._join(operation, member, name, judged.get(name), is_new=is_new)

    async def restore(self, operation: str, member: Member) -> None:
        """Take back what an operation did to a member's groups."""
        for name in (await self._store.list_names(Group, index=("operation", operation))).items:
            await self._take_back(operation, member, name)

    async def _join(
        self, operation: str, member: Member, name: str, roles: tuple[str, ...] | None, *, is_new: bool
    ) -> None:
        async with self._turns.hold(name):
            while True:
                group = await find_group(self._store, member.organization, name)
                if is_in(group, member) and (_has_mark(group, member, operation) or not is_new):
                    return
                if group.spec.role_ids != roles:
                    raise Conflict(Group.__name__, name)
                if await self._write(group, member, operation, inside=True):
                    return

    async def _leave(self, operation: str, member: Member, name: str) -> None:
        async with self._turns.hold(name):
            while True:
                group = await find(self._store, Group, name)
                if group is None or not is_in(group, member):
                    return
                if await self._write(group, member, operation, inside=False):
                    return

    async def _take_back(self, operation: str, member: Member, name: str) -> None:
        async with self._turns.hold(name):
            while True:
                try:
                    group = await self._store.get(Group, name)
                    await self._store.update(reverted(group, member, operation))
                except Conflict:
                    continue
                except NotFound:
                    pass
                return

    async def _write(self, group: Group, member: Member, operation: str, *, inside: bool) -> bool:
        """Tell whether nobody else was faster."""
        others = [mark for mark in group.spec.marks if mark.member != member.value and await self._counts(mark)]
        try:
            await self._store.update(marked(group, member, operation, inside=inside, others=others))
        except Conflict:
            return False
        except NotFound:
            return not inside
        return True

    async def _counts(self, mark: Mark) -> bool:
        """Tell whether a mark may still be needed."""
        return await is_open(self._store, mark.operation)


def _has_mark(group: Group, member: Member, operation: str) -> bool:
    return any((mark.member, mark.operation) == (member.value, operation) for mark in group.spec.marks)


async def need(store: Store, user: User, operation: str) -> None:
    """Make a user, or see that nobody takes back the one that is there."""
    while True:
        try:
            found = await store.get(User, user.name)
            makers = found.spec.makers
            if makers and operation not in makers and not await _is_one_done(store, makers):
                await store.update(replace(found, spec=replace(found.spec, makers=(*makers, operation))))
        except NotFound:
            with suppress(AlreadyExists):
                await store.create(user)
            continue
        except Conflict:
            continue
        return


async def need_no_more(store: Store, user: str, operation: str) -> None:
    """Remove a user that an operation has made, unless somebody else needs it."""
    while True:
        try:
            found = await store.get(User, user)
            if operation not in found.spec.makers:
                return
            others = tuple(each for each in found.spec.makers if each != operation)
            if others or await store.referrers(User, found.name, limit=1):
                await store.update(replace(found, spec=replace(found.spec, makers=others)))
            else:
                await store.delete(User, found.name, uid=found.uid, version=found.version)
        except Conflict:
            continue
        except NotFound:
            pass
        return


async def _is_one_done(store: Store, operations: Sequence[str]) -> bool:
    return any([await is_done(store, each) for each in operations])
