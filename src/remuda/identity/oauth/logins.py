"""Logins in browsers: who is logged in where, so that the next client need not ask.

A login is good for twelve hours, while its user is active and has not been given another password since. It is found by
the hash of the browser's cookie. Logging in again in the same browser as the same user goes on with the same login,
under a new cookie; logging out ends it and every session that came of it, sessions first, so that a logout that breaks
off can be repeated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from remuda.identity.kinds.browsers import BrowserLogin, BrowserLoginSpec
from remuda.identity.kinds.oauth import Password
from remuda.identity.kinds.people import USER, User
from remuda.identity.kinds.tokens import Session
from remuda.identity.tokens.hashing import token_hash
from remuda.identity.tokens.sessions import Sessions
from remuda.kernel.clock import Clock
from remuda.kernel.errors import NotFound
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.resources.labels import USER as USER_LABEL
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

__all__ = ["LIFE", "LoggedIn", "Logins"]

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
        if not cookie:
            return None
        for login in (await self._store.list(BrowserLogin, index=("cookie", token_hash(cookie)), limit=1)).items:
            user = await self._user(login)
            if user is not None:
                return LoggedIn(user, login)
        return None

    async def begin(
        self, user: User, *, cookie: str, provider: str, before: LoggedIn | None, log: Sequence[Record] = ()
    ) -> LoggedIn:
        """Log a user in, in the browser that is given this cookie; `before` is who was logged in there."""
        now = self._clock.now()
        spec = BrowserLoginSpec(
            user=user.name, cookie_hash=token_hash(cookie), provider=provider, authenticated=now, expires=now + LIFE
        )
        if before is not None and before.user.name == user.name:
            login = await self._store.update(msgspec.structs.replace(before.login, spec=spec), log=log)
            return LoggedIn(user, login)
        if before is not None:
            await self._store.delete(BrowserLogin, before.login.name, uid=before.login.uid)
        name, labels = random_id(self._randomness), {USER_LABEL: user.name}
        metadata = Metadata(name=name, labels=labels, owner_references=(USER.owner(user),))
        login = await self._store.create(BrowserLogin(metadata=metadata, spec=spec), log=log)
        return LoggedIn(user, login)

    async def end(self, known: LoggedIn, log: Sequence[Record] = ()) -> None:
        """Log out: end what came of a login, and then the login itself."""
        login = known.login
        for session in await self.sessions_of(known.user.name):
            if session.spec.login == login.name:
                await self._sessions.end(session)
        await self._store.delete(BrowserLogin, login.name, uid=login.uid, log=log)

    async def sessions_of(self, user: str) -> list[Session]:
        """Return the sessions of a user that are not over."""
        found = (await self._store.list(Session, labels={USER_LABEL: user})).items
        return [each for each in found if self._sessions.is_alive(each)]

    async def _user(self, login: BrowserLogin) -> User | None:
        spec = login.spec
        if spec.expires is None or spec.authenticated is None or spec.expires <= self._clock.now():
            return None
        try:
            user = await self._store.get(User, spec.user)
        except NotFound:
            return None
        changed = await self._password_changed(user.name)
        is_overtaken = changed is not None and spec.authenticated < changed
        return None if is_overtaken or user.spec.state != "active" or user.is_marked else user

    async def _password_changed(self, user: str) -> datetime | None:
        try:
            return (await self._store.get(Password, user)).spec.changed
        except NotFound:
            return None
