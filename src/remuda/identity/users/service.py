"""Service accounts: for automation, each with one token that is shown once."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from remuda.access.checks import allow_in_organization
from remuda.access.principal import Context, Principal, asker_of
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import Group, ServiceAccount
from remuda.identity.permissions import permission
from remuda.identity.tokens.service import Tokens
from remuda.identity.users import rules
from remuda.identity.users.changes import Changes
from remuda.identity.users.memberships import groups_of
from remuda.identity.users.rosters import Member
from remuda.identity.users.sagas import CREATE_ACCOUNT, UPDATE_ACCOUNT, AccountWork
from remuda.identity.users.schema import AccountRead, AccountWrite
from remuda.identity.users.tray import Tray
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AnswerNotKept, Forbidden, NotFound
from remuda.resources.conventions import ORGANIZATION, organization_of
from remuda.resources.crud import each_once, get_in, until_written, witnessed
from remuda.resources.metadata import check_tags, stored_tags
from remuda.resources.tags import own_tags, replaced_tags
from remuda.store.contract import Store

ACCOUNTS = "serviceaccounts"
"""The endpoint, as paths and rights have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """What can be asked about service accounts."""

    store: Store
    clock: Clock
    changes: Changes
    tokens: Tokens
    tray: Tray

    async def list(self, context: Context, organization: str) -> Sequence[AccountRead]:
        """Return the service accounts of an organization; to one of them that may not read them, itself."""
        try:
            allow_in_organization(context.principal, permission(ACCOUNTS, "read"), organization)
        except Forbidden:
            own = await self._own(context.principal, organization)
            if own is None:
                raise
            return [rules.read_account(own, await self._groups_of(own))]
        await self.store.get(Organization, organization)
        groups = await self._groups(organization)
        accounts = (await self.store.list(ServiceAccount, labels={ORGANIZATION: organization})).items
        return [rules.read_account(each, groups.get(each.name, ())) for each in accounts if not each.is_marked]

    async def create(self, context: Context, organization: str, wanted: AccountWrite) -> AccountRead:
        """Make a service account, named after the request, and show its token this once."""
        allow_in_organization(context.principal, permission(ACCOUNTS, "create"), organization)
        await self.store.get(Organization, organization)
        check_tags(wanted.metadata.tags)
        own_tags(stored_tags(wanted.metadata), context.principal)
        member = Member(organization=organization, id=context.operation)
        work = _work(context, member, wanted)
        done = await self.changes.run(context, ACCOUNTS, CREATE_ACCOUNT, work)
        made, issued = self.tray.accounts.take(done), self.tray.tokens.take(done)
        if made is None or issued is None:
            raise AnswerNotKept
        return rules.read_account(made, sorted(work.groups), issued.token)

    async def update(self, context: Context, organization: str, account: str, wanted: AccountWrite) -> AccountRead:
        """Replace what a client may change of a service account, and its groups. Its token stays."""
        allow_in_organization(context.principal, permission(ACCOUNTS, "update"), organization)
        found = await self._account(organization, account)
        check_tags(wanted.metadata.tags)
        replaced_tags(found.spec.tags, stored_tags(wanted.metadata), context.principal)
        member = Member(organization=organization, id=found.name)
        work = _work(context, member, wanted)
        changed = self.tray.accounts.take(await self.changes.run(context, ACCOUNTS, UPDATE_ACCOUNT, work))
        if changed is not None:
            return rules.read_account(changed, sorted(work.groups))
        try:  # it was done earlier: this is what there is of it now
            found = await self._account(organization, account)
        except NotFound:
            raise AnswerNotKept from None
        return rules.read_account(found, await self._groups_of(found))

    async def delete(self, context: Context, organization: str, account: str) -> None:
        """Delete a service account. Its token is refused from now on; groups forget it soon."""
        allow_in_organization(context.principal, permission(ACCOUNTS, "delete"), organization)
        found = await self._account(organization, account)
        await self.store.delete(ServiceAccount, found.name, uid=found.uid, log=witnessed(context, ACCOUNTS, found))

    async def rotate(self, context: Context, organization: str, account: str) -> AccountRead:
        """Give a service account another token, and show it this once. The old one is refused from now on.

        That is one write: the account knows which token is good for it. Where somebody checks tokens without seeing
        the account, the old one ends when the controller has revoked it.
        """
        principal = context.principal
        own = await self._own(principal, organization)
        if own is None or own.name != account:
            allow_in_organization(principal, permission(ACCOUNTS, "update"), organization)
        issued = await self.tokens.issue_for_account(account, organization)

        async def change() -> ServiceAccount:
            found = await self._account(organization, account)
            changed = rules.rotated(found, issued, principal.subject, self.clock.now())
            return await self.store.update(changed, log=witnessed(context, ACCOUNTS, found))

        rotated = await until_written(change)
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
        return await get_in(self.store, ServiceAccount, account, organization, marked=False)

    async def _groups_of(self, account: ServiceAccount) -> Sequence[str]:
        return await groups_of(self.store, Member(organization=organization_of(account), id=account.name))

    async def _groups(self, organization: str) -> Mapping[str, Sequence[str]]:
        """Return the groups of an organization by their service accounts."""
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for group in (await self.store.list(Group, labels={ORGANIZATION: organization})).items:
            for account in group.spec.service_account_ids:
                groups[account].append(group.name)
        return groups


def _work(context: Context, member: Member, wanted: AccountWrite) -> AccountWork:
    return AccountWork(
        member=member,
        by=asker_of(context.principal),
        groups=each_once(wanted.spec.group_ids),
        metadata=wanted.metadata,
    )
