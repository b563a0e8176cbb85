"""Browsers in which somebody has logged in before.

Whoever guesses at an account's password uses up what the account may be tried. Its owner must not be shut out by that,
so a browser in which they have logged in before has an allowance of its own (`attempts`). It is known by a second
cookie, which outlives logging out. The cookie is sealed, and proves nothing but that: with it, one may try; one is not
logged in by it.
"""

from dataclasses import dataclass
from datetime import timedelta

import msgspec

from remuda.identity.login.cookies import Cookie
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unsealable
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret

LIFE = timedelta(days=180)
"""How long a browser is remembered after the last login in it."""

_CONTEXT = "familiar browser"
_MOST_ACCOUNTS, _TOO_LONG = 4, 2048


@dataclass(frozen=True, slots=True)
class Familiar:
    """What a browser can show: its number, and whose it is, the last one first."""

    browser: str = ""
    accounts: tuple[str, ...] = ()

    def number_for(self, account: str) -> str:
        """Return the number under which this browser tries an account, or nothing if nobody logged in to it here."""
        return self.browser if account in self.accounts else ""


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    browser: str
    accounts: tuple[str, ...]
    expires: int


class FamiliarCookie:
    """Reads and writes the cookie."""

    def __init__(self, issuer: str, *, sealer: Sealer, clock: Clock, randomness: Randomness) -> None:
        self._cookie = Cookie(issuer, "remuda-familiar")
        self._sealer, self._clock, self._randomness = sealer, clock, randomness

    def read(self, header: str) -> Familiar:
        """Return what a browser shows; nothing, if it is not ours or too old."""
        sealed = self._cookie.read(header)
        if not sealed or len(sealed) > _TOO_LONG:
            return Familiar()
        try:
            plain = self._sealer.open(sealed, context=_CONTEXT).reveal()
        except Unsealable:
            return Familiar()
        kept = msgspec.json.decode(plain, type=_Kept)
        return Familiar(kept.browser, kept.accounts) if self._clock.now().timestamp() < kept.expires else Familiar()

    def write(self, shown: Familiar, account: str) -> str:
        """Return the header by which a browser that showed this is known, from now on, as this account's too."""
        others = [each for each in shown.accounts if each != account]
        kept = _Kept(
            browser=shown.browser or random_id(self._randomness),
            accounts=(account, *others)[:_MOST_ACCOUNTS],
            expires=int((self._clock.now() + LIFE).timestamp()),
        )
        sealed = self._sealer.seal(Secret(msgspec.json.encode(kept).decode()), context=_CONTEXT)
        return self._cookie.write(sealed, life=LIFE)
