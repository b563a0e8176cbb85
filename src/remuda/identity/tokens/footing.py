"""What a login rests on, and whether it still stands.

Somebody may log out, or set another password, while a code or a device's grant is on its way to become a session. Both
are written first, and then the sessions end that there are by then. A session that begins later looks here, after it
has begun: so one of the two always sees the other.
"""

from datetime import datetime

from remuda.identity.kinds.browsers import BrowserLogin
from remuda.identity.kinds.oauth import OAuth2Provider, Password
from remuda.identity.kinds.tokens import Session
from remuda.kernel.errors import Unauthenticated
from remuda.resources.conventions import ORGANIZATION
from remuda.resources.crud import find, is_there
from remuda.store.contract import Store


async def is_founded(store: Store, session: Session, now: datetime) -> bool:
    """Tell whether what a session came of still stands: its browser login, if there was one, and the password."""
    spec = session.spec
    if await is_overtaken(store, spec.user, spec.authenticated):
        return False
    if not spec.login:
        return True
    login = await find(store, BrowserLogin, spec.login)
    return login is not None and login.spec.is_good(now)


async def is_vouched(store: Store, provider: str) -> bool:
    """Tell whether the provider of a login is still there. With it goes everything that it has vouched for."""
    return not provider or await is_there(store, OAuth2Provider, provider, marked=False)


async def organization_vouching(store: Store, provider: str) -> str:
    """Return the organization whose provider it is; nothing for one of the whole system, or a password.

    Raises Unauthenticated if the provider is gone.
    """
    if not provider:
        return ""
    found = await find(store, OAuth2Provider, provider)
    if found is None:
        raise Unauthenticated("the provider of this login is gone: log in again")
    return found.metadata.labels.get(ORGANIZATION, "")


async def is_overtaken(store: Store, user: str, authenticated: datetime | None) -> bool:
    """Tell whether a user was given another password since they logged in at that time."""
    password = await find(store, Password, user)
    changed = None if password is None else password.spec.changed
    return changed is not None and (authenticated is None or authenticated < changed)
