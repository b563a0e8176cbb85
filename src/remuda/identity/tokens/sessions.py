"""Sessions: one object for each login.

A user may have several with one client, unlike in the reference, where a second login ends the first: people have a
laptop and a desktop, and two terminals must not log each other out. Each is ended by itself, or all of a user's.

Refreshing replaces the good refresh token by compare-and-swap, so of two that come with it at once one wins. Whoever
comes with an earlier one ends the session, also the one that lost such a race: we cannot tell a thief from a client
whose answer was lost, and asking the second to log in again costs less than keeping the first.

Ending is one write, the mark `ended`, from which on neither refresh nor access tokens of the session are good here. The
revocation, which tells other services, and the deletion follow at once, and are made up for by the session's
controller should this process not get to it.

Refresh tokens: random text of which hashes are stored.

`<session>.<family>.<secret>`: the first part finds the session, the second is the same in all refresh tokens of that
session, and the third is new in each. Who shows the family with another secret than the good one has had a token of
this session: that is how a second use is told from a guess, without a list of all that were used.

What a login rests on, and whether it still stands.

Somebody may log out, or set another password, while a code or a device's grant is on its way to become a session. Both
are written first, and then the sessions end that there are by then. A session that begins later looks here, after it
has begun: so one of the two always sees the other.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from remuda.identity.kinds.oauth import BrowserLogin, OAuth2Provider, Password
from remuda.identity.kinds.tokens import Session, SessionSpec
from remuda.identity.kinds.users import USER, LastLogin, User
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.secrets import is_hash_of, new_secret, token_hash
from remuda.identity.tokens.service import Tokens
from remuda.kernel import encoding as base64url
from remuda.kernel.clock import Clock
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
_FORM = re.compile(r"([0-9a-f-]{36})\.([0-9A-Za-z_-]{22})\.([0-9A-Za-z_-]{43})")


@dataclass(frozen=True, slots=True)
class RefreshToken:
    """One of them, taken apart."""

    session: str
    family: Secret
    secret: Secret

    @classmethod
    def new(cls, session: str, randomness: Randomness) -> "RefreshToken":
        family = base64url.encode(randomness.token_bytes(_FAMILY_BYTES))
        return cls(session, Secret(family), new_secret(randomness))

    @classmethod
    def parse(cls, text: str) -> "RefreshToken | None":
        """Return what somebody shows, or None if it is no refresh token of ours."""
        parts = _FORM.fullmatch(text)
        if parts is None or not is_id(parts[1]):
            return None
        return cls(parts[1], Secret(parts[2]), Secret(parts[3]))

    @property
    def text(self) -> Secret:
        """The token as it is handed out."""
        return Secret(f"{self.session}.{self.family.reveal()}.{self.secret.reveal()}")

    @property
    def hash(self) -> str:
        """What is stored of it."""
        return token_hash(self.text.reveal())

    @property
    def family_hash(self) -> str:
        return token_hash(f"{self.session}.{self.family.reveal()}")

    def is_of(self, family_hash: str) -> bool:
        """Tell whether this is the stored hash of its family."""
        return is_hash_of(family_hash, f"{self.session}.{self.family.reveal()}")

    def is_it(self, refresh_hash: str) -> bool:
        """Tell whether this is its own stored hash."""
        return is_hash_of(refresh_hash, self.text.reveal())

    def next(self, randomness: Randomness) -> "RefreshToken":
        """Return the one that comes after it."""
        return RefreshToken(self.session, self.family, new_secret(randomness))


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
    return not provider or await exists(store, OAuth2Provider, provider, include_deleting=False)


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


_SESSIONS = "b2f0c1de-6c0e-5b57-9d6e-3a1f5a1f0c04"


Telling = Callable[[Session], Awaitable[Sequence[Record]]]
"""Returns the audit records of a session's end, for the commit of it. It is asked only when one ends: that is rare."""


async def _untold(session: Session) -> Sequence[Record]:  # noqa: ARG001  a Telling
    return ()


class ReusedError(Exception):
    """A refresh token came a second time, and its session has been ended."""


