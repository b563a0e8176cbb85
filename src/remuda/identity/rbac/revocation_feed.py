"""Revocations and public keys of identity, as followed from another process.

The feed is a watch. It has all revocations when the watch is synced, and gets new ones within moments. Without any
message, not even a heartbeat, for 10 s it is stale, and `check` raises until the watch is back. So the heartbeat of
identity must be shorter than that.
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

if TYPE_CHECKING:  # identity itself imports a constant from here, and not the slow modules
    from remuda.http.client import Client, WatchEvent


MAX_AGE_S = 10.0
"""Time without a message after which the feed is stale."""
HEARTBEAT_S = 3.0
"""Heartbeat interval of identity, short enough that one may be lost."""

_PAUSE_S = 1.0


class IdentityUnavailable(Unavailable):
    """Raised (503, not 401: the token may be valid) when identity was not reachable for too long."""

    retry_after_s = 2

    def __init__(self, cause: str) -> None:
        super().__init__(f"Callers cannot be authenticated at the moment, because {cause}: try again later.")


class RevocationFeed:
    """Ids of revoked tokens and sessions. `run` it in a background task."""

    def __init__(self, client: "Client", clock: Clock) -> None:
        """Take a client with this service's own credentials."""
        self._client, self._clock = client, clock
        self._revoked: set[str] = set()
        self._listed: set[str] = set()
        """Revocations of a restarted watch that is not synced yet."""
        self._is_synced = False
        self._last_seen_at: float | None = None
        self.version = 0
        """Number that changes with the revocations."""

    def check(self) -> None:
        """Raise IdentityUnavailable if the feed is stale."""
        if self._last_seen_at is None or self._clock.monotonic() - self._last_seen_at > MAX_AGE_S:
            raise IdentityUnavailable("revocations are not known")

    def __contains__(self, revoked: str) -> bool:
        return revoked in self._revoked

    async def run(self) -> NoReturn:
        """Watch revocations until the task is cancelled."""
        while True:
            self._is_synced = False
            self._listed = set()
            try:
                await self._follow()
            except (RemudaError, ValueError):  # known revocations are kept until they are stale
                await self._clock.sleep(_PAUSE_S)

    async def _follow(self) -> None:
        async with aclosing(self._client.watch(REVOCATIONS, on_message=self._record_message)) as events:
            async for event in events:
                self._apply(event)

    def _record_message(self) -> None:
        if self._is_synced:
            self._last_seen_at = self._clock.monotonic()

    def _apply(self, event: "WatchEvent[RevocationRead]") -> None:
        self.version += 1
        known = self._revoked if self._is_synced else self._listed
        if event.type == "synced":
            self._revoked, self._is_synced = self._listed, True
        elif event.item is not None and event.type == "deleted":
            known.discard(event.item.id)
        elif event.item is not None:
            known.add(event.item.id)


_OK = 200
_UNKNOWN_KEY_S = 60.0
"""Minimum time between two requests because of unknown key ids."""
_NO_KEYS_S = 1.0
_OLD_S = 300.0


class _Keys(msgspec.Struct, frozen=True):
    keys: tuple[dict[str, Any], ...]


class PublicKeys:
    """Public keys of identity.

    They are fetched when first needed, when old, and when a token has an unknown key id: once for all waiting callers,
    even if all of them are cancelled, and at most once in an interval. Old keys stay valid until there are new ones,
    since identity decides on every token.
    """

    def __init__(self, url: str, *, fetch: Fetch, clock: Clock) -> None:
        self._url, self._fetch, self._clock = url, fetch, clock
        self._keys: dict[str, LoadedKey] = {}
        self._refreshed_at = float("-inf")
        self._refreshing: asyncio.Task[None] | None = None
        self.version = 0
        """Number that changes with the keys."""

    async def find(self, kid: str) -> LoadedKey | None:
        """Return the key with this id, or raise IdentityUnavailable if no keys are known."""
        if self._refreshing is None and self._is_due(kid):
            self._refreshing = asyncio.create_task(self._refresh())
        if self._refreshing is not None and kid not in self._keys:
            await asyncio.shield(self._refreshing)
        if not self._keys:
            raise IdentityUnavailable("its keys are not known")
        return self._keys.get(kid)

    def _is_due(self, kid: str) -> bool:
        min_interval_s = _NO_KEYS_S if not self._keys else _OLD_S if kid in self._keys else _UNKNOWN_KEY_S
        return self._clock.monotonic() - self._refreshed_at >= min_interval_s

    async def _refresh(self) -> None:
        try:
            await self._read()
        except Unavailable as error:
            structlog.get_logger().warning("cannot fetch the keys of identity", cause=error.message)
        finally:
            self._refreshing, self._refreshed_at = None, self._clock.monotonic()

    async def _read(self) -> None:
        response = await self._fetch("GET", self._url, {"Accept": "application/json"}, None, organization="")
        if response.status != _OK:
            raise Unavailable(f"Identity responded {response.status} to the request for its keys.")
        try:
            listed = msgspec.json.decode(response.body, type=_Keys).keys
            keys = [_load(each, self._clock.now()) for each in listed if each.get("kty") == "EC"]
        except (ValueError, JoseError):
            raise Unavailable("Identity's keys cannot be read.") from None
        self._keys = {key.kid: key for key in keys}
        self.version += 1


def _load(jwk: dict[str, Any], now: datetime) -> LoadedKey:
    key = ECKey.import_key(jwk)
    return LoadedKey(kid=str(jwk.get("kid") or key.thumbprint()), key=key, created=now)
