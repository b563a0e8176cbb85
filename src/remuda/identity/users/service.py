"""Services of users and service accounts, and what changing them has in common.

A user of an organization is a global user with a membership there and the groups that it is in. A service account is
for automation and has one token, which is shown once.

A change that needs several writes is an operation. A caller who adds a user to a group grants its roles, and needs the
permission to grant each of them, as for a change of the group itself. To leave a user in a group grants nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from remuda.access.checks import require_in_organization
from remuda.access.principal import Context, Principal, Verb, requester_of
from remuda.http.page_reads import PageRead, Reading
from remuda.http.pagination import SLICE
from remuda.identity.consent import is_agreed
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import Group, GroupSpec, OrganizationUser, ServiceAccount, User
from remuda.identity.names import permission
from remuda.identity.references import OrganizationReferences
from remuda.identity.tokens.service import Tokens
from remuda.identity.users import rules
from remuda.identity.users.memberships import find_group, groups_of, was_done
from remuda.identity.users.rules import Member, is_in, membership_of
from remuda.identity.users.sagas import (
    CREATE_ACCOUNT,
    CREATE_USER,
    UPDATE_ACCOUNT,
    UPDATE_USER,
    AccountInput,
    MemberInput,
    UserInput,
    UserPorts,
    UserResults,
)
from remuda.identity.users.schema import AccountRead, AccountWrite, UserRead, UserWrite
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import Forbidden, NotFound, ResponseNotStored
from remuda.kernel.locks import KeyedLock
from remuda.kernel.tags import Tag
from remuda.operations.saga import Saga
from remuda.operations.service import Operations
from remuda.resources.conventions import ORGANIZATION, USER, organization_of
from remuda.resources.crud import audit_records, each_once, exists, find, find_in, get_in, retry_on_conflict
from remuda.resources.metadata import new_tags, updated_tags
from remuda.store.contract import Store

InputT = TypeVar("InputT", bound=MemberInput)


class RoleGrants(Protocol):
    """Check of who may grant which roles, implemented by `Permissions`."""

    async def check_grantable(self, principal: Principal, role_ids: Sequence[str], organization: str) -> None:
        """Raise unless this principal may grant these roles in this organization."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOperations:
    """Operations of users and service accounts."""

    store: Store
    operations: Operations
    grants: RoleGrants
    locks: KeyedLock = field(default_factory=KeyedLock)

    async def run(self, context: Context, plural: str, saga: Saga[UserPorts, InputT], work: InputT) -> str | None:
        """Run an operation and return its id; None if it was done before and only its response was lost."""
        member = work.member
        async with self.locks.acquire(member.value):
            if await was_done(self.store, context.operation):
                return None
            validated = await self._validate_groups(context.principal, member, work.groups)
            done = await self.operations.run(
                saga,
                id=context.operation,
                actor=context.principal.actor_name,
                actor_name=context.principal.display_name,
                input=msgspec.structs.replace(work, granted_roles=validated),
                trace_id=context.trace_id,
                log=context.audit(plural, member.id, organization=member.organization),
            )
            return done.name

    async def check_token(self, principal: Principal, account: ServiceAccount) -> None:
        """Raise unless the caller may grant all roles of a service account, as who gets its token has them."""
        organization = organization_of(account)
        names = await groups_of(self.store, Member(organization=organization, id=account.name))
        groups = [await find(self.store, Group, name) for name in names]
        roles = each_once(role for group in groups if group is not None for role in group.spec.role_ids)
        await self.grants.check_grantable(principal, roles, organization)

    async def _validate_groups(
        self, principal: Principal, member: Member, requested: Sequence[str]
    ) -> dict[str, tuple[str, ...]]:
        """Return the roles, by group, of the groups to join; raise unless the caller may grant them."""
        groups = [await find_group(self.store, member.organization, name) for name in requested]
        kind = OrganizationUser if member.subject else ServiceAccount
        is_new = not await exists(self.store, kind, member.id)  # then groups with its id mean an earlier member
        joined = {group.name: group.spec.role_ids for group in groups if is_new or not is_in(group, member)}
        if roles := each_once(role for each in joined.values() for role in each):
            await self.grants.check_grantable(principal, roles, member.organization)
        return joined


