"""Device grants (RFC 8628): a device without a browser shows a code, and its user says yes elsewhere.

The user's code has eight consonants, so that it is easy to type and spells nothing. It is not much of a secret: it
lives for minutes, and how often somebody may try is limited where it is typed in. The device's own code is one.

A grant is used up by deleting it: of several that ask at once one gets the session, and after a crash in between the
device begins again. How often a device asks is remembered by this process alone: several processes at worst let it ask
as often as there are of them.

Authorization codes: random text that lives for a minute and is good once.

A code that comes twice was stolen, from the first or by it, so the session that began with it ends. Exchanging a code
takes three writes: the code is marked as used by compare-and-swap, so of two that come at once one goes on; the session
is begun; the code is deleted, on condition that nobody came with it meanwhile. Who comes second marks the code as
reused, which fails that condition, or finds the session and ends it: whichever way they meet, no session is left. After
a crash in between the code is used and its session, if it was begun, has tokens that nobody ever saw.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from remuda.identity.kinds.oauth import AuthorizationCode, AuthorizationCodeSpec, DeviceGrant, DeviceGrantSpec
from remuda.identity.oauth.schema import DeviceAuthorization
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.secrets import new_secret, token_hash
from remuda.identity.tokens.sessions import EndRecords, Sessions, session_of_code
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound, OAuthError
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.crud import find, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

_FORM = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """Issues codes, and sees that each is exchanged once. Whoever asks brings the records of a session's `ending`."""

    store: Store
    clock: Clock
    randomness: Randomness
    settings: IdentitySettings
    sessions: Sessions

    async def issue(self, spec: AuthorizationCodeSpec) -> Secret:
        """Return a new code for a login that has succeeded. When it expires is ours to say."""
        code, expires = new_secret(self.randomness), self.clock.now() + self.settings.code_lifetime
        metadata = Metadata(name=token_hash(code.reveal()))
        await self.store.create(AuthorizationCode(metadata=metadata, spec=replace(spec, expires=expires)))
        return code

    async def find(self, code: Secret, *, ending: EndRecords) -> AuthorizationCode:
        """Return a code that was handed out, used or not, or raise OAuthError; a used one's session is ended."""
        if not _FORM.fullmatch(code.reveal()):
            raise OAuthError("invalid_request", "code is malformed: send the one that the login returned")
        name = token_hash(code.reveal())
        found = await find(self.store, AuthorizationCode, name)
        if found is None or found.spec.expires is None or found.spec.expires <= self.clock.now():
            await self.end(name, ending=ending)
            raise _spent()
        return found

    async def use(self, code: AuthorizationCode, *, ending: EndRecords) -> AuthorizationCode:
        """Mark a code as used, or raise OAuthError, and end what began with it, if it is already."""
        while not code.spec.is_used:
            try:
                return await self.store.update(replace(code, spec=replace(code.spec, is_used=True)))
            except Conflict:
                code = await self._again(code)
            except NotFound:
                break
        await self._reuse(code, ending)
        raise _spent()

    async def settle(self, code: AuthorizationCode, *, ending: EndRecords) -> None:
        """Forget a code whose session has begun, or raise OAuthError, and end it, if the code came again."""
        try:
            await self.store.delete(AuthorizationCode, code.name, uid=code.uid, version=code.version)
        except (Conflict, NotFound):
            await self.end(code.name, ending=ending)
            raise _spent() from None

    async def end(self, code: str, *, ending: EndRecords) -> None:
        """End the session that began with the code of this name, if there is one."""
        session = await self.sessions.find(session_of_code(code))
        if session is not None:
            await self.sessions.end(session, log=await ending(session))

    async def _reuse(self, code: AuthorizationCode, ending: EndRecords) -> None:
        """Let the first exchange fail if it is under way, and end its session if it is not."""
        while not code.spec.is_reused:
            try:
                code = await self.store.update(replace(code, spec=replace(code.spec, is_reused=True)))
            except Conflict:
                code = await self._again(code)
            except NotFound:
                break
        await self.end(code.name, ending=ending)

    async def _again(self, code: AuthorizationCode) -> AuthorizationCode:
        found = await find(self.store, AuthorizationCode, code.name)
        return found or replace(code, spec=replace(code.spec, is_used=True, is_reused=True))


def _spent() -> OAuthError:
    return OAuthError("invalid_grant", "code is used, expired or unknown: log in again")


_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_LENGTH = 8
_INTERVAL_S = 5
_MOST_WATCHED = 10_000


