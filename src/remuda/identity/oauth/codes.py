"""Authorization codes: random text that lives for a minute and is good once.

A code that comes twice was stolen, from the first or by it, so the session that began with it ends. Exchanging a code
takes three writes: the code is marked as used by compare-and-swap, so of two that come at once one goes on; the session
is begun; the code is deleted, on condition that nobody came with it meanwhile. Who comes second marks the code as
reused, which fails that condition, or finds the session and ends it: whichever way they meet, no session is left. After
a crash in between the code is used and its session, if it was begun, has tokens that nobody ever saw.
"""

import re
from dataclasses import dataclass

from msgspec.structs import replace

from remuda.identity.kinds.oauth import AuthorizationCode, AuthorizationCodeSpec
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.secrets import new_secret, token_hash
from remuda.identity.tokens.sessions import Sessions, Telling, session_of_code
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound, OAuthRefusal
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.crud import find
from remuda.store.contract import Store
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
        code, expires = new_secret(self.randomness), self.clock.now() + self.settings.code_life
        metadata = Metadata(name=token_hash(code.reveal()))
        await self.store.create(AuthorizationCode(metadata=metadata, spec=replace(spec, expires=expires)))
        return code

    async def find(self, code: Secret, *, ending: Telling) -> AuthorizationCode:
        """Return a code that was handed out, used or not, or raise OAuthRefusal; a used one's session is ended."""
        if not _FORM.fullmatch(code.reveal()):
            raise OAuthRefusal("invalid_request", "code is malformed: send the one that the login returned")
        name = token_hash(code.reveal())
        found = await find(self.store, AuthorizationCode, name)
        if found is None or found.spec.expires is None or found.spec.expires <= self.clock.now():
            await self.end(name, ending=ending)
            raise _spent()
        return found

    async def use(self, code: AuthorizationCode, *, ending: Telling) -> AuthorizationCode:
        """Mark a code as used, or raise OAuthRefusal, and end what began with it, if it is already."""
        while not code.spec.is_used:
            try:
                return await self.store.update(replace(code, spec=replace(code.spec, is_used=True)))
            except Conflict:
                code = await self._again(code)
            except NotFound:
                break
        await self._reuse(code, ending)
        raise _spent()

    async def settle(self, code: AuthorizationCode, *, ending: Telling) -> None:
        """Forget a code whose session has begun, or raise OAuthRefusal, and end it, if the code came again."""
        try:
            await self.store.delete(AuthorizationCode, code.name, uid=code.uid, version=code.version)
        except (Conflict, NotFound):
            await self.end(code.name, ending=ending)
            raise _spent() from None

    async def end(self, code: str, *, ending: Telling) -> None:
        """End the session that began with the code of this name, if there is one."""
        session = await self.sessions.find(session_of_code(code))
        if session is not None:
            await self.sessions.end(session, log=await ending(session))

    async def _reuse(self, code: AuthorizationCode, ending: Telling) -> None:
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


def _spent() -> OAuthRefusal:
    return OAuthRefusal("invalid_grant", "code is used, expired or unknown: log in again")
