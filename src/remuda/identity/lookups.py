"""Lookups of active users and of their organizations."""

from collections.abc import Sequence

from remuda.identity.consent import agreed_memberships
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import User
from remuda.resources.conventions import NAME, organization_of
from remuda.resources.crud import find
from remuda.store.contract import Store

_MAX_ORGANIZATIONS = 20


async def find_active_user(store: Store, name: str) -> User | None:
    """Return the user with this id, or None if it does not exist, is being deleted, or is not active."""
    user = await find(store, User, name)
    return user if user is not None and user.is_active else None


async def audited_organizations(store: Store, user: User) -> Sequence[str]:
    """Return the organizations, at most 20, whose audit log has the actions of a user, who agreed to be a member."""
    found = await agreed_memberships(store, user.name)
    return [organization_of(each) for each in found if each.spec.state == "active"][:_MAX_ORGANIZATIONS]


async def organization_names(store: Store, user: User) -> Sequence[str]:
    """Return the names of the organizations, at most 20, that a user is an active member of."""
    found = [await find(store, Organization, each) for each in await audited_organizations(store, user)]
    return [each.metadata.labels[NAME] for each in found if each is not None and NAME in each.metadata.labels]
