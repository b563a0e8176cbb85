"""The keys of external issuers whose bearer tokens we believe.

They are where existing installations look for them (`/.well-known/jwks.json` below the issuer) or, where there is
nothing, where the issuer's OpenID discovery says. They are read when the first token comes, again when they have become
old, and when a token names a key that is not among them; but not more than once a minute: whoever sends us tokens with
made-up keys must not make us ask for each. So a token by a key that we know costs no round trip: keys in use are
renewed in the background.

While an issuer does not answer, the keys that it had stay good, for a day at most.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import structlog
from prometheus_client import Counter

from remuda.identity.federation.provider_client import PublicKey, broken, fetch_json, named, read_keys
from remuda.identity.ports import Fetch
from remuda.identity.tokens.peeking import BELIEVED
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OAuthRefusal, Unavailable

FRESH_S = BELIEVED.total_seconds()
"""How old keys may be before they are read again, so that one which the issuer withdrew does not verify for ever."""

_OLD_S = 2 * FRESH_S
"""From then on nobody is let in by them before the issuer was asked."""
_ASK_AGAIN_S = 60.0
_STALE_S = 86_400.0
_NEVER = float("-inf")


class _Discovery(msgspec.Struct, frozen=True):
    issuer: str
    jwks_uri: str


@dataclass(slots=True)
class _Known:
    """What is known of one issuer."""

    keys: tuple[PublicKey, ...] = ()
    read_at: float = _NEVER
    asked_at: float = _NEVER
    asking: asyncio.Task[None] | None = None


class IssuerKeys:
    """Reads and keeps them. `throttled` counts how often the limit kept us from asking."""

    def __init__(self, *, fetch: Fetch, clock: Clock, throttled: Counter) -> None:
        self._fetch, self._clock, self._throttled = fetch, clock, throttled
        self._issuers: dict[str, _Known] = {}

    async def find(self, issuer: str, kid: str | None) -> Sequence[PublicKey]:
        """Return an issuer's keys with this name, or all if the token names none. Raise Unavailable if we know none."""
        known = self._issuers.setdefault(issuer, _Known())
        age_s, found = self._age_s(known), named(known.keys, kid)
        if not found or age_s >= FRESH_S:
            asking = self._ask_again(issuer, known)
            if asking is not None and (not found or age_s >= _OLD_S):
                await asyncio.shield(asking)  # who gives up waiting does not keep the others from the keys
        if self._age_s(known) >= _STALE_S:
            raise Unavailable("The keys of the token's issuer cannot be read: try again in a minute.")
        return named(known.keys, kid)

    def _ask_again(self, issuer: str, known: _Known) -> asyncio.Task[None] | None:
        """Have an issuer asked once for all who want to know, unless it was asked a moment ago."""
        now = self._clock.monotonic()
        if known.asking is None:
            if now - known.asked_at < _ASK_AGAIN_S:
                self._throttled.inc()
                return None
            known.asked_at, known.asking = now, asyncio.create_task(self._refresh(issuer, known))
        return known.asking

    async def _refresh(self, issuer: str, known: _Known) -> None:
        try:
            known.keys = await self._read(issuer)
            known.read_at = known.asked_at
        except OAuthRefusal as refusal:
            structlog.get_logger().warning(
                "the keys of an external issuer cannot be read", issuer=issuer, cause=refusal.sentence
            )
        finally:
            known.asking = None

    async def _read(self, issuer: str) -> tuple[PublicKey, ...]:
        below = f"{issuer.removesuffix('/')}/.well-known"
        try:
            return await read_keys(self._fetch, f"{below}/jwks.json")
        except OAuthRefusal as refusal:
            if refusal.error == "temporarily_unavailable":
                raise
        about = await fetch_json(self._fetch, "GET", f"{below}/openid-configuration", _Discovery)
        if about.issuer != issuer:
            raise broken("it calls itself by another issuer than the one configured here")
        return await read_keys(self._fetch, about.jwks_uri)

    def _age_s(self, known: _Known) -> float:
        return self._clock.monotonic() - known.read_at
