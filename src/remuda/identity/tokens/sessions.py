"""Sessions and refresh tokens: one session for each login. A user may have several sessions with one client.

A refresh token is `<session>.<family>.<secret>`: the family is the same in all refresh tokens of a session, the secret
is new in each. Refreshing replaces the valid one by compare-and-swap. An earlier token of the family ends the session,
also if it only lost a race: a thief cannot be told from a client whose response was lost. Ending a session is one
write, which sets `ended`. The revocation for other services and the deletion follow, by the controller of sessions if
necessary.

A logout or a new password may happen while a code or a device grant becomes a session. Both are written first, and then
end the existing sessions. A session that begins later is validated after it was written (`is_valid`), so one of the two
always sees the other.

A session also ends at its idle limit after its last refresh: every client that is used refreshes before that.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from remuda.identity.kinds.factors import AuthenticationMethod, SecondFactors
from remuda.identity.kinds.oauth import BrowserLogin, OAuth2Provider, Password
from remuda.identity.kinds.tokens import Session, SessionSpec
from remuda.identity.kinds.users import USER, LastLogin, User
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.secrets import is_hash_of, new_secret, token_hash
from remuda.identity.tokens.service import Tokens
from remuda.kernel.clock import Clock
from remuda.kernel.encoding import to_base64url
from remuda.kernel.errors import Conflict, NotFound, Unauthenticated
from remuda.kernel.ids import derived_id, is_id, random_id
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import ORGANIZATION
from remuda.resources.conventions import USER as USER_LABEL
from remuda.resources.crud import exists, find, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

_FAMILY_BYTES = 16
_PATTERN = re.compile(r"([0-9a-f-]{36})\.([0-9A-Za-z_-]{22})\.([0-9A-Za-z_-]{43})")


@dataclass(frozen=True, slots=True)
class RefreshToken:
    """Parts of a refresh token."""

    session: str
    family: Secret
    secret: Secret

    @classmethod
    def new(cls, session: str, randomness: Randomness) -> "RefreshToken":
        family = to_base64url(randomness.token_bytes(_FAMILY_BYTES))
        return cls(session, Secret(family), new_secret(randomness))

    @classmethod
    def parse(cls, text: str) -> "RefreshToken | None":
        """Parse a refresh token, or return None if it is malformed."""
        parts = _PATTERN.fullmatch(text)
        if parts is None or not is_id(parts[1]):
            return None
        return cls(parts[1], Secret(parts[2]), Secret(parts[3]))

    @property
    def text(self) -> Secret:
        return Secret(f"{self.session}.{self.family.reveal()}.{self.secret.reveal()}")

    @property
    def hash(self) -> str:
        return token_hash(self.text.reveal())

    @property
    def family_hash(self) -> str:
        return token_hash(f"{self.session}.{self.family.reveal()}")

    def is_of_family(self, family_hash: str) -> bool:
        return is_hash_of(family_hash, f"{self.session}.{self.family.reveal()}")

    def matches(self, refresh_hash: str) -> bool:
        """Return whether the stored hash is its own."""
        return is_hash_of(refresh_hash, self.text.reveal())

    def next(self, randomness: Randomness) -> "RefreshToken":
        return RefreshToken(self.session, self.family, new_secret(randomness))


async def is_valid(store: Store, session: Session, now: datetime) -> bool:
    """Return whether the browser login, the password and the second factor behind a session are still valid."""
    spec = session.spec
    if await has_newer_password(store, spec.user, spec.authenticated):
        return False
    if await was_reset(store, spec.user, spec.authenticated):
        return False
    if not spec.login:
        return True
    login = await find(store, BrowserLogin, spec.login)
    return login is not None and login.spec.is_good(now)


async def provider_exists(store: Store, provider: str) -> bool:
    """Return whether the provider of a login still exists. Without it, all its logins are invalid."""
    return not provider or await exists(store, OAuth2Provider, provider, include_deleting=False)


async def provider_organization(store: Store, provider: str) -> str:
    """Return the organization that owns a provider, empty for none, or raise Unauthenticated if it was deleted."""
    if not provider:
        return ""
    found = await find(store, OAuth2Provider, provider)
    if found is None:
        raise Unauthenticated("the provider of this login was deleted: log in again")
    return found.metadata.labels.get(ORGANIZATION, "")


async def has_newer_password(store: Store, user: str, authenticated: datetime | None) -> bool:
    """Return whether the password of a user was changed after this login."""
    password = await find(store, Password, user)
    changed = None if password is None else password.spec.changed
    return changed is not None and (authenticated is None or authenticated < changed)


async def was_reset(store: Store, user: str, authenticated: datetime | None) -> bool:
    """Return whether the second factors of a user were reset after this login."""
    factors = await find(store, SecondFactors, user)
    reset = None if factors is None else factors.spec.reset
    return reset is not None and (authenticated is None or authenticated < reset)


async def lost_factors(store: Store, user: str, authenticated: datetime) -> bool:
    """Return whether second factors of a user were removed or reset after this time."""
    factors = await find(store, SecondFactors, user)
    lost = () if factors is None else (factors.spec.reset, factors.spec.removed)
    return any(each is not None and authenticated < each for each in lost)


EndingT = TypeVar("EndingT", Session, BrowserLogin)


async def set_ended(
    store: Store, kind: type[EndingT], name: str, clock: Clock, log: Sequence[Record]
) -> EndingT | None:
    """Set the end of a session or a browser login that has none, and return it; None if it does not exist."""

    async def write() -> EndingT | None:
        found = await find(store, kind, name)
        if found is None or found.spec.ended is not None:
            return found
        with suppress(NotFound):
            return await store.update(replace(found, spec=replace(found.spec, ended=clock.now())), log=log)
        return None

    return await retry_on_conflict(write)


_SESSIONS = "b2f0c1de-6c0e-5b57-9d6e-3a1f5a1f0c04"


EndRecords = Callable[[Session], Awaitable[Sequence[Record]]]
"""Returns the audit records of a session's end, only when one ends."""


