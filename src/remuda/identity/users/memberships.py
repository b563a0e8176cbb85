"""A member's groups are made exactly those that are wanted, one group after the other, so that it can be taken back.

Each group that is changed keeps a mark with the operation's id, in the same write. Undoing goes by those marks alone:
what somebody else has said of the group's members since, which removes the mark, stays.
"""

from collections.abc import Mapping, Sequence

from remuda.identity.kinds.claims import Mark
from remuda.identity.kinds.users import Group
from remuda.identity.users.claims import is_open
from remuda.identity.users.rosters import Member, is_in, marked, reverted
from remuda.kernel.errors import Conflict, Malformed, NotFound
from remuda.resources.crud import Turns, find, find_in
from remuda.store.contract import Store


async def find_group(store: Store, organization: str, name: str) -> Group:
    """Return a group that a request names, or raise Malformed."""
    group = await find_in(store, Group, name, organization, marked=False)
    if group is None:
        raise Malformed(f"group ID {name} does not exist", [("/spec/groupIDs", "names a group that does not exist")])
    return group


async def groups_of(store: Store, member: Member) -> Sequence[str]:
    """Return the groups that a member is in."""
    return (await store.list_names(Group, index=("member", member.value))).items


class Joining:
    """Changes who is in which group."""

    def __init__(self, store: Store) -> None:
        self._store, self._turns = store, Turns()

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
        async with self._turns.of(name):
            while True:
                group = await find_group(self._store, member.organization, name)
                if is_in(group, member) and (_has_mark(group, member, operation) or not is_new):
                    return
                if group.spec.role_ids != roles:
                    raise Conflict(Group.__name__, name)
                if await self._write(group, member, operation, inside=True):
                    return

    async def _leave(self, operation: str, member: Member, name: str) -> None:
        async with self._turns.of(name):
            while True:
                group = await find(self._store, Group, name)
                if group is None or not is_in(group, member):
                    return
                if await self._write(group, member, operation, inside=False):
                    return

    async def _take_back(self, operation: str, member: Member, name: str) -> None:
        async with self._turns.of(name):
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
