"""What takes more than one effect: to make or change a user or a service account, together with its groups.

To delete one takes a single effect and is no operation: an id that nobody has gives no rights in a group, and a
controller removes it there.

The tray: where steps leave, for whoever runs the operation, what they wrote and the token that goes with it.

Answers are made of that. What is stored may be gone again when it is read, if somebody else removes it in that very
moment, and whoever asked would be told that there is no such user, of one that it has just made. And a token must not
be stored at all. Nothing is lost with the memory: an operation whose process dies is undone, and its token was never
shown to anybody.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from remuda.access.principal import Requester
from remuda.identity.kinds.common import UserState
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import (
    ORGANIZATION_USER,
    SERVICE_ACCOUNT,
    Claim,
    OrganizationUser,
    ServiceAccount,
    user_id,
)
from remuda.identity.tokens.service import Issued, Tokens
from remuda.identity.users import rules
from remuda.identity.users.memberships import Joining, give_back, need, need_no_more, take
from remuda.identity.users.rules import Member
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, NotFound, ReferenceRejected, Unavailable
from remuda.kernel.tags import Tag
from remuda.operations.saga import AnyBoundSaga, BoundSaga, Saga, Step, Work
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store

T = TypeVar("T")


class Shelf(Generic[T]):
    """Things of one kind, by the operations that they were made for."""

    def __init__(self) -> None:
        self._things: dict[str, T] = {}

    def put(self, operation: str, thing: T) -> None:
        """Leave something."""
        self._things[operation] = thing

    def take(self, operation: str | None) -> T | None:
        """Take it away; there is nothing if the operation was done earlier (None), or elsewhere."""
        return None if operation is None else self._things.pop(operation, None)


@dataclass(frozen=True, slots=True)
class Tray:
    """All of it."""

    memberships: Shelf[OrganizationUser] = field(default_factory=Shelf)
    accounts: Shelf[ServiceAccount] = field(default_factory=Shelf)
    tokens: Shelf[Issued] = field(default_factory=Shelf)


class MemberWork(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is needed to settle the groups of a user or a service account."""

    member: Member
    by: Requester
    groups: tuple[str, ...] = ()
    judged: Mapping[str, tuple[str, ...]] = {}
    """The roles of those groups that it is not in yet, which whoever asks may give."""


class UserWork(MemberWork, frozen=True, kw_only=True, omit_defaults=True):
    """What is needed to make or change a user of an organization."""

    state: UserState
    tags: tuple[Tag, ...] = ()


class AccountWork(MemberWork, frozen=True, kw_only=True, omit_defaults=True):
    """What is needed to make or change a service account."""

    metadata: MetadataWrite


WorkT = TypeVar("WorkT", bound=MemberWork)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplePorts:
    """What the steps reach the world through."""

    store: Store
    clock: Clock
    tokens: Tokens
    joining: Joining
    tray: Tray = field(default_factory=Tray)


async def _make_user(ports: PeoplePorts, work: Work[UserWork]) -> None:
    wanted = work.input
    user = rules.new_user(wanted.member.subject, wanted.tags, wanted.by.principal, makers=[work.id])
    await need(ports.store, user, work.id)


async def _remove_user(ports: PeoplePorts, work: Work[UserWork]) -> None:
    await need_no_more(ports.store, user_id(work.input.member.subject), work.id)


async def _make_membership(ports: PeoplePorts, work: Work[UserWork]) -> None:
    """Make the membership. One that is there keeps its state."""
    store, wanted = ports.store, work.input
    organization = await store.get(Organization, wanted.member.organization)
    claim = Claim(operation=work.id)
    by = wanted.by.principal
    made = rules.new_membership(organization, wanted.member.subject, wanted.state, by, claim=claim)
    try:
        membership = await store.create(made)
    except AlreadyExists:
        membership = await take(store, OrganizationUser, made.name, work.id)
    except ReferenceRejected:
        raise Unavailable("The user is just being removed: try again.") from None
    ports.tray.memberships.put(work.id, membership)


async def _change_membership(ports: PeoplePorts, work: Work[UserWork]) -> None:
    wanted, now = work.input, ports.clock.now()

    def change(found: OrganizationUser) -> OrganizationUser:
        return rules.changed_membership(found, wanted.state, wanted.by.subject, now)

    membership = await take(ports.store, OrganizationUser, wanted.member.id, work.id, change)
    ports.tray.memberships.put(work.id, membership)


async def _put_membership_back(ports: PeoplePorts, work: Work[UserWork]) -> None:
    ports.tray.memberships.take(work.id)
    await give_back(ports.store, OrganizationUser, work.input.member.id, work.id)


