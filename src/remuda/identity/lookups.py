"""Users whose word counts, and where it does."""

from collections.abc import Sequence

from remuda.identity.kinds.users import OrganizationUser, User
from remuda.resources.conventions import USER, organization_of
from remuda.resources.crud import find
from remuda.store.contract import Store

_MOST_ORGANIZATIONS = 20


async def find_active_user(store: Store, name: str) -> User | None:
    """Return the user with this id, or None unless it is there, is not about to go, and is active."""
    user = await find(store, User, name)
    return user if user is not None and user.is_active else None


async def organizations_to_tell(store: Store, user: User) -> Sequence[str]:
    """Return the organizations, or the first of very many, in whose audit it is told what a user does."""
    found = (await store.list(OrganizationUser, labels={USER: user.name}, limit=_MOST_ORGANIZATIONS)).items
    return [organization_of(each) for each in found if each.spec.state == "active"]