USERS = "users"
"""Endpoint in paths and permissions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """Service of the users of organizations.

    A caller who may write the users of every organization speaks for the person. A membership that another caller
    creates is an invitation, which counts from the time the person agrees (`remuda.identity.consent`).
    """

    store: Store
    changes: MemberOperations
    results: UserResults
    references: OrganizationReferences

    async def list(self, context: Context, organization: str) -> PageRead[list[UserRead]]:
        """Return the users of an organization, by subject. A membership without its user is skipped."""
        require_in_organization(context.principal, permission(USERS, "read"), organization)
        await self.store.get(Organization, organization)
        return PageRead(partial(self._list, organization))

    async def _list(self, organization: str, reading: Reading) -> Sequence[UserRead]:
        async with reading.page():
            return await self._users(organization, reading)

    async def _users(self, organization: str, reading: Reading) -> Sequence[UserRead]:
        groups = await _groups_by_member(self.store, organization, lambda spec: spec.user_ids)
        found = []
        memberships = await self.store.list(OrganizationUser, labels={ORGANIZATION: organization})
        reading.count(len(memberships.items))
        for number, membership in enumerate(memberships.items):
            if number % SLICE == SLICE - 1:
                await yield_to_loop()
            user = await find(self.store, User, membership.metadata.labels[USER])
            if user is None:
                continue
            found.append(await self._read(membership, user, groups.get(membership.name, ())))
        return sorted(found, key=lambda user: user.spec.subject)

    async def create(self, context: Context, organization: str, body: UserWrite) -> UserRead:
        """Create a user of an organization. An existing one keeps its state and gets the groups given."""
        require_in_organization(context.principal, permission(USERS, "create"), organization)
        await self.store.get(Organization, organization)
        subject = rules.email_address(body.spec.subject)
        tags = new_tags(body.metadata, context.principal) if body.metadata is not None else ()
        member = Member(organization=organization, id=membership_of(organization, subject), subject=subject)
        work = _user_input(context, "create", member, body, tags)
        return await self._response(work, await self.changes.run(context, USERS, CREATE_USER, work))

    async def update(self, context: Context, organization: str, user: str, body: UserWrite) -> UserRead:
        """Replace the state and the groups of a user. Its subject and its tags stay."""
        require_in_organization(context.principal, permission(USERS, "update"), organization)
        membership, found = await self._user(organization, user)
        if body.metadata is not None:
            updated_tags(found.spec.tags, body.metadata, context.principal)
        member = Member(organization=organization, id=membership.name, subject=found.spec.subject)
        work = _user_input(context, "update", member, body)
        return await self._response(work, await self.changes.run(context, USERS, UPDATE_USER, work))

    async def delete(self, context: Context, organization: str, user: str) -> None:
        """Delete a membership, and remove it from groups. It grants nothing from now on. The user remains."""
        require_in_organization(context.principal, permission(USERS, "delete"), organization)
        async with self.references.member_deletion(context, organization, OrganizationUser, user):
            found = await self._membership(organization, user)
            log = audit_records(context, USERS, found)
            await self.store.delete(OrganizationUser, found.name, uid=found.uid, log=log)

    async def _response(self, work: UserInput, done: str | None) -> UserRead:
        """Return the user that an operation wrote; or, if it was done earlier, its present state."""
        written = self.results.memberships.pop(done)
        if written is not None:
            user = await self.store.get(User, written.metadata.labels[USER])
            return await self._read(written, user, sorted(work.groups))
        try:
            membership, user = await self._user(work.member.organization, work.member.id)
        except NotFound:
            raise ResponseNotStored from None
        return await self._read(membership, user, await groups_of(self.store, work.member))

    async def _read(self, membership: OrganizationUser, user: User, groups: Sequence[str]) -> UserRead:
        has_agreed = await is_agreed(self.store, membership, user.spec.subject)
        return rules.read_user(membership, user, groups, has_agreed=has_agreed)

    async def _user(self, organization: str, user: str) -> tuple[OrganizationUser, User]:
        membership = await self._membership(organization, user)
        found = await find(self.store, User, membership.metadata.labels[USER])
        if found is None:
            raise NotFound("User", user)
        return membership, found

    async def _membership(self, organization: str, user: str) -> OrganizationUser:
        await self.store.get(Organization, organization)
        found = await find_in(self.store, OrganizationUser, user, organization, include_deleting=False)
        if found is None:
            raise NotFound("User", user)
        return found


ACCOUNTS = "serviceaccounts"
"""Endpoint in paths and permissions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """Service of service accounts."""

    store: Store
    clock: Clock
    changes: MemberOperations
    tokens: Tokens
    results: UserResults
    references: OrganizationReferences

    async def list(self, context: Context, organization: str) -> PageRead[list[AccountRead]]:
        """Return the service accounts of an organization. One of them without the permission gets itself."""
        try:
            require_in_organization(context.principal, permission(ACCOUNTS, "read"), organization)
        except Forbidden:
            own = await self._own(context.principal, organization)
            if own is None:
                raise
            return PageRead(partial(self._list_own, own))
        await self.store.get(Organization, organization)
        return PageRead(partial(self._list, organization))

    async def _list_own(self, own: ServiceAccount, reading: Reading) -> Sequence[AccountRead]:
        async with reading.page(1):
            return [rules.read_account(own, await self._groups_of(own))]

    async def _list(self, organization: str, reading: Reading) -> Sequence[AccountRead]:
        async with reading.page():
            groups = await _groups_by_member(self.store, organization, lambda spec: spec.service_account_ids)
            accounts = (await self.store.list(ServiceAccount, labels={ORGANIZATION: organization})).items
            reading.count(len(accounts))
            return [rules.read_account(each, groups.get(each.name, ())) for each in accounts if not each.is_deleting]

    async def create(self, context: Context, organization: str, body: AccountWrite) -> AccountRead:
        """Create a service account, named after the request, and return its token this once."""
        require_in_organization(context.principal, permission(ACCOUNTS, "create"), organization)
        await self.store.get(Organization, organization)
        new_tags(body.metadata, context.principal)
        member = Member(organization=organization, id=context.operation)
        work = _account_input(context, member, body)
        done = await self.changes.run(context, ACCOUNTS, CREATE_ACCOUNT, work)
        created, issued = self.results.accounts.pop(done), self.results.tokens.pop(done)
        if created is None or issued is None:
            raise ResponseNotStored
        return rules.read_account(created, sorted(work.groups), issued.token)

    async def update(self, context: Context, organization: str, account: str, body: AccountWrite) -> AccountRead:
        """Replace the metadata and the groups of a service account. Its token stays."""
        require_in_organization(context.principal, permission(ACCOUNTS, "update"), organization)
        found = await self._account(organization, account)
        updated_tags(found.spec.tags, body.metadata, context.principal)
        member = Member(organization=organization, id=found.name)
        work = _account_input(context, member, body)
        changed = self.results.accounts.pop(await self.changes.run(context, ACCOUNTS, UPDATE_ACCOUNT, work))
        if changed is not None:
            return rules.read_account(changed, sorted(work.groups))
        try:  # it was done earlier: respond with its present state
            found = await self._account(organization, account)
        except NotFound:
            raise ResponseNotStored from None
        return rules.read_account(found, await self._groups_of(found))

    async def delete(self, context: Context, organization: str, account: str) -> None:
        """Delete a service account, and remove it from groups. Its token is rejected from now on."""
        require_in_organization(context.principal, permission(ACCOUNTS, "delete"), organization)
        async with self.references.member_deletion(context, organization, ServiceAccount, account):
            found = await self._account(organization, account)
            log = audit_records(context, ACCOUNTS, found)
            await self.store.delete(ServiceAccount, found.name, uid=found.uid, log=log)

    async def rotate(self, context: Context, organization: str, account: str) -> AccountRead:
        """Replace the token of a service account, and return the new one this once. The old one is rejected at once.

        Who gets the token of another account gets the roles of its groups, and needs the permission to grant them.

        That is one write: the account names its valid token. Services that verify tokens without reading the account
        reject the old one when the controller has revoked it.
        """
        principal = context.principal
        own = await self._own(principal, organization)
        if own is None or own.name != account:
            require_in_organization(principal, permission(ACCOUNTS, "update"), organization)
            await self.changes.check_token(principal, await self._account(organization, account))
        issued = await self.tokens.issue_for_account(account, organization)

        async def change() -> ServiceAccount:
            found = await self._account(organization, account)
            changed = rules.rotated(found, issued, principal, self.clock.now())
            return await self.store.update(changed, log=audit_records(context, ACCOUNTS, found))

        rotated = await retry_on_conflict(change)
        return rules.read_account(rotated, await self._groups_of(rotated), issued.token)

    async def _own(self, principal: Principal, organization: str) -> ServiceAccount | None:
        """Return the caller, if it is a service account of this organization."""
        if principal.type != "service":
            return None
        try:
            return await self._account(organization, principal.subject)
        except NotFound:
            return None

    async def _account(self, organization: str, account: str) -> ServiceAccount:
        await self.store.get(Organization, organization)
        return await get_in(self.store, ServiceAccount, account, organization, include_deleting=False)

    async def _groups_of(self, account: ServiceAccount) -> Sequence[str]:
        return await groups_of(self.store, Member(organization=organization_of(account), id=account.name))


async def _groups_by_member(
    store: Store, organization: str, members_of: Callable[[GroupSpec], Sequence[str]]
) -> Mapping[str, Sequence[str]]:
    """Return the groups of an organization by their members, which are users or service accounts."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for group in (await store.list(Group, labels={ORGANIZATION: organization})).items:
        for member in members_of(group.spec):
            groups[member].append(group.name)
    return groups


def _user_input(
    context: Context, verb: Verb, member: Member, requested: UserWrite, tags: tuple[Tag, ...] = ()
) -> UserInput:
    return UserInput(
        member=member,
        requester=requester_of(context.principal),
        groups=each_once(requested.spec.group_ids),
        state=requested.spec.state,
        tags=tags,
        is_invitation=permission(USERS, verb) not in context.principal.access.everywhere,
    )


def _account_input(context: Context, member: Member, requested: AccountWrite) -> AccountInput:
    return AccountInput(
        member=member,
        requester=requester_of(context.principal),
        groups=each_once(requested.spec.group_ids),
        metadata=requested.metadata,
    )
