"""What is tidied up after somebody or something was deleted, and which tokens are revoked.

An id that nobody has gives no rights, so nothing waits for this: a deleted user or service account leaves its groups, a
deleted group leaves its projects. A service account's earlier tokens, and all of a deleted one's, are refused at once
where the account itself is seen; for those who check tokens elsewhere they are revoked here.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from msgspec.structs import replace

from remuda.identity.kinds.tenancy import Project
from remuda.identity.kinds.users import (
    KEEPS_ACCOUNT,
    Group,
    OrganizationUser,
    ReplacedToken,
    ServiceAccount,
    account_member,
    user_member,
)
from remuda.identity.tokens.service import Tokens
from remuda.identity.users.rules import without
from remuda.kernel.errors import NotFound
from remuda.reconcile.controller import Controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Done, ReconcileContext, Result
from remuda.reconcile.sources import Source, names, through
from remuda.resources.conventions import ORGANIZATION, organization_of
from remuda.resources.crud import exists, find
from remuda.store.contract import Store
from remuda.store.objects import Resource

_FEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupController:
    """Removes from groups whoever is gone."""

    store: Store

    async def __call__(self, key: str, run: ReconcileContext) -> Result:
        """Look after one group."""
        group = await find(self.store, Group, key)
        if group is None:
            return Done()
        users, accounts = group.spec.user_ids, group.spec.service_account_ids
        gone = {user_member(each) for each in await self._missing(group, OrganizationUser, users)}
        gone |= {account_member(each) for each in await self._missing(group, ServiceAccount, accounts)}
        if gone:
            tidied = replace(group, spec=without(group.spec, organization_of(group), gone.__contains__))
            with suppress(NotFound):  # the group went in this very moment
                await self.store.update(tidied, log=[run.event(group, "MembersGone", members=sorted(gone))])
        return Done()

    async def _missing(self, group: Group, kind: type[Resource], ids: Sequence[str]) -> Collection[str]:
        """Return those ids that nobody has. Of many, it is faster to read the names of all that there are."""
        if len(ids) <= _FEW:
            return [each for each in ids if not await exists(self.store, kind, each, include_deleting=False)]
        where = {ORGANIZATION: organization_of(group)}
        return set(ids) - {name async for name in names(self.store, kind, labels=where)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectController:
    """Removes from projects the groups that are gone."""

    store: Store

    async def __call__(self, key: str, run: ReconcileContext) -> Result:
        """Look after one project."""
        project = await find(self.store, Project, key, include_deleting=False)
        if project is None:
            return Done()
        groups = project.spec.group_ids
        kept = tuple([each for each in groups if await exists(self.store, Group, each, include_deleting=False)])
        if kept != groups:
            gone = sorted(set(groups) - set(kept))
            tidied = replace(project, spec=replace(project.spec, group_ids=kept))
            with suppress(NotFound):  # the project went in this very moment
                await self.store.update(tidied, log=[run.event(project, "GroupsGone", groups=gone)])
        return Done()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountController:
    """Revokes the tokens that service accounts have no more, and lets go of deleted ones after that."""

    store: Store
    tokens: Tokens

    async def __call__(self, key: str, run: ReconcileContext) -> Result:
        """Look after one service account."""
        account = await find(self.store, ServiceAccount, key)
        if account is None:
            return Done()
        if account.is_deleting and KEEPS_ACCOUNT in account.metadata.finalizers:
            await self._revoke([*account.spec.replaced, *_present(account)])
            finalizers = tuple(each for each in account.metadata.finalizers if each != KEEPS_ACCOUNT)
            freed = replace(account, metadata=replace(account.metadata, finalizers=finalizers))
            with suppress(NotFound):  # another process that believes to lead was faster
                await self.store.update(freed, log=[run.event(account, "TokensRevoked")])
        elif account.spec.replaced and not account.is_deleting:
            await self._revoke(account.spec.replaced)
            forgotten = replace(account, spec=replace(account.spec, replaced=()))
            with suppress(NotFound):  # the account went in this very moment
                await self.store.update(forgotten, log=[run.event(account, "TokensRevoked")])
        return Done()

    async def _revoke(self, tokens: Sequence[ReplacedToken]) -> None:
        """Revoke first, forget after: whatever comes in between, it can be done again."""
        for token in tokens:
            await self.tokens.revoke(token.id, expires=token.expires)


def drivers(
    ports: ReconcilePorts, tokens: Tokens, *, settings: ControllerSettings | None = None
) -> Sequence[Controller]:
    """Return the controllers of this room."""
    store = ports.store
    members = through(store, Group, "member", lambda user: user_member(user.name))
    accounts = through(store, Group, "member", lambda account: account_member(account.name))
    projects = through(store, Project, "group", lambda group: group.name)
    return (
        Controller(
            "group-members",
            GroupController(store=store),
            kind=Group,
            ports=ports,
            sources=(
                Source(Group),
                Source(OrganizationUser, when=_is_marked, keys=members),
                Source(ServiceAccount, when=_is_marked, keys=accounts),
            ),
            settings=settings,
        ),
        Controller(
            "project-groups",
            ProjectController(store=store),
            kind=Project,
            ports=ports,
            sources=(Source(Project), Source(Group, when=_is_marked, keys=projects)),
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


def _is_marked(resource: Resource) -> bool:
    return resource.is_deleting


def _present(account: ServiceAccount) -> Sequence[ReplacedToken]:
    spec = account.spec
    if not spec.token_id or spec.expiry is None:
        return ()
    return (ReplacedToken(id=spec.token_id, expires=spec.expiry),)