async def _no_records(session: Session) -> Sequence[Record]:  # noqa: ARG001  an EndRecords
    return ()


class ReusedError(Exception):
    """Raised when a refresh token was used twice; its session was ended."""


def session_of_code(code: str) -> str:
    """Return the id of the session of an authorization code or device grant."""
    return derived_id(_SESSIONS, code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """Service of sessions."""

    store: Store
    clock: Clock
    randomness: Randomness
    settings: IdentitySettings
    tokens: Tokens

    async def begin(
        self,
        *,
        user: User,
        client: str,
        scope: str = "",
        provider: str = "",
        authenticated: datetime | None = None,
        code: str = "",
        login: str = "",
        methods: tuple[AuthenticationMethod, ...] = (),
        refresh: RefreshToken | None = None,
        log: Sequence[Record] = (),
    ) -> Session:
        """Begin a session, and record the login with its user.

        With a `refresh` token of `new_refresh` it can be refreshed, and has that token's session id. With a `code` the
        id is derived from it, so that a second session of the code fails with AlreadyExists.
        """
        now = self.clock.now()
        name = refresh.session if refresh else session_of_code(code) if code else random_id(self.randomness)
        session = Session(
            metadata=Metadata(name=name, labels={USER_LABEL: user.name}, owner_references=(USER.owner(user),)),
            spec=SessionSpec(
                user=user.name,
                client=client,
                provider=provider,
                organization=await provider_organization(self.store, provider),
                scope=scope,
                authenticated=authenticated or now,
                expires=now + self.settings.refresh_token_lifetime,
                refresh_hash=refresh.hash if refresh else "",
                family_hash=refresh.family_hash if refresh else "",
                code=code,
                login=login,
                methods=methods,
            ),
        )
        begun = await self.store.create(session, log=log)
        await self._note_login(begun)
        return begun

    def new_refresh(self, code: str = "") -> RefreshToken:
        """Return the first refresh token of a new session, derived from the code if there is one."""
        name = session_of_code(code) if code else random_id(self.randomness)
        return RefreshToken.new(name, self.randomness)

    async def find(self, name: str) -> Session | None:
        """Return a session that is neither ended nor expired, or None."""
        session = await find(self.store, Session, name)
        return session if session is not None and self.is_alive(session) else None

    def is_alive(self, session: Session) -> bool:
        """Return whether a session is neither ended nor expired."""
        end = self.end_time(session)
        return session.spec.ended is None and (end is None or self.clock.now() < end)

    def end_time(self, session: Session) -> datetime | None:
        """Return when a session ends by itself: at its idle limit or its expiry, whichever is first."""
        spec, settings = session.spec, self.settings
        used = spec.refreshed or session.metadata.creation_timestamp
        if spec.expires is None or used is None or not spec.refresh_hash:
            return spec.expires
        return min(spec.expires, used + max(settings.session_idle_limit, settings.access_token_lifetime))

    async def of_refresh(self, token: RefreshToken) -> Session | None:
        """Return the active session of a refresh token, whether the token is the valid or an earlier one."""
        session = await self.find(token.session)
        return session if session is not None and token.is_of_family(session.spec.family_hash) else None

    async def refresh(
        self, session: Session, token: RefreshToken, *, log: Sequence[Record] = (), ending: EndRecords = _no_records
    ) -> tuple[Session, RefreshToken]:
        """Return the session with the next refresh token; raise ReusedError and end it if this one is not valid."""
        if token.matches(session.spec.refresh_hash):
            next_token = token.next(self.randomness)
            try:
                spec = replace(session.spec, refresh_hash=next_token.hash, refreshed=self.clock.now())
                return await self.store.update(replace(session, spec=spec), log=log), next_token
            except (Conflict, NotFound):  # it was used at the same time by another caller
                pass
        await self.end(session, log=await ending(session))
        raise ReusedError

    async def end(self, session: Session | str, *, log: Sequence[Record] = ()) -> None:
        """End a session and all its tokens. One that does not exist is ended already."""
        name = session if isinstance(session, str) else session.name
        ended = await set_ended(self.store, Session, name, self.clock, log)
        if ended is not None:
            await self.clear(ended)

    async def end_all(self, user: str, *, log: Sequence[Record] = ()) -> int:
        """End every session of a user, one after the other, and return their number.

        The first write carries the log. A caller who must be sure that none begins meanwhile suspends the user first.
        """
        ended, after = 0, None
        while True:
            page = await self.store.list_names(Session, labels={USER_LABEL: user}, limit=100, after=after)
            for name in page.items:
                await self.end(name, log=() if ended else log)
                ended += 1
            after = page.next
            if after is None:
                return ended

    async def end_of_login(self, user: str, login: str) -> None:
        for session in (await self.store.list(Session, labels={USER_LABEL: user})).items:
            if session.spec.login == login:
                await self.end(session)

    async def clear(self, session: Session) -> None:
        """Revoke the tokens of an ended session for other services, then delete it."""
        assert session.spec.ended is not None, "only an ended session is cleared"
        await self.tokens.revoke(session.name, expires=session.spec.ended + self.settings.access_token_lifetime)
        await self.forget(session)

    async def forget(self, session: Session) -> None:
        with suppress(NotFound):
            await self.store.delete(Session, session.name, uid=session.uid)

    async def _note_login(self, session: Session) -> None:
        """Record the time of the last login through this client in the user. A crash before this loses only that."""
        spec = session.spec
        login = LastLogin(
            client_id=spec.client, authorization_code_id=session.name, last_authentication=spec.authenticated
        )

        async def note() -> None:
            user = await find(self.store, User, spec.user)
            if user is None:  # it was deleted, and the session with it
                return
            others = tuple(each for each in user.spec.sessions if each.client_id != spec.client)
            await self.store.update(replace(user, spec=replace(user.spec, sessions=(*others, login))))

        await retry_on_conflict(note)
