"""Browsers in which somebody has logged in before.

Whoever guesses at an account's password uses up what the account may be tried. Its owner must not be shut out by that,
so a browser in which they have logged in before has an allowance of its own (`attempts`). It is known by a second
cookie, which outlives logging out. The cookie is sealed, and proves nothing but that: with it, one may try; one is not
logged in by it.

The cookies by which we know a browser again.

The one that counts is 256 random bits and nothing else. Every browser that begins to log in has one, and what it begins
is sealed to it (`states`), so that nobody can begin a login and have somebody else's browser finish it. Each login
gives the browser a new one, so a cookie that was planted before is worth nothing after, and what was begun before
cannot be used again. The other one only says who has logged in here before (`familiar`).

Where our issuer is https, their names begin with `__Host-`: no other host, and nothing without TLS, can set them.

A browser's request, as far as all pages need to know it, and what they keep for it between two requests.

What a browser carries for us from one step of a login to the next.

It is sealed, so nobody can read or change it, and it opens only as what it is, in the browser that it was given to, for
ten minutes. Nothing of it is stored: ten thousand logins that nobody finishes cost nothing.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import msgspec

from remuda.http.routes import Call
from remuda.identity.federation.code_flow import Ticket
from remuda.identity.login.authorization import AuthorizationRequest
from remuda.identity.tokens.secrets import new_secret, token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Malformed, Unsealable
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret

_VALUE = re.compile(r"[A-Za-z0-9_-]{43}")


class Cookie:
    """Reads and writes a cookie of ours."""

    def __init__(self, issuer: str, name: str) -> None:
        is_secure = issuer.startswith("https:")
        self.name = f"{'__Host-' if is_secure else ''}{name}"
        self._attributes = f"Path=/; HttpOnly; SameSite=Lax{'; Secure' if is_secure else ''}"

    def read(self, header: str) -> str:
        """Return the value that a browser sent, or nothing if it sent none or several."""
        pairs = (pair.strip().partition("=") for pair in header.split(";"))
        values = {value for name, _, value in pairs if name == self.name}
        return values.pop() if len(values) == 1 else ""

    def write(self, value: str, *, life: timedelta | None = None) -> str:
        """Return the header that sets it; without a life it goes when the browser is closed."""
        age = "" if life is None else f"; Max-Age={int(life.total_seconds())}"
        return f"{self.name}={value}; {self._attributes}{age}"

    def clear(self) -> str:
        """Return the header that takes it away."""
        return f"{self.name}=; {self._attributes}; Max-Age=0"


class BrowserCookie(Cookie):
    """The one that counts."""

    def __init__(self, issuer: str) -> None:
        super().__init__(issuer, "remuda-browser")

    def read(self, header: str) -> str:
        """Return the value that a browser sent, or nothing if it sent none, several, or one that is not ours."""
        value = super().read(header)
        return value if _VALUE.fullmatch(value) else ""

    def fresh(self, randomness: Randomness) -> str:
        """Return a value for a browser that has none, or needs another."""
        return new_secret(randomness).reveal()


KNOWN_BROWSER_LIFETIME = timedelta(days=180)
"""How long a browser is remembered after the last login in it."""

_CONTEXT = "familiar browser"
_MOST_ACCOUNTS, _MAX_COOKIE_BYTES = 4, 2048


@dataclass(frozen=True, slots=True)
class Familiar:
    """What a browser can show: its number, and whose it is, the last one first."""

    browser: str = ""
    accounts: tuple[str, ...] = ()

    def number_for(self, account: str) -> str:
        """Return the number under which this browser tries an account, or nothing if nobody logged in to it here."""
        return self.browser if account in self.accounts else ""


class _SealedAccounts(msgspec.Struct, frozen=True, array_like=True):
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
        if not sealed or len(sealed) > _MAX_COOKIE_BYTES:
            return Familiar()
        try:
            plain = self._sealer.open(sealed, context=_CONTEXT).reveal()
        except Unsealable:
            return Familiar()
        kept = msgspec.json.decode(plain, type=_SealedAccounts)
        return Familiar(kept.browser, kept.accounts) if self._clock.now().timestamp() < kept.expires else Familiar()

    def write(self, shown: Familiar, account: str) -> str:
        """Return the header by which a browser that showed this is known, from now on, as this account's too."""
        others = [each for each in shown.accounts if each != account]
        kept = _SealedAccounts(
            browser=shown.browser or random_id(self._randomness),
            accounts=(account, *others)[:_MOST_ACCOUNTS],
            expires=int((self._clock.now() + KNOWN_BROWSER_LIFETIME).timestamp()),
        )
        sealed = self._sealer.seal(Secret(msgspec.json.encode(kept).decode()), context=_CONTEXT)
        return self._cookie.write(sealed, life=KNOWN_BROWSER_LIFETIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserRequest:
    """One request of a browser."""

    cookie: str
    """What it was given to be known again, or nothing."""
    peer: str
    trace_id: str
    verb: str
    route: str
    """What it asked for: the method, and the path as the route table has it."""
    familiar: Familiar
    """Who has logged in in it before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserRequestReader:
    """Reader of the cookies that a browser sends with a request."""

    cookie: BrowserCookie
    familiar: FamiliarCookie

    def read(self, call: Call[Any, Any, Any], verb: str, route: str) -> BrowserRequest:
        sent = call.headers.get("cookie", "")
        return BrowserRequest(
            cookie=self.cookie.read(sent),
            peer=call.peer,
            trace_id=call.context.trace_id,
            verb=verb,
            route=route,
            familiar=self.familiar.read(sent),
        )


class Pending(msgspec.Struct, frozen=True, omit_defaults=True):
    """A login that was begun, and what it is for: a client's request, a device's code, or else one's own account."""

    request: AuthorizationRequest | None = None
    device: str = ""
    expected: str = ""
    """The subject of whom the client expects, if it said so (`id_token_hint`): somebody else will not do."""

    def expects(self, subject: str) -> bool:
        """Tell whether somebody will do."""
        return self.expected in {"", subject}


class Flight(msgspec.Struct, frozen=True):
    """A login that somebody is away for, at a provider."""

    pending: Pending
    ticket: Ticket


class Pairing(msgspec.Struct, frozen=True):
    """A question about a device, put to whoever is logged in by this cookie: another login has another one."""

    device: str


class Overview(msgspec.Struct, frozen=True):
    """What somebody was shown of their account, and can do there."""


class Leaving(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question about logging out, put to whoever is logged in by this cookie, and where to go after."""

    location: str = ""


def query_of(sent: msgspec.Struct) -> str:
    """Return the fields of a form as a query, for a browser that is to come again by itself."""
    return urlencode([(name, value) for name, value in msgspec.structs.asdict(sent).items() if value])


StateT = TypeVar("StateT", bound=msgspec.Struct)

STATE_LIFETIME = timedelta(minutes=10)
"""How long a step may take."""

_MAX_STATE_BYTES = 16_384
_STALE = (
    "This page is no longer good: it is older than ten minutes, was used already, or comes from another browser. "
    "Go back to where you wanted to log in, and begin again."
)


class _SealedState(msgspec.Struct, Generic[StateT], frozen=True, array_like=True):
    expires: int
    state: StateT


class States:
    """Seals and opens them."""

    def __init__(self, *, sealer: Sealer, clock: Clock) -> None:
        self._sealer, self._clock = sealer, clock

    def seal(self, state: msgspec.Struct, *, browser: str) -> str:
        """Return a state for the browser with this cookie."""
        assert browser, "a state belongs to a browser"
        expires = int((self._clock.now() + STATE_LIFETIME).timestamp())
        plain = Secret(msgspec.json.encode(_SealedState(expires, state)).decode())
        return self._sealer.seal(plain, context=_context(type(state), browser))

    def open(self, kind: type[StateT], sealed: str, *, browser: str) -> StateT:
        """Return the state, or raise Malformed if it is not one of this kind, browser and time."""
        if not browser or len(sealed) > _MAX_STATE_BYTES:
            raise Malformed(_STALE)
        try:
            plain = self._sealer.open(sealed, context=_context(kind, browser)).reveal()
        except Unsealable:
            raise Malformed(_STALE) from None
        kept = msgspec.json.decode(plain, type=_SealedState[kind])  # type: ignore[valid-type]  # the kind is one
        if kept.expires <= self._clock.now().timestamp():
            raise Malformed(_STALE)
        return kept.state


def _context(kind: type[msgspec.Struct], browser: str) -> str:
    return f"browser state {kind.__name__} of {token_hash(browser)}"