def session_of_code(code: str) -> str:
    """Return the id of the session that begins with the authorization code or device grant of this name."""
    return derived_id(_SESSIONS, code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """Begins, refreshes and ends them."""

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
        refresh: RefreshToken | None = None,
        log: Sequence[Record] = (),
    ) -> Session:
        """Begin a session, and note the login with its user.

        With a `refresh` token of `new_refresh` it can be refreshed, and has that token's session id. With a `code` it
        has that one's id, so there are no two: AlreadyExists.
        """
        now = self.clock.now()
        name = refresh.session if refresh else session_of_code(code) if code else random_id(self.randomness)
        session = Session(
            metadata=Metadata(name=name, labels={USER_LABEL: user.name}, owner_references=(USER.owner(user),)),
            spec=SessionSpec(
                user=user.name,
                client=client,
                provider=provider,
                organization=await organization_vouching(self.store, provider),
                scope=scope,
                authenticated=authenticated or now,
                expires=now + self.settings.refresh_token_life,
                refresh_hash=refresh.hash if refresh else "",
                family_hash=refresh.family_hash if refresh else "",
                code=code,
                login=login,
            ),
        )
        begun = await self.store.create(session, log=log)
        await self._note_login(begun)
        return begun

    def new_refresh(self, code: str = "") -> RefreshToken:
        """Return the first refresh token of a session to be begun, of that code's if there is one."""
        name = session_of_code(code) if code else random_id(self.randomness)
        return RefreshToken.new(name, self.randomness)

    async def find(self, name: str) -> Session | None:
        """Return a session that is neither ended nor over, or None."""
        session = await find(self.store, Session, name)
        return session if session is not None and self.is_alive(session) else None

    def is_alive(self, session: Session) -> bool:
        """Tell whether a session is neither ended nor over."""
        spec = session.spec
        return spec.ended is None and (spec.expires is None or self.clock.now() < spec.expires)

    async def of_refresh(self, token: RefreshToken) -> Session | None:
        """Return the living session that a refresh token is of, whether it is the good one or an earlier one."""
        session = await self.find(token.session)
        return session if session is not None and token.is_of(session.spec.family_hash) else None

    async def refresh(
        self, session: Session, token: RefreshToken, *, log: Sequence[Record] = (), ending: Telling = _untold
    ) -> tuple[Session, RefreshToken]:
        """Return the session with the next refresh token in place of this one.

        Raises ReusedError if this one is not good: the session is then ended, with the records of `ending`.
        """
        if token.is_it(session.spec.refresh_hash):
            following = token.next(self.randomness)
            try:
                spec = replace(session.spec, refresh_hash=following.hash, refreshed=self.clock.now())
                return await self.store.update(replace(session, spec=spec), log=log), following
            except (Conflict, NotFound):  # somebody else came with it at the same time
                pass
        await self.end(session, log=await ending(session))
        raise ReusedError

    async def end(self, session: Session | str, *, log: Sequence[Record] = ()) -> None:
        """End a session, with every token of its. One that is gone is ended already."""
        name = session if isinstance(session, str) else session.name

        async def mark() -> Session | None:
            try:
                found = await self.store.get(Session, name)
                if found.spec.ended is not None:
                    return found
                spec = replace(found.spec, ended=self.clock.now())
                return await self.store.update(replace(found, spec=spec), log=log)
            except NotFound:
                return None

        marked = await retry_on_conflict(mark)
        if marked is not None:
            await self.clear(marked)

    async def end_all(self, user: str, *, log: Sequence[Record] = ()) -> int:
        """End every session of a user, by its id, one after the other, and return how many there were.

        The first one's write carries the log. Who must be sure that none begins meanwhile suspends the user first.
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
        """End every session of a user that came of one browser login."""
        for session in (await self.store.list(Session, labels={USER_LABEL: user})).items:
            if session.spec.login == login:
                await self.end(session)

    async def clear(self, session: Session) -> None:
        """Tell other services of a session that was ended, then forget it."""
        assert session.spec.ended is not None, "only what has ended is cleared away"
        await self.tokens.revoke(session.name, expires=session.spec.ended + self.settings.access_token_life)
        await self.forget(session)

    async def forget(self, session: Session) -> None:
        """Delete a session that is ended or over."""
        try:
            await self.store.delete(Session, session.name, uid=session.uid)
        except NotFound:
            return

    async def _note_login(self, session: Session) -> None:
        """Write into the user when it last logged in through this client. A crash before this loses only that."""
        spec = session.spec
        login = LastLogin(
            client_id=spec.client,
            authorization_code_id=session.name,
            last_authentication=spec.authenticated,
        )

        async def note() -> None:
            try:
                user = await self.store.get(User, spec.user)
            except NotFound:  # it is being deleted, and the session with it
                return
            others = tuple(each for each in user.spec.sessions if each.client_id != spec.client)
            await self.store.update(replace(user, spec=replace(user.spec, sessions=(*others, login))))

        await retry_on_conflict(note)
