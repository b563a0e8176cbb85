"""Controllers that clean up after the deletion of users, service accounts and groups, and revoke tokens.

Deletions clean up themselves (`remuda.identity.references`). The controllers do it after a crash, for other processes
and for declined invitations. An unknown id grants nothing, so no operation waits for this. Tokens that a service
account no longer has are rejected at once where the account is read; for services that verify tokens elsewhere, they
are revoked here.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from msgspec.structs import replace

from remuda.identity.kinds.tenancy import Project
from remuda.identity.kinds.users import (
    TOKENS_FINALIZER,
    Group,
    OrganizationUser,
    ReplacedToken,
    ServiceAccount,
    account_member,
    user_member,
)
from remuda.identity.references import without_members
from remuda.identity.tokens.service import Tokens
from remuda.kernel.errors import NotFound
from remuda.reconcile.controller import Controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Done, ReconcileContext, Result
from remuda.reconcile.sources import Source, indexed, names
from remuda.resources.conventions import ORGANIZATION, organization_of
from remuda.resources.crud import exists, find, without_finalizer
from remuda.store.contract import Store
from remuda.store.objects import Resource

_MAX_READS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupController:
    """Removes deleted members from groups."""

    store: Store

    async def __call__(self, key: str, context: ReconcileContext) -> Result:
        group = await find(self.store, Group, key)
        if group is None:
            return Done()
        users, accounts = group.spec.user_ids, group.spec.service_account_ids
        deleted = {user_member(each) for each in await self._missing(group, OrganizationUser, users)}
        deleted |= {account_member(each) for each in await self._missing(group, ServiceAccount, accounts)}
        if deleted:
            cleaned = replace(group, spec=without_members(group.spec, organization_of(group), deleted.__contains__))
            with suppress(NotFound):  # the group went in this very moment
                await self.store.update(cleaned, log=[context.event(group, "MembersRemoved", members=sorted(deleted))])
        return Done()

    async def _missing(self, group: Group, kind: type[Resource], ids: Sequence[str]) -> Collection[str]:
        """Return the ids without an object. For many ids, reading the names of all objects is faster."""
        if len(ids) <= _MAX_READS:
            return [each for each in ids if not await exists(self.store, kind, each, include_deleting=False)]
        where = {ORGANIZATION: organization_of(group)}
        return set(ids) - {name async for name in names(self.store, kind, labels=where)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectController:
    """Removes deleted groups from projects."""

    store: Store

    async def __call__(self, key: str, context: ReconcileContext) -> Result:
        project = await find(self.store, Project, key, include_deleting=False)
        if project is None:
            return Done()
        groups = project.spec.group_ids
        kept = tuple([each for each in groups if await exists(self.store, Group, each, include_deleting=False)])
        if kept != groups:
            deleted = sorted(set(groups) - set(kept))
            cleaned = replace(project, spec=replace(project.spec, group_ids=kept))
            with suppress(NotFound):  # the project was removed meanwhile
                await self.store.update(cleaned, log=[context.event(project, "GroupsRemoved", groups=deleted)])
        return Done()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountController:
    """Revokes the former tokens of service accounts, and removes the finalizer of deleted ones."""

    store: Store
    tokens: Tokens

    async def __call__(self, key: str, context: ReconcileContext) -> Result:
        account = await find(self.store, ServiceAccount, key)
        if account is None:
            return Done()
        if account.is_deleting and TOKENS_FINALIZER in account.metadata.finalizers:
            await self._revoke([*account.spec.replaced, *_current_token(account)])
            unprotected = without_finalizer(account, TOKENS_FINALIZER)
            with suppress(NotFound):  # another process, whose leadership has ended, has done it
                await self.store.update(unprotected, log=[context.event(account, "TokensRevoked")])
        elif account.spec.replaced and not account.is_deleting:
            await self._revoke(account.spec.replaced)
            cleaned = replace(account, spec=replace(account.spec, replaced=()))
            with suppress(NotFound):  # the account was removed meanwhile
                await self.store.update(cleaned, log=[context.event(account, "TokensRevoked")])
        return Done()

    async def _revoke(self, tokens: Sequence[ReplacedToken]) -> None:
        """Revoke tokens before they are forgotten, so that it can be repeated."""
        for token in tokens:
            await self.tokens.revoke(token.id, expires=token.expires)


def controllers(
    ports: ReconcilePorts, tokens: Tokens, *, settings: ControllerSettings | None = None
) -> Sequence[Controller]:
    store = ports.store
    members = indexed(store, Group, "member", lambda user: user_member(user.name))
    accounts = indexed(store, Group, "member", lambda account: account_member(account.name))
    projects = indexed(store, Project, "group", lambda group: group.name)
    return (
        Controller(
            "group-members",
            GroupController(store=store),
            kind=Group,
            ports=ports,
            sources=(
                Source(Group),
                Source(OrganizationUser, when=_is_deleting, keys=members),
                Source(ServiceAccount, when=_is_deleting, keys=accounts),
            ),
            settings=settings,
        ),
        Controller(
            "project-groups",
            ProjectController(store=store),
            kind=Project,
            ports=ports,
            sources=(Source(Project), Source(Group, when=_is_deleting, keys=projects)),
            settings=settings,
        ),
        Controller(
            "account-tokens",
            AccountController(store=store, tokens=tokens),
            kind=ServiceAccount,
            ports=ports,
            settings=settings,
        ),
    )


def _is_deleting(resource: Resource) -> bool:
    return resource.is_deleting


def _current_token(account: ServiceAccount) -> Sequence[ReplacedToken]:
    spec = account.spec
    if not spec.token_id or spec.expiry is None:
        return ()
    return (ReplacedToken(id=spec.token_id, expires=spec.expiry),)
