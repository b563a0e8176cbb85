"""Authorization codes and device grants (RFC 8628).

An authorization code is valid for a minute, once. A code that is presented twice may be stolen, so its session ends.
The exchange takes three writes: the code is marked as used by compare-and-swap; the session is created; the code is
deleted, on condition that it has not changed. A second request marks the code as reused, which fails that condition, or
finds the session and ends it. After a crash in between, the code is used, and no client has the session's tokens.

A user code has eight consonants: easy to type, but short, so attempts are limited where it is entered. A device grant
is redeemed by deleting it, so one of several requests gets the session. The polling interval is enforced per process.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from remuda.identity.kinds.factors import AuthenticationMethod
from remuda.identity.kinds.oauth import AuthorizationCode, AuthorizationCodeSpec, DeviceGrant, DeviceGrantSpec
from remuda.identity.oauth.schema import DeviceAuthorization
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.secrets import new_secret, token_hash
from remuda.identity.tokens.sessions import EndRecords, Sessions, session_of_code
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound, OAuthError
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.crud import find, find_by_index, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

_CODE = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationCodes:
    """Authorization codes, each exchanged once. `ending` returns the audit records of a session that ends."""

    store: Store
    clock: Clock
    randomness: Randomness
    settings: IdentitySettings
    sessions: Sessions

    async def issue(self, spec: AuthorizationCodeSpec) -> Secret:
        """Return a new code for a successful login, and set its expiry."""
        code, expires = new_secret(self.randomness), self.clock.now() + self.settings.code_lifetime
        metadata = Metadata(name=token_hash(code.reveal()))
        await self.store.create(AuthorizationCode(metadata=metadata, spec=replace(spec, expires=expires)))
        return code

    async def get(self, code: Secret, *, ending: EndRecords) -> AuthorizationCode:
        """Return an unexpired code, used or not. Otherwise end its session, if any, and raise OAuthError."""
        if not _CODE.fullmatch(code.reveal()):
            raise OAuthError("invalid_request", "code is malformed: send the one from the authorization response")
        name = token_hash(code.reveal())
        found = await find(self.store, AuthorizationCode, name)
        if found is None or found.spec.expires is None or found.spec.expires <= self.clock.now():
            await self.end(name, ending=ending)
            raise _invalid_code()
        return found

    async def use(self, code: AuthorizationCode, *, ending: EndRecords) -> AuthorizationCode:
        """Mark a code as used. If it already was, end its session and raise OAuthError."""
        while not code.spec.is_used:
            try:
                return await self.store.update(replace(code, spec=replace(code.spec, is_used=True)))
            except Conflict:
                code = await self._reload(code)
            except NotFound:
                break
        await self._reuse(code, ending)
        raise _invalid_code()

    async def finish(self, code: AuthorizationCode, *, ending: EndRecords) -> None:
        """Delete a code whose session was created. If the code was reused, end the session and raise OAuthError."""
        try:
            await self.store.delete(AuthorizationCode, code.name, uid=code.uid, version=code.version)
        except (Conflict, NotFound):
            await self.end(code.name, ending=ending)
            raise _invalid_code() from None

    async def end(self, code: str, *, ending: EndRecords) -> None:
        """End the session of the code with this name, if there is one."""
        session = await self.sessions.find(session_of_code(code))
        if session is not None:
            await self.sessions.end(session, log=await ending(session))

    async def _reuse(self, code: AuthorizationCode, ending: EndRecords) -> None:
        """Mark a code as reused, which fails an exchange in progress, and end its session."""
        while not code.spec.is_reused:
            try:
                code = await self.store.update(replace(code, spec=replace(code.spec, is_reused=True)))
            except Conflict:
                code = await self._reload(code)
            except NotFound:
                break
        await self.end(code.name, ending=ending)

    async def _reload(self, code: AuthorizationCode) -> AuthorizationCode:
        found = await find(self.store, AuthorizationCode, code.name)
        return found or replace(code, spec=replace(code.spec, is_used=True, is_reused=True))


def _invalid_code() -> OAuthError:
    return OAuthError("invalid_grant", "code is used, expired or unknown: log in again")


_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_LENGTH = 8
_INTERVAL_S = 5
_MAX_SCHEDULES = 10_000


@dataclass(slots=True)
class _PollSchedule:
    """Time of a device's next allowed request, and its interval."""

    next: float
    interval_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGrants:
    """Device grants."""

    store: Store
    clock: Clock
    randomness: Randomness
    settings: IdentitySettings
    _schedules: OrderedDict[str, _PollSchedule] = field(default_factory=OrderedDict)

    async def begin(self, client: str, scope: str) -> DeviceAuthorization:
        device_code, user_code = new_secret(self.randomness), await self._new_user_code()
        lifetime, uri = self.settings.device_code_lifetime, f"{self.settings.issuer}/oauth2/v2/device"
        spec = DeviceGrantSpec(
            client=client,
            scope=scope,
            user_code_hash=_user_code_hash(user_code),
            expires=self.clock.now() + lifetime,
            interval_s=_INTERVAL_S,
        )
        await self.store.create(DeviceGrant(metadata=Metadata(name=token_hash(device_code.reveal())), spec=spec))
        return DeviceAuthorization(
            device_code=device_code,
            user_code=Secret(user_code),
            verification_uri=uri,
            verification_uri_complete=Secret(f"{uri}?user_code={user_code}"),
            expires_in=int(lifetime.total_seconds()),
            interval=_INTERVAL_S,
        )

    async def find(self, user_code: str) -> DeviceGrant | None:
        """Return the pending grant of a user code, in any case and with or without the dash."""
        grant = await find_by_index(self.store, DeviceGrant, "user-code", _user_code_hash(user_code))
        return grant if grant is not None and self._is_pending(grant) else None

    async def approve(
        self,
        user_code: str,
        *,
        user: str,
        authenticated: datetime | None = None,
        provider: str = "",
        methods: tuple[AuthenticationMethod, ...] = (),
        login: str = "",
        log: Sequence[Record] = (),
    ) -> bool:
        """Approve the device for this user, by id, in a browser login; return whether a grant was pending."""
        when = authenticated or self.clock.now()
        decision = {"user": user, "authenticated": when, "provider": provider, "methods": methods}
        return await self._decide(user_code, log, login=login, **decision)

    async def deny(self, user_code: str, *, log: Sequence[Record] = ()) -> bool:
        """Deny the device; return whether a grant was pending."""
        return await self._decide(user_code, log, is_denied=True)

    async def redeem(self, device_code: Secret, client: str) -> DeviceGrant:
        """Return the approved grant, once, or raise OAuthError with the error code that RFC 8628 defines."""
        name = token_hash(device_code.reveal())
        grant = await find(self.store, DeviceGrant, name)
        if grant is None:
            raise OAuthError("invalid_grant", "device_code is used or unknown: start again")
        if grant.spec.client != client:
            raise OAuthError("invalid_grant", "device_code was issued to another client: start again")
        if grant.spec.expires is None or grant.spec.expires <= self.clock.now():
            raise OAuthError("expired_token", "device_code has expired: start again")
        if grant.spec.is_denied:
            raise OAuthError("access_denied", "the user denied the request: start again if that was a mistake")
        if not grant.spec.user:
            raise self._pending(grant)
        try:
            await self.store.delete(DeviceGrant, name, uid=grant.uid, version=grant.version)
        except (Conflict, NotFound):
            raise OAuthError("invalid_grant", "device_code is used or unknown: start again") from None
        self._schedules.pop(name, None)
        return grant

    def _pending(self, grant: DeviceGrant) -> OAuthError:
        now, schedule = self.clock.monotonic(), self._schedules.get(grant.name)
        if schedule is None:
            schedule = _PollSchedule(next=now, interval_s=grant.spec.interval_s)
            self._schedules[grant.name] = schedule
            if len(self._schedules) > _MAX_SCHEDULES:
                self._schedules.popitem(last=False)
        is_early = now < schedule.next
        schedule.interval_s += _INTERVAL_S if is_early else 0
        schedule.next = now + schedule.interval_s
        if is_early:
            return OAuthError("slow_down", f"polled too soon: poll again in {schedule.interval_s:g} s")
        return OAuthError("authorization_pending", "the user has not decided yet: poll again later")

    async def _decide(self, user_code: str, log: Sequence[Record], **fields: object) -> bool:
        async def write() -> bool:
            grant = await self.find(user_code)
            if grant is None:
                return False
            try:
                await self.store.update(replace(grant, spec=replace(grant.spec, **fields)), log=log)
            except NotFound:
                return False
            return True

        return await retry_on_conflict(write)

    def _is_pending(self, grant: DeviceGrant) -> bool:
        spec = grant.spec
        is_undecided = not spec.user and not spec.is_denied
        return is_undecided and spec.expires is not None and self.clock.now() < spec.expires

    async def _new_user_code(self) -> str:
        while True:
            drawn = [_LETTERS[self.randomness.randrange(len(_LETTERS))] for _ in range(_LENGTH)]
            code = f"{''.join(drawn[: _LENGTH // 2])}-{''.join(drawn[_LENGTH // 2 :])}"
            page = await self.store.list_names(DeviceGrant, index=("user-code", _user_code_hash(code)), limit=1)
            if not page.items:
                return code


def _user_code_hash(user_code: str) -> str:
    return token_hash("".join(letter for letter in user_code.upper() if letter in _LETTERS))