async def _make_account(ports: PeoplePorts, work: Work[AccountWork]) -> None:
    """Make the account, named after the request, with a token that only this process can show."""
    store, wanted = ports.store, work.input
    organization = await store.get(Organization, wanted.member.organization)
    issued = await ports.tokens.issue_for_account(wanted.member.id, organization.name)
    claim = Claim(operation=work.id)
    by = wanted.by.principal
    made = rules.new_account(wanted.member.id, organization, wanted.metadata, issued, by, claim=claim)
    try:
        account = await store.create(made)
    except AlreadyExists:
        if (await store.get(ServiceAccount, made.name)).spec.claim != claim:
            raise
    else:
        ports.tray.accounts.put(work.id, account)
        ports.tray.tokens.put(work.id, issued)


async def _put_account_back(ports: PeoplePorts, work: Work[AccountWork]) -> None:
    ports.tray.accounts.take(work.id)
    ports.tray.tokens.take(work.id)
    await give_back(ports.store, ServiceAccount, work.input.member.id, work.id)


async def _change_account(ports: PeoplePorts, work: Work[AccountWork]) -> None:
    wanted, now = work.input, ports.clock.now()

    def change(found: ServiceAccount) -> ServiceAccount:
        return rules.changed_account(found, wanted.metadata, wanted.by.principal, now)

    account = await take(ports.store, ServiceAccount, wanted.member.id, work.id, change)
    ports.tray.accounts.put(work.id, account)


async def _settle_groups(ports: PeoplePorts, work: Work[WorkT]) -> None:
    wanted = work.input
    await ports.joining.settle(work.id, wanted.member, wanted.groups, judged=wanted.judged)


async def _settle_new_groups(ports: PeoplePorts, work: Work[UserWork]) -> None:
    wanted = work.input
    try:
        membership = await ports.store.get(OrganizationUser, wanted.member.id)
        is_new = membership.spec.claim == Claim(operation=work.id)
    except NotFound:  # somebody has removed it meanwhile
        is_new = False
    await ports.joining.settle(work.id, wanted.member, wanted.groups, judged=wanted.judged, is_new=is_new)


async def _restore_groups(ports: PeoplePorts, work: Work[WorkT]) -> None:
    await ports.joining.restore(work.id, work.input.member)


def _user(wanted: UserWork) -> tuple[str, str]:
    return ORGANIZATION_USER.qualified, wanted.member.id


def _account(wanted: AccountWork) -> tuple[str, str]:
    return SERVICE_ACCOUNT.qualified, wanted.member.id


CREATE_USER: Saga[PeoplePorts, UserWork] = Saga(
    name="user.create",
    input_type=UserWork,
    subject=_user,
    steps=(
        Step(name="make-user", do=_make_user, undo=_remove_user),
        Step(name="make-membership", do=_make_membership, undo=_put_membership_back),
        Step(name="settle-groups", do=_settle_new_groups, undo=_restore_groups),
    ),
)
"""Makes a user, if need be, and its membership in an organization, if need be, and settles its groups there."""

UPDATE_USER: Saga[PeoplePorts, UserWork] = Saga(
    name="user.update",
    input_type=UserWork,
    subject=_user,
    steps=(
        Step(name="change-membership", do=_change_membership, undo=_put_membership_back),
        Step(name="settle-groups", do=_settle_groups, undo=_restore_groups),
    ),
)
"""Changes a user's state in an organization, and its groups there."""

CREATE_ACCOUNT: Saga[PeoplePorts, AccountWork] = Saga(
    name="serviceaccount.create",
    input_type=AccountWork,
    subject=_account,
    steps=(
        Step(name="make-account", do=_make_account, undo=_put_account_back),
        Step(name="settle-groups", do=_settle_groups, undo=_restore_groups),
    ),
)
"""Makes a service account with its token, and puts it into groups."""

UPDATE_ACCOUNT: Saga[PeoplePorts, AccountWork] = Saga(
    name="serviceaccount.update",
    input_type=AccountWork,
    subject=_account,
    steps=(
        Step(name="change-account", do=_change_account, undo=_put_account_back),
        Step(name="settle-groups", do=_settle_groups, undo=_restore_groups),
    ),
)
"""Changes what a service account is called, and its groups."""


def bound(ports: PeoplePorts) -> list[AnyBoundSaga]:
    """Return the sagas of this room with what they work on, for `Operations`."""
    return [BoundSaga(saga, ports) for saga in (CREATE_USER, UPDATE_USER, CREATE_ACCOUNT, UPDATE_ACCOUNT)]
