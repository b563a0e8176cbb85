"""Users of an organization: global users, each with a membership there and the groups that it is in."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from remuda.access.checks import allow_in_organization
from remuda.access.principal import Context, asker_of
from remuda.http.pagination import SLICE
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import Group, OrganizationUser, User
from remuda.identity.permissions import permission
from remuda.identity.users import rules
from remuda.identity.users.changes import Changes
from remuda.identity.users.memberships import groups_of
from remuda.identity.users.rosters import Member, membership_of
from remuda.identity.users.sagas import CREATE_USER, UPDATE_USER, UserWork
from remuda.identity.users.schema import UserRead, UserWrite
from remuda.identity.users.tray import Tray
from remuda.kernel.clock import let_others_run
from remuda.kernel.errors import AnswerNotKept, NotFound
from remuda.kernel.tags import Tag
from remuda.resources.conventions import ORGANIZATION, USER
from remuda.resources.crud import each_once, find, find_in, witnessed
from remuda.resources.metadata import check_tags, stored_tags
from remuda.resources.tags import own_tags, replaced_tags
from remuda.store.contract import Store

USERS = "users"
"""The endpoint, as paths and rights have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """What can be asked about users."""

    store: Store
    changes: Changes
    tray: Tray

    async def list(self, context: Context, organization: str) -> Sequence[UserRead]:
        """Return the users of an organization, by subject. A membership without its user is passed over."""
        allow_in_organization(context.principal, permission(USERS, "read"), organization)
        await self.store.get(Organization, organization)
        groups = await self._groups(organization)
        found = []
        memberships = await self.store.list(OrganizationUser, labels={ORGANIZATION: organization})
        for number, membership in enumerate(memberships.items):
            if number % SLICE == SLICE - 1:
                await let_others_run()
            user = await find(self.store, User, membership.metadata.labels[USER])
            if user is None:
                continue
            found.append(rules.read_user(membership, user, groups.get(membership.name, ())))
        return sorted(found, key=lambda user: user.spec.subject)

    async def create(self, context: Context, organization: str, wanted: UserWrite) -> UserRead:
        """Make somebody a user of an organization. Who is one already keeps its state and gets the groups given."""
        allow_in_organization(context.principal, permission(USERS, "create"), organization)
        await self.store.get(Organization, organization)
        subject = rules.address(wanted.spec.subject)
        tags = own_tags(_tags(wanted), context.principal)
        member = Member(organization=organization, id=membership_of(organization, subject), subject=subject)
        work = UserWork(
            member=member,
            by=asker_of(context.principal),
            groups=each_once(wanted.spec.group_ids),
            state=wanted.spec.state,
            tags=tags,
        )
        return await self._answer(work, await self.changes.run(context, USERS, CREATE_USER, work))

    async def update(self, context: Context, organization: str, user: str, wanted: UserWrite) -> UserRead:
        """Replace the state and the groups of a user; what it logs in as stays, and so do its tags."""
        allow_in_organization(context.principal, permission(USERS, "update"), organization)
        membership, found = await self._user(organization, user)
        replaced_tags(found.spec.tags, _tags(wanted), context.principal)
        member = Member(organization=organization, id=membership.name, subject=found.spec.subject)
        work = UserWork(
            member=member,
            by=asker_of(context.principal),
            groups=each_once(wanted.spec.group_ids),
            state=wanted.spec.state,
        )
        return await self._answer(work, await self.changes.run(context, USERS, UPDATE_USER, work))

    async def delete(self, context: Context, organization: str, user: str) -> None:
        """End a membership. It gives no rights from now on, and groups forget it soon. The global user stays."""
        allow_in_organization(context.principal, permission(USERS, "delete"), organization)
        found = await self._membership(organization, user)
        await self.store.delete(OrganizationUser, found.name, uid=found.uid, log=witnessed(context, USERS, found))

    async def _answer(self, work: UserWork, done: str | None) -> UserRead:
        """Return what an operation made of a user; or, of one that was done earlier, what there is of it now."""
        written = self.tray.memberships.take(done)
        if written is not None:
            user = await self.store.get(User, written.metadata.labels[USER])
            return rules.read_user(written, user, sorted(work.groups))
        try:
            membership, user = await self._user(work.member.organization, work.member.id)
        except NotFound:
            raise AnswerNotKept from None
        return rules.read_user(membership, user, await groups_of(self.store, work.member))

    async def _user(self, organization: str, user: str) -> tuple[OrganizationUser, User]:
        membership = await self._membership(organization, user)
        found = await find(self.store, User, membership.metadata.labels[USER])
        if found is None:
            raise NotFound("User", user)
        return membership, found

    async def _membership(self, organization: str, user: str) -> OrganizationUser:
        await self.store.get(Organization, organization)
        found = await find_in(self.store, OrganizationUser, user, organization, marked=False)
        if found is None:
            raise NotFound("User", user)
        return found

    async def _groups(self, organization: str) -> Mapping[str, Sequence[str]]:
        """Return the groups of an organization by their users."""
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for group in (await self.store.list(Group, labels={ORGANIZATION: organization})).items:
            for user in group.spec.user_ids:
                groups[user].append(group.name)
        return groups


def _tags(wanted: UserWrite) -> tuple[Tag, ...]:
    if wanted.metadata is None:
        return ()
    check_tags(wanted.metadata.tags)
    return stored_tags(wanted.metadata)
