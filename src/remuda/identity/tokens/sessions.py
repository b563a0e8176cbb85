"""Sessions: one object for each login.

A user may have several with one client, unlike in the reference, where a second login ends the first: people have a
laptop and a desktop, and two terminals must not log each other out. Each is ended by itself, or all of a user's.

Refreshing replaces the good refresh token by compare-and-swap, so of two that come with it at once one wins. Whoever
comes with an earlier one ends the session, also the one that lost such a race: we cannot tell a thief from a client
whose answer was lost, and asking the second to log in again costs less than keeping the first.

Ending is one write, the mark `ended`, from which on neither refresh nor access tokens of the session are good here. The
revocation, which tells other services, and the deletion follow at once, and are made up for by the session's
controller should this process not get to it.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from remuda.identity.kinds.tokens import Session, SessionSpec
from remuda.identity.kinds.users import USER, LastLogin, User
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.footing import organization_vouching
from remuda.identity.tokens.refresh import RefreshToken
from remuda.identity.tokens.service import Tokens
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound
from remuda.kernel.ids import derived_id, random_id
from remuda.kernel.randomness import Randomness
from remuda.resources.conventions import USER as USER_LABEL
from remuda.resources.crud import find, until_written
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

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

        marked = await until_written(mark)
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

        await until_written(note)