@dataclass(slots=True)
class _Pace:
    """When a device may ask next, and how long it has to wait after that."""

    next: float
    interval_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Lets devices in."""

    store: Store
    clock: Clock
    randomness: Randomness
    settings: IdentitySettings
    _paces: OrderedDict[str, _Pace] = field(default_factory=OrderedDict)

    async def begin(self, client: str, scope: str) -> DeviceAuthorization:
        """Return the codes for a device that asks to be let in."""
        device_code, user_code = new_secret(self.randomness), await self._new_user_code()
        life, uri = self.settings.device_code_lifetime, f"{self.settings.issuer}/oauth2/v2/device"
        spec = DeviceGrantSpec(
            client=client,
            scope=scope,
            user_code_hash=_user_code_hash(user_code),
            expires=self.clock.now() + life,
            interval_s=_INTERVAL_S,
        )
        await self.store.create(DeviceGrant(metadata=Metadata(name=token_hash(device_code.reveal())), spec=spec))
        return DeviceAuthorization(
            device_code=device_code,
            user_code=Secret(user_code),
            verification_uri=uri,
            verification_uri_complete=Secret(f"{uri}?user_code={user_code}"),
            expires_in=int(life.total_seconds()),
            interval=_INTERVAL_S,
        )

    async def find(self, user_code: str) -> DeviceGrant | None:
        """Return the grant that waits under what a user typed, in whatever case and with or without the dash."""
        page = await self.store.list(DeviceGrant, index=("user-code", _user_code_hash(user_code)), limit=1)
        return next((grant for grant in page.items if self._waits(grant)), None)

    async def approve(
        self,
        user_code: str,
        *,
        user: str,
        authenticated: datetime | None = None,
        provider: str = "",
        log: Sequence[Record] = (),
    ) -> bool:
        """Let the device in as this user, by its id; tell whether one was waiting."""
        when = authenticated or self.clock.now()
        return await self._answer(user_code, log, user=user, authenticated=when, provider=provider)

    async def deny(self, user_code: str, *, log: Sequence[Record] = ()) -> bool:
        """Turn the device away; tell whether one was waiting."""
        return await self._answer(user_code, log, is_denied=True)

    async def take(self, device_code: Secret, client: str) -> DeviceGrant:
        """Return the grant that its user has approved, once. Raises OAuthError with what the device is to do."""
        name = token_hash(device_code.reveal())
        grant = await find(self.store, DeviceGrant, name)
        if grant is None:
            raise OAuthError("invalid_grant", "device_code is used or unknown: begin again")
        if grant.spec.client != client:
            raise OAuthError("invalid_grant", "device_code was given to another client: begin again")
        if grant.spec.expires is None or grant.spec.expires <= self.clock.now():
            raise OAuthError("expired_token", "device_code has expired: begin again")
        if grant.spec.is_denied:
            raise OAuthError("access_denied", "the user has said no: begin again if that was a mistake")
        if not grant.spec.user:
            raise self._pending(grant)
        try:
            await self.store.delete(DeviceGrant, name, uid=grant.uid, version=grant.version)
        except (Conflict, NotFound):
            raise OAuthError("invalid_grant", "device_code is used or unknown: begin again") from None
        self._paces.pop(name, None)
        return grant

    def _pending(self, grant: DeviceGrant) -> OAuthError:
        now, pace = self.clock.monotonic(), self._paces.get(grant.name)
        if pace is None:
            pace = _Pace(next=now, interval_s=grant.spec.interval_s)
            self._paces[grant.name] = pace
            if len(self._paces) > _MOST_WATCHED:
                self._paces.popitem(last=False)
        is_early = now < pace.next
        pace.interval_s += _INTERVAL_S if is_early else 0
        pace.next = now + pace.interval_s
        if is_early:
            return OAuthError("slow_down", f"asked too soon: ask again in {pace.interval_s:g} s")
        return OAuthError("authorization_pending", "the user has not answered yet: ask again later")

    async def _answer(self, user_code: str, log: Sequence[Record], **answer: object) -> bool:
        async def write() -> bool:
            grant = await self.find(user_code)
            if grant is None:
                return False
            try:
                await self.store.update(replace(grant, spec=replace(grant.spec, **answer)), log=log)
            except NotFound:
                return False
            return True

        return await retry_on_conflict(write)

    def _waits(self, grant: DeviceGrant) -> bool:
        spec = grant.spec
        is_open = not spec.user and not spec.is_denied
        return is_open and spec.expires is not None and self.clock.now() < spec.expires

    async def _new_user_code(self) -> str:
        while True:
            drawn = [_LETTERS[self.randomness.randrange(len(_LETTERS))] for _ in range(_LENGTH)]
            code = f"{''.join(drawn[: _LENGTH // 2])}-{''.join(drawn[_LENGTH // 2 :])}"
            page = await self.store.list_names(DeviceGrant, index=("user-code", _user_code_hash(code)), limit=1)
            if not page.items:
                return code


def _user_code_hash(user_code: str) -> str:
    return token_hash("".join(letter for letter in user_code.upper() if letter in _LETTERS))
