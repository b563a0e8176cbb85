"""Users whose word counts."""

from remuda.identity.kinds.people import User
from remuda.resources.reading import find
from remuda.store.contract import Store

__all__ = ["find_active_user"]


async def find_active_user(store: Store, name: str) -> User | None:
    """Return the user with this id, or None unless it is there, is not about to go, and is active."""
    user = await find(store, User, name)
    return user if user is not None and user.is_active else None
