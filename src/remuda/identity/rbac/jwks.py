"""Identity's public keys, as another process knows them."""

import asyncio
from datetime import datetime
from typing import Any

import msgspec
import structlog
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from remuda.identity.ports import Fetch
from remuda.identity.rbac.revocation_feed import IdentitySilent
from remuda.identity.tokens.keys import LoadedKey
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable

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
            structlog.get_logger().warning("identity's keys cannot be read", cause=error.sentence)
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
