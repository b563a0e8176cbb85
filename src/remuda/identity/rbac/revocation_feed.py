"""What is revoked, followed from another process.

The feed is a watch. It knows everything that was revoked once the watch is synced, and is told of more within a moment.
While it hears nothing, not even a heartbeat, it cannot know: `check` refuses once that has lasted for 10 s, until the
watch is back. (So identity's heartbeats must come more often than that.)

Identity's public keys, as another process knows them.
"""

import asyncio
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import structlog
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from remuda.identity.ports import Fetch
from remuda.identity.rbac.routes import REVOCATIONS
from remuda.identity.rbac.schema import RevocationRead
from remuda.identity.tokens.keys import LoadedKey
from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError, Unavailable

if TYPE_CHECKING:  # identity itself takes a number from here, and does not need what takes long to import
    from remuda.http.client import Client, WatchEvent


OLDEST_S = 10.0
"""How long the feed may be silent and still be believed."""
HEARTBEAT_S = 3.0
"""How often identity has to give a sign of life, so that losing one of them is no trouble."""

_PAUSE_S = 1.0


class IdentitySilent(Unavailable):
    """Raised when identity has not been heard of for too long to know who may do what; it passes when that is back.

    It is no 401: nothing is wrong with the caller's credentials, and a client that took it for that would throw away a
    good token and log in again, at an identity service that is in trouble already.
    """

    retry_after_s = 2

    def __init__(self, why: str) -> None:
        super().__init__(f"Nobody can be told apart at the moment, because {why}: try again a little later.")


class RevocationFeed:
    """The ids of tokens and sessions that are over before their time. `run` it for as long as it is asked."""

    def __init__(self, client: "Client", clock: Clock) -> None:
        """Take a client with this service's own credentials."""
        self._client, self._clock = client, clock
        self._revoked: set[str] = set()
        self._present: set[str] = set()
        """What a watch that began anew has told so far."""
        self._is_synced = False
        self._heard_at: float | None = None

    def check(self) -> None:
        """Raise IdentitySilent unless the feed is believed."""
        if self._heard_at is None or self._clock.monotonic() - self._heard_at > OLDEST_S:
            raise IdentitySilent("what was revoked is not known")

    def __contains__(self, revoked: str) -> bool:
        return revoked in self._revoked

    async def run(self) -> NoReturn:
        """Follow what is revoked, whatever happens."""
        while True:
            self._is_synced = False
            self._present = set()
            try:
                await self._follow()
            except (RemudaError, ValueError):  # what was known stays known, until it is too old to be believed
                await self._clock.sleep(_PAUSE_S)

    async def _follow(self) -> None:
        async with aclosing(self._client.watch(REVOCATIONS, heard=self._heard)) as news:
            async for seen in news:
                self._take(seen)

    def _heard(self) -> None:
        if self._is_synced:
            self._heard_at = self._clock.monotonic()

    def _take(self, seen: "WatchEvent[RevocationRead]") -> None:
        known = self._revoked if self._is_synced else self._present
        if seen.type == "synced":
            self._revoked, self._is_synced = self._present, True
        elif seen.item is not None and seen.type == "deleted":
            known.discard(seen.item.id)
        elif seen.item is not None:
            known.add(seen.item.id)


_OK = 200
_UNKNOWN_KEY_S = 60.0
"""Whoever makes up keys does not make us ask more often than this."""
_NO_KEYS_S = 1.0
_OLD_S = 300.0


class _Keys(msgspec.Struct, frozen=True):
    keys: tuple[dict[str, Any], ...]


class PublicKeys:
    """The keys that identity signs with.

    They are fetched when they are first needed, when they have become old, and when a token names one that is not among
    them: once for all who want to know, even if all of those give up waiting, and not more than once in a while. Keys
    that have become old stay good until there are others, since identity has the last word on every token.
    """

    def __init__(self, url: str, *, fetch: Fetch, clock: Clock) -> None:
        """Take the address of identity's JWKS."""
        self._url, self._fetch, self._clock = url, fetch, clock
        self._keys: dict[str, LoadedKey] = {}
        self._asked_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None
        self.stamp = 0
        """Another number as soon as the keys could be others."""

    async def find(self, kid: str) -> LoadedKey | None:
        """Return the key with this id, if identity has it, or raise IdentitySilent if none are known."""
        if self._asking is None and self._is_due(kid):
            self._asking = asyncio.create_task(self._refresh())
        if self._asking is not None and kid not in self._keys:
            await asyncio.shield(self._asking)
        if not self._keys:
            raise IdentitySilent("its keys are not known")
        return self._keys.get(kid)

    def _is_due(self, kid: str) -> bool:
        patience_s = _NO_KEYS_S if not self._keys else _OLD_S if kid in self._keys else _UNKNOWN_KEY_S
        return self._clock.monotonic() - self._asked_at >= patience_s

    async def _refresh(self) -> None:
        try:
            await self._read()
        except Unavailable as error:
            structlog.get_logger().warning("identity's keys cannot be read", cause=error.message)
        finally:
            self._asking, self._asked_at = None, self._clock.monotonic()

    async def _read(self) -> None:
        answer = await self._fetch("GET", self._url, {"Accept": "application/json"}, None)
        if answer.status != _OK:
            raise Unavailable(f"Identity answered {answer.status} when it was asked for its keys.")
        try:
            listed = msgspec.json.decode(answer.body, type=_Keys).keys
            keys = [_load(each, self._clock.now()) for each in listed if each.get("kty") == "EC"]
        except (ValueError, JoseError):
            raise Unavailable("Identity's keys cannot be read.") from None
        self._keys = {key.kid: key for key in keys}
        self.stamp += 1


def _load(jwk: dict[str, Any], now: datetime) -> LoadedKey:
    key = ECKey.import_key(jwk)
    return LoadedKey(kid=str(jwk.get("kid") or key.thumbprint()), key=key, created=now)
