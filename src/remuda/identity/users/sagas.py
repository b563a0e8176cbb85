"""Operations that create or update a user or a service account together with its groups.

Deleting one is not an operation: the deletion itself is a single write, and an unknown id in a group, which grants
nothing, is removed before the response (`remuda.identity.references`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from remuda.access.principal import Requester
from remuda.identity.kinds.common import UserState
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import (
    ORGANIZATION_USER,
    SERVICE_ACCOUNT,
    OperationLock,
    OrganizationUser,
    ServiceAccount,
    user_id,
)
from remuda.identity.tokens.service import Issued, Tokens
from remuda.identity.users import rules
from remuda.identity.users.memberships import Memberships, ensure_user, lock_and_change, remove_unneeded_user, restore
from remuda.identity.users.rules import Member
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, ReferenceRejected, Unavailable
from remuda.kernel.tags import Tag
from remuda.operations.saga import AnySaga, Saga, Step, Work
from remuda.resources.crud import find
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store

T = TypeVar("T")


class OperationResults(Generic[T]):
    """Results of one kind, by the operations that produced them, for the caller that runs the operation.

    Responses are rendered from them: a stored object may be deleted again before it is read, and a token must not be
    stored. Nothing is lost with the process, since an operation whose process crashes is rolled back.
    """

    def __init__(self) -> None:
        self._results: dict[str, T] = {}

    def put(self, operation: str, thing: T) -> None:
        self._results[operation] = thing

    def pop(self, operation: str | None) -> T | None:
        """Remove and return a result; None if the operation was done earlier (None) or in another process."""
        return None if operation is None else self._results.pop(operation, None)


@dataclass(frozen=True, slots=True)
class UserResults:
    """Results of the operations on users and service accounts."""

    memberships: OperationResults[OrganizationUser] = field(default_factory=OperationResults)
    accounts: OperationResults[ServiceAccount] = field(default_factory=OperationResults)
    tokens: OperationResults[Issued] = field(default_factory=OperationResults)


class MemberInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Input of an operation on the groups of a user or a service account."""

    member: Member
    requester: Requester
    groups: tuple[str, ...] = ()
    granted_roles: Mapping[str, tuple[str, ...]] = {}
    """Roles, by group, of the new groups, which the caller may grant."""


class UserInput(MemberInput, frozen=True, kw_only=True, omit_defaults=True):
    """Input to create or update a user of an organization."""

    state: UserState
    tags: tuple[Tag, ...] = ()
    is_invitation: bool = True
    """The requester cannot speak for the person, who has yet to agree."""


class AccountInput(MemberInput, frozen=True, kw_only=True, omit_defaults=True):
    """Input to create or update a service account."""

    metadata: MetadataWrite


InputT = TypeVar("InputT", bound=MemberInput)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPorts:
    """Dependencies of the steps."""

    store: Store
    clock: Clock
    tokens: Tokens
    memberships: Memberships
    results: UserResults = field(default_factory=UserResults)


async def _create_user(ports: UserPorts, work: Work[UserInput]) -> None:
    requested = work.input
    user = rules.new_user(
        requested.member.subject, requested.tags, requested.requester.named(work.actor_name), creators=[work.id]
    )
    await ensure_user(ports.store, user, work.id)


async def _remove_user(ports: UserPorts, work: Work[UserInput]) -> None:
    await remove_unneeded_user(ports.store, user_id(work.input.member.subject), work.id)


async def _create_membership(ports: UserPorts, work: Work[UserInput]) -> None:
    """Create the membership. An existing one keeps its state."""
    store, requested = ports.store, work.input
    organization = await store.get(Organization, requested.member.organization)
    new = rules.new_membership(
        organization,
        requested.member.subject,
        requested.state,
        requested.requester.named(work.actor_name),
        invited=requested.is_invitation,
        lock=OperationLock(operation=work.id),
    )
    try:
        membership = await store.create(new)
    except AlreadyExists:
        membership = await lock_and_change(store, OrganizationUser, new.name, work.id, _agreement(requested))
    except ReferenceRejected:
        raise Unavailable("The user is being deleted: try again.") from None
    ports.results.memberships.put(work.id, membership)


async def _update_membership(ports: UserPorts, work: Work[UserInput]) -> None:
    requested, now = work.input, ports.clock.now()

    def change(found: OrganizationUser) -> OrganizationUser:
        updated = rules.updated_membership(found, requested.state, requested.requester.named(work.actor_name), now)
        return _agreement(requested)(updated)

    membership = await lock_and_change(ports.store, OrganizationUser, requested.member.id, work.id, change)
    ports.results.memberships.put(work.id, membership)


