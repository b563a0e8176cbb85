"""Logins in browsers: who is logged in where, so that the next client need not ask.

A login is good for twelve hours, while its user is active and has not been given another password since. It is found by
the hash of the browser's cookie. Logging in again in the same browser as the same user goes on with the same login,
under a new cookie.

Logging out ends a login and every session that came of it. It is one write, the mark `ended`, from which on the login
is not believed, and no code of its becomes a session any more. The sessions and the deletion follow at once, and are
made up for by the login's controller, or when the user logs out again, should this process not get to it.

Who looks at a page that is not identity's own: whoever is logged in in that browser, with that one's rights.

It is the same one, with the same rights, as a token would have that came of the same login, and for as long as the
login is good. Only what cannot be asked for from another site, and changes nothing, may be answered on the cookie's
word: there is no token in the request that another site could not have sent along.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.identity.kinds.oauth import BrowserLogin, BrowserLoginSpec
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import USER, User
from remuda.identity.login.browser_state import BrowserCookie
from remuda.identity.lookups import find_active_user
from remuda.identity.rbac.service import Permissions
from remuda.identity.tokens.secrets import token_hash
from remuda.identity.tokens.sessions import Sessions, has_newer_password, provider_exists, provider_organization
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound, Unauthenticated
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.resources.conventions import USER as USER_LABEL
from remuda.resources.crud import find, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

LIFE = timedelta(hours=12)
"""How long a login in a browser is good."""


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """Who is logged in, and by which login."""

    user: User
    login: BrowserLogin


class Logins:
    """Keeps them."""

    def __init__(self, *, store: Store, clock: Clock, randomness: Randomness, sessions: Sessions) -> None:
        self._store, self._clock, self._randomness, self._sessions = store, clock, randomness, sessions

    async def find(self, cookie: str) -> LoggedIn | None:
        """Return who is logged in in the browser with this cookie."""
        login = await self._login(cookie)
        user = None if login is None else await self._user(login)
        return None if login is None or user is None else LoggedIn(user, login)

    async def begin(
        self, user: User, *, cookie: str, provider: str, before: LoggedIn | None, log: Sequence[Record] = ()
    ) -> LoggedIn:
        """Log a user in, in the browser that is given this cookie; `before` is who was logged in there."""
        now = self._clock.now()
        spec = BrowserLoginSpec(
            user=user.name, cookie_hash=token_hash(cookie), provider=provider, authenticated=now, expires=now + LIFE
        )
        if before is not None and before.user.name == user.name:
            with suppress(Conflict, NotFound):  # it has just ended, or somebody logged in by it in another window
                return LoggedIn(user, await self._store.update(replace(before.login, spec=spec), log=log))
        elif before is not None:
            await self._delete(before.login)
        name, labels = random_id(self._randomness), {USER_LABEL: user.name}
        metadata = Metadata(name=name, labels=labels, owner_references=(USER.owner(user),))
        login = await self._store.create(BrowserLogin(metadata=metadata, spec=spec), log=log)
        return LoggedIn(user, login)

    async def end(self, login: BrowserLogin, log: Sequence[Record] = ()) -> None:
        """Log out: end a login, and what came of it. One that is gone is ended already."""

        async def mark() -> BrowserLogin | None:
            found = await find(self._store, BrowserLogin, login.name)
            if found is None or found.spec.ended is not None:
                return found
            spec = replace(found.spec, ended=self._clock.now())
            try:
                return await self._store.update(replace(found, spec=spec), log=log)
            except NotFound:
                return None

        marked = await retry_on_conflict(mark)
        if marked is not None:
            await self._clear(marked)

    async def see_through(self, cookie: str) -> None:
        """Finish the logout in the browser with this cookie, if one broke off there."""
        login = await self._login(cookie)
        if login is not None and login.spec.ended is not None:
            await self._clear(login)

    async def sessions_of(self, user: str) -> list[Session]:
        """Return the sessions of a user that are not over."""
        found = (await self._store.list(Session, labels={USER_LABEL: user})).items
        return [each for each in found if self._sessions.is_alive(each)]

    async def logins_of(self, user: User) -> list[BrowserLogin]:
        """Return the logins of a user in all browsers."""
        found = (await self._store.list(BrowserLogin, labels={USER_LABEL: user.name})).items
        return [each for each in found if await self._user(each) is not None]

    async def _login(self, cookie: str) -> BrowserLogin | None:
        if not cookie:
            return None
        found = (await self._store.list(BrowserLogin, index=("cookie", token_hash(cookie)), limit=1)).items
        return found[0] if found else None

    async def _user(self, login: BrowserLogin) -> User | None:
        """Return whose login it is, if it is good."""
        spec = login.spec
        if not spec.is_good(self._clock.now()) or not await provider_exists(self._store, spec.provider):
            return None
        user = await find_active_user(self._store, spec.user)
        return None if await has_newer_password(self._store, spec.user, spec.authenticated) else user

    async def _clear(self, login: BrowserLogin) -> None:
        await self._sessions.end_of_login(login.spec.user, login.name)
        await self._delete(login)

    async def _delete(self, login: BrowserLogin) -> None:
        with suppress(NotFound):
            await self._store.delete(BrowserLogin, login.name, uid=login.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewers:
    """Knows them by the cookies of their browsers."""

    store: Store
    cookie: BrowserCookie
    logins: Logins
    permissions: Permissions

    async def find(self, cookies: str) -> Principal:
        """Return who is logged in in the browser that sent these cookies, or raise Unauthenticated."""
        value = self.cookie.read(cookies)
        known = await self.logins.find(value) if value else None
        if known is None:
            raise Unauthenticated("nobody is logged in in this browser")
        organization = await provider_organization(self.store, known.login.spec.provider)
        standing = await self.permissions.of_user(known.user)
        if organization:
            standing = standing.restricted_to(organization)
        return Principal(
            subject=known.user.spec.subject,
            type="user",
            access=standing.access,
            organizations=standing.organizations,
            expires=known.login.spec.expires,
            member_of_only=organization or None,
        )
