"""Logins in browsers, found by the hash of the browser's cookie.

A login is valid for twelve hours, while its user is active and the password has not changed since, and until it was not
used for the idle limit. Its use is stored when a part of that limit has passed since the last time, so most requests
write nothing. A second login as the same user in the same browser updates the stored login and replaces the cookie.

Logout is one write that sets `ended`. From then on the login is invalid and no authorization code of it becomes a
session. Its sessions and the login are deleted next; after a crash the controller of logins, or the next logout,
completes this.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.identity.kinds.factors import AuthenticationMethod
from remuda.identity.kinds.oauth import BrowserLogin, BrowserLoginSpec
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import USER, User
from remuda.identity.login.browser_state import BrowserCookie
from remuda.identity.lookups import find_active_user
from remuda.identity.rbac.service import Permissions
from remuda.identity.tokens.secrets import token_hash
from remuda.identity.tokens.sessions import (
    Sessions,
    has_newer_password,
    provider_exists,
    provider_organization,
    set_ended,
    was_reset,
)
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound, Unauthenticated
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.resources.conventions import USER as USER_LABEL
from remuda.resources.crud import find_by_index
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

LOGIN_LIFETIME = timedelta(hours=12)
_PARTS = 12
"""The use of a login is stored as often in an idle limit."""


@dataclass(frozen=True, slots=True)
class ActiveLogin:
    """Valid login of an active user."""

    user: User
    login: BrowserLogin


class BrowserLogins:
    """Logins in browsers."""

    def __init__(self, *, store: Store, clock: Clock, randomness: Randomness, sessions: Sessions) -> None:
        self._store, self._clock, self._randomness, self._sessions = store, clock, randomness, sessions

    async def find(self, cookie: str) -> ActiveLogin | None:
        """Return the valid login of the browser with this cookie, or None."""
        login = await self._login(cookie)
        user = None if login is None else await self._user(login)
        return None if login is None or user is None else ActiveLogin(user, await self._use(login))

    async def begin(
        self,
        user: User,
        *,
        cookie: str,
        provider: str,
        methods: tuple[AuthenticationMethod, ...] = (),
        is_declined: bool = False,
        previous: ActiveLogin | None,
        log: Sequence[Record] = (),
    ) -> ActiveLogin:
        """Log a user in, in the browser that receives this cookie. `previous` is its login so far."""
        now = self._clock.now()
        spec = BrowserLoginSpec(
            user=user.name,
            cookie_hash=token_hash(cookie),
            provider=provider,
            authenticated=now,
            expires=now + LOGIN_LIFETIME,
            methods=methods,
            is_declined=is_declined,
        )
        if previous is not None and previous.user.name == user.name:
            with suppress(Conflict, NotFound):  # it has just ended, or another window logged in with it
                return ActiveLogin(user, await self._store.update(replace(previous.login, spec=spec), log=log))
        elif previous is not None:
            await self._delete(previous.login)
        name, labels = random_id(self._randomness), {USER_LABEL: user.name}
        metadata = Metadata(name=name, labels=labels, owner_references=(USER.owner(user),))
        login = await self._store.create(BrowserLogin(metadata=metadata, spec=spec), log=log)
        return ActiveLogin(user, login)

    async def strengthen(self, current: ActiveLogin, method: AuthenticationMethod) -> None:
        """Record that the user of a login has just proven a second factor. One that ended meanwhile stays ended."""
        proven = dict.fromkeys((*current.login.spec.methods, method, "mfa"))
        spec = replace(current.login.spec, methods=tuple(proven), is_declined=False)
        with suppress(Conflict, NotFound):
            await self._store.update(replace(current.login, spec=spec))

    async def end(self, login: BrowserLogin, log: Sequence[Record] = ()) -> None:
        """End a login and its sessions. One that no longer exists counts as ended."""
        ended = await set_ended(self._store, BrowserLogin, login.name, self._clock, log)
        if ended is not None:
            await self._finish(ended)

    async def end_all(self, user: str, log: Sequence[Record] = ()) -> int:
        """End every login of a user and every session, and return the number of sessions. The log is written once."""
        logins = (await self._store.list(BrowserLogin, labels={USER_LABEL: user})).items
        for number, login in enumerate(logins):
            await self.end(login, log=() if number else log)
        return await self._sessions.end_all(user, log=() if logins else log)

    async def end_others(self, current: ActiveLogin) -> None:
        """End every other login of a user, and every session that does not belong to this one."""
        user, own = current.user.name, current.login.name
        for login in (await self._store.list(BrowserLogin, labels={USER_LABEL: user})).items:
            if login.name != own:
                await self.end(login)
        for session in (await self._store.list(Session, labels={USER_LABEL: user})).items:
            if session.spec.login != own:
                await self._sessions.end(session)

    async def finish_logout(self, cookie: str) -> None:
        """Complete an interrupted logout in the browser with this cookie."""
        login = await self._login(cookie)
        if login is not None and login.spec.ended is not None:
            await self._finish(login)

    async def sessions_of(self, user: str) -> list[Session]:
        found = (await self._store.list(Session, labels={USER_LABEL: user})).items
        return [each for each in found if self._sessions.is_alive(each)]

    async def logins_of(self, user: User) -> list[BrowserLogin]:
        found = (await self._store.list(BrowserLogin, labels={USER_LABEL: user.name})).items
        return [each for each in found if await self._user(each) is not None]

    async def _login(self, cookie: str) -> BrowserLogin | None:
        return await find_by_index(self._store, BrowserLogin, "cookie", token_hash(cookie)) if cookie else None

    async def _user(self, login: BrowserLogin) -> User | None:
        """Return the user of a login, or None if the login is not valid."""
        spec = login.spec
        now, end = self._clock.now(), spec.end_time(self._idle_limit)
        is_over = not spec.is_good(now) or end is None or now >= end
        if is_over or not await provider_exists(self._store, spec.provider):
            return None
        user = await find_active_user(self._store, spec.user)
        if user is None or (spec.authenticated is not None and user.was_suspended_since(spec.authenticated)):
            return None
        if await was_reset(self._store, spec.user, spec.authenticated):
            return None
        return None if await has_newer_password(self._store, spec.user, spec.authenticated) else user

    async def _use(self, login: BrowserLogin) -> BrowserLogin:
        """Store the use of a login, unless a recent one is stored."""
        now, used = self._clock.now(), login.spec.used or login.spec.authenticated
        if used is not None and now - used < self._idle_limit / _PARTS:
            return login
        try:
            return await self._store.update(replace(login, spec=replace(login.spec, used=now)))
        except (Conflict, NotFound):  # another window used it, or it has just ended
            return login

    @property
    def _idle_limit(self) -> timedelta:
        return self._sessions.settings.browser_idle_limit

    async def _finish(self, login: BrowserLogin) -> None:
        await self._sessions.end_of_login(login.spec.user, login.name)
        await self._delete(login)

    async def _delete(self, login: BrowserLogin) -> None:
        with suppress(NotFound):
            await self._store.delete(BrowserLogin, login.name, uid=login.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserAuthenticator:
    """Authentication of pages outside identity by the browser's cookie.

    The principal has the same permissions as a token of the same login. Use it only for reads that other sites cannot
    trigger: a cookie does not protect against cross-site requests.
    """

    store: Store
    cookie: BrowserCookie
    logins: BrowserLogins
    permissions: Permissions

    async def find(self, cookies: str) -> Principal:
        """Return the principal that is logged in in the browser with these cookies, or raise Unauthenticated."""
        value = self.cookie.read(cookies)
        current = await self.logins.find(value) if value else None
        if current is None:
            raise Unauthenticated("no user is logged in in this browser")
        organization = await provider_organization(self.store, current.login.spec.provider)
        resolved = await self.permissions.of_user(current.user, proof=current.login.spec.proof)
        if organization:
            resolved = resolved.restricted_to(organization)
        return Principal(
            subject=current.user.spec.subject,
            type="user",
            access=resolved.access,
            organizations=resolved.organizations,
            closed=resolved.closed,
            expires=current.login.spec.expires,
            member_of_only=organization or None,
        )