def _agreement(requested: UserInput) -> Callable[[OrganizationUser], OrganizationUser]:
    """Return what a request makes of the consent to an existing membership: it never withdraws it."""
    return (lambda found: found) if requested.is_invitation else rules.confirmed_membership


async def _restore_membership(ports: UserPorts, work: Work[UserInput]) -> None:
    ports.results.memberships.pop(work.id)
    await restore(ports.store, OrganizationUser, work.input.member.id, work.id)


async def _create_account(ports: UserPorts, work: Work[AccountInput]) -> None:
    """Create the account, named after the request, with a token that only this process can return."""
    store, requested = ports.store, work.input
    organization = await store.get(Organization, requested.member.organization)
    issued = await ports.tokens.issue_for_account(requested.member.id, organization.name)
    lock = OperationLock(operation=work.id)
    requester = requested.requester.named(work.actor_name)
    new = rules.new_account(requested.member.id, organization, requested.metadata, issued, requester, lock=lock)
    try:
        account = await store.create(new)
    except AlreadyExists:
        if (await store.get(ServiceAccount, new.name)).spec.lock != lock:
            raise
    else:
        ports.results.accounts.put(work.id, account)
        ports.results.tokens.put(work.id, issued)


async def _restore_account(ports: UserPorts, work: Work[AccountInput]) -> None:
    ports.results.accounts.pop(work.id)
    ports.results.tokens.pop(work.id)
    await restore(ports.store, ServiceAccount, work.input.member.id, work.id)


async def _update_account(ports: UserPorts, work: Work[AccountInput]) -> None:
    requested, now = work.input, ports.clock.now()

    def change(found: ServiceAccount) -> ServiceAccount:
        return rules.updated_account(found, requested.metadata, requested.requester.named(work.actor_name), now)

    account = await lock_and_change(ports.store, ServiceAccount, requested.member.id, work.id, change)
    ports.results.accounts.put(work.id, account)


async def _update_groups(ports: UserPorts, work: Work[InputT]) -> None:
    requested = work.input
    await ports.memberships.update(work.id, requested.member, requested.groups, granted_roles=requested.granted_roles)


async def _set_initial_groups(ports: UserPorts, work: Work[UserInput]) -> None:
    requested = work.input
    membership = await find(ports.store, OrganizationUser, requested.member.id)  # it may be deleted meanwhile
    is_new = membership is not None and membership.spec.lock == OperationLock(operation=work.id)
    await ports.memberships.update(
        work.id, requested.member, requested.groups, granted_roles=requested.granted_roles, is_new=is_new
    )


async def _restore_groups(ports: UserPorts, work: Work[InputT]) -> None:
    await ports.memberships.restore(work.id, work.input.member)


def _user(requested: UserInput) -> tuple[str, str]:
    return ORGANIZATION_USER.qualified, requested.member.id


def _account(requested: AccountInput) -> tuple[str, str]:
    return SERVICE_ACCOUNT.qualified, requested.member.id


CREATE_USER: Saga[UserPorts, UserInput] = Saga(
    name="user.create",
    input_type=UserInput,
    subject=_user,
    steps=(
        Step(name="create-user", do=_create_user, undo=_remove_user),
        Step(name="create-membership", do=_create_membership, undo=_restore_membership),
        Step(name="update-groups", do=_set_initial_groups, undo=_restore_groups),
    ),
)
"""Creates a user and its membership in an organization, if they do not exist, and sets its groups there."""

UPDATE_USER: Saga[UserPorts, UserInput] = Saga(
    name="user.update",
    input_type=UserInput,
    subject=_user,
    steps=(
        Step(name="update-membership", do=_update_membership, undo=_restore_membership),
        Step(name="update-groups", do=_update_groups, undo=_restore_groups),
    ),
)
"""Updates the state and the groups of a user in an organization."""

CREATE_ACCOUNT: Saga[UserPorts, AccountInput] = Saga(
    name="serviceaccount.create",
    input_type=AccountInput,
    subject=_account,
    steps=(
        Step(name="create-account", do=_create_account, undo=_restore_account),
        Step(name="update-groups", do=_update_groups, undo=_restore_groups),
    ),
)
"""Creates a service account with its token, and adds it to groups."""

UPDATE_ACCOUNT: Saga[UserPorts, AccountInput] = Saga(
    name="serviceaccount.update",
    input_type=AccountInput,
    subject=_account,
    steps=(
        Step(name="update-account", do=_update_account, undo=_restore_account),
        Step(name="update-groups", do=_update_groups, undo=_restore_groups),
    ),
)
"""Updates the metadata and the groups of a service account."""

SAGAS: tuple[AnySaga, ...] = (CREATE_USER, UPDATE_USER, CREATE_ACCOUNT, UPDATE_ACCOUNT)
