"""Browser requests, cookies and sealed state of the login pages.

The browser cookie is a random value of 256 bits. State between two steps of a login is sealed to it, which prevents
login CSRF, and each login replaces it, which prevents session fixation. The state is not stored; it expires after ten
minutes. Where a second use would do something again, its hash is stored with the first.

The known-browser cookie lists the accounts that logged in with a password in this browser. Such a browser has its own
limit of attempts (`Attempts`), so that password guessing elsewhere does not lock the user out. It is sealed, outlives
logout, and does not authenticate.

With an https issuer the cookie names begin with `__Host-`.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlencode

import msgspec

from remuda.http.routes import Call
from remuda.identity.federation.code_flow import ProviderRequest
from remuda.identity.kinds.factors import AuthenticationMethod
from remuda.identity.kinds.oauth import UsedState, UsedStateSpec
from remuda.identity.login.authorization import AuthorizationRequest
from remuda.identity.tokens.secrets import new_secret, token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Malformed, Unsealable
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret
from remuda.store.contract import Store
from remuda.store.objects import Metadata

_VALUE = re.compile(r"[A-Za-z0-9_-]{43}")


class Cookie:
    """Cookie with the attributes that all our cookies have."""

    def __init__(self, issuer: str, name: str) -> None:
        is_secure = issuer.startswith("https:")
        self.name = f"{'__Host-' if is_secure else ''}{name}"
        self._values = re.compile(rf"(?:^|;)[ \t]*{re.escape(self.name)}=([^;]*)").findall
        self._attributes = f"Path=/; HttpOnly; SameSite=Lax{'; Secure' if is_secure else ''}"

    def read(self, header: str) -> str:
        """Return the value in a Cookie header, or an empty string if it is absent or ambiguous."""
        values = {found.strip() for found in self._values(header)}
        return values.pop() if len(values) == 1 else ""

    def write(self, value: str, *, lifetime: timedelta | None = None) -> str:
        """Return the Set-Cookie header. Without a lifetime the cookie ends with the browser session."""
        age = "" if lifetime is None else f"; Max-Age={int(lifetime.total_seconds())}"
        return f"{self.name}={value}; {self._attributes}{age}"

    def clear(self) -> str:
        """Return the Set-Cookie header that deletes the cookie."""
        return f"{self.name}=; {self._attributes}; Max-Age=0"


class BrowserCookie(Cookie):
    """Cookie that identifies a browser and its login."""

    def __init__(self, issuer: str) -> None:
        super().__init__(issuer, "remuda-browser")

    def read(self, header: str) -> str:
        """Return the value in a Cookie header, or an empty string if it is absent, ambiguous or malformed."""
        value = super().read(header)
        return value if _VALUE.fullmatch(value) else ""

    def new_value(self, randomness: Randomness) -> str:
        return new_secret(randomness).reveal()


KNOWN_BROWSER_LIFETIME = timedelta(days=180)
"""Validity of the known-browser cookie after the last login."""

_CONTEXT = "known browser"
_MAX_ACCOUNTS, _MAX_COOKIE_BYTES = 4, 2048


@dataclass(frozen=True, slots=True)
class KnownBrowser:
    """Browser in which accounts have logged in before, the latest first."""

    id: str = ""
    accounts: tuple[str, ...] = ()

    def id_for(self, account: str) -> str:
        """Return the id of this browser if the account has logged in here before, or an empty string."""
        return self.id if account in self.accounts else ""


class _SealedAccounts(msgspec.Struct, frozen=True, array_like=True):
    browser: str
    accounts: tuple[str, ...]
    expires: int


class KnownBrowserCookie:
    """Sealed cookie with the accounts of a known browser."""

    def __init__(self, issuer: str, *, sealer: Sealer, clock: Clock, randomness: Randomness) -> None:
        self._cookie = Cookie(issuer, "remuda-known-browser")
        self._sealer, self._clock, self._randomness = sealer, clock, randomness

    def read(self, header: str) -> KnownBrowser:
        """Return the known browser, which is empty if the cookie is absent, invalid or expired."""
        sealed = self._cookie.read(header)
        if not sealed or len(sealed) > _MAX_COOKIE_BYTES:
            return KnownBrowser()
        try:
            plain = self._sealer.open(sealed, context=_CONTEXT).reveal()
        except Unsealable:
            return KnownBrowser()
        content = msgspec.json.decode(plain, type=_SealedAccounts)
        is_expired = content.expires <= self._clock.now().timestamp()
        return KnownBrowser() if is_expired else KnownBrowser(content.browser, content.accounts)

    def write(self, known: KnownBrowser, account: str) -> str:
        """Return the Set-Cookie header that adds an account to a known browser."""
        others = [each for each in known.accounts if each != account]
        content = _SealedAccounts(
            browser=known.id or random_id(self._randomness),
            accounts=(account, *others)[:_MAX_ACCOUNTS],
            expires=int((self._clock.now() + KNOWN_BROWSER_LIFETIME).timestamp()),
        )
        sealed = self._sealer.seal(Secret(msgspec.json.encode(content).decode()), context=_CONTEXT)
        return self._cookie.write(sealed, lifetime=KNOWN_BROWSER_LIFETIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserRequest:
    """Request of a browser: cookies, peer, and the route for audit records."""

    cookie: str
    """Value of the browser cookie, or empty."""
    peer: str
    trace_id: str
    method: str
    route: str
    """Path as in the route table."""
    known_browser: KnownBrowser


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserRequestReader:
    """Reader of the cookies that a browser sends with a request."""

    cookie: BrowserCookie
    known_browser_cookie: KnownBrowserCookie

    def read(self, call: Call[Any, Any, Any], method: str, route: str) -> BrowserRequest:
        header = call.headers.get("cookie", "")
        return BrowserRequest(
            cookie=self.cookie.read(header),
            peer=call.peer,
            trace_id=call.context.trace_id,
            method=method,
            route=route,
            known_browser=self.known_browser_cookie.read(header),
        )


class BrowserState(msgspec.Struct, frozen=True):
    """Base of the states that are sealed to one browser."""

    context: ClassVar[str]


class PendingLogin(BrowserState, frozen=True, omit_defaults=True):
    """Login in progress, for a client's request, a device's user code, or the account page."""

    context: ClassVar[str] = "login"
    authorization: AuthorizationRequest | None = None
    user_code: str = ""
    expected_subject: str = ""
    """Subject of the client's `id_token_hint`, or empty. Any other user is rejected."""

    is_elevation: bool = False
    """The user wants to change second factors: a login is needed in any case, with a second factor if there is one."""

    def expects(self, subject: str) -> bool:
        """Tell whether this user satisfies the `id_token_hint`."""
        return self.expected_subject in {"", subject}


class ProviderLogin(BrowserState, frozen=True):
    """Login in progress at an external provider."""

    context: ClassVar[str] = "provider login"
    pending: PendingLogin
    request: ProviderRequest
    began: datetime
    """Time at which the user left for the provider."""


UNFINISHED_LIFETIME = timedelta(minutes=30)
"""Time after the password in which a login must be completed, however often a page of it is shown again."""


class UnfinishedLogin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Login whose user was authenticated by a password or a provider, and that may need a second factor."""

    pending: PendingLogin
    user: str
    authenticated: datetime
    """Time at which the password or the provider's word was checked."""
    provider: str = ""

    @property
    def methods(self) -> tuple[AuthenticationMethod, ...]:
        """Methods by which we authenticated the user so far."""
        return () if self.provider else ("pwd",)


class InvitationsState(BrowserState, frozen=True):
    """Page of invitations that was rendered for this login, and the login that it interrupts."""

    context: ClassVar[str] = "invitations"
    pending: PendingLogin


class PasswordReplacement(BrowserState, frozen=True):
    """Login with a temporary password, which has to be replaced first."""

    context: ClassVar[str] = "password replacement"
    login: UnfinishedLogin
    set_at: datetime
    """Time at which the temporary password was set: another one needs another login."""


class CompletedLogin(BrowserState, frozen=True):
    """Login that is complete, and where it was going."""

    context: ClassVar[str] = "completed login"
    pending: PendingLogin


class DeviceConfirmation(BrowserState, frozen=True):
    """Confirmation of a device by the user who is logged in with this cookie."""

    context: ClassVar[str] = "device confirmation"
    user_code: str


class AccountPageState(BrowserState, frozen=True):
    """Account page that was rendered for this login."""

    context: ClassVar[str] = "account page"


class LogoutConfirmation(BrowserState, frozen=True, omit_defaults=True):
    """Confirmation of a logout, and the location to redirect to afterwards."""

    context: ClassVar[str] = "logout confirmation"
    location: str = ""


def form_query(sent: msgspec.Struct) -> str:
    return urlencode([(name, value) for name, value in msgspec.structs.asdict(sent).items() if value])


StateT = TypeVar("StateT", bound=BrowserState)

STATE_LIFETIME = timedelta(minutes=10)

_MAX_STATE_BYTES = 16_384
_INVALID_STATE = (
    "This page has expired: it is older than ten minutes, was already used, or belongs to another browser. "
    "Return to the application, and log in again."
)


class _SealedState(msgspec.Struct, Generic[StateT], frozen=True, array_like=True):
    expires: int
    state: StateT


class States:
    """Sealed state of one browser, valid for ten minutes."""

    def __init__(self, *, store: Store, sealer: Sealer, clock: Clock) -> None:
        self._store, self._sealer, self._clock = store, sealer, clock

    def seal(self, state: BrowserState, *, browser: str) -> str:
        assert browser, "a state belongs to a browser"
        expires = int((self._clock.now() + STATE_LIFETIME).timestamp())
        plain = Secret(msgspec.json.encode(_SealedState(expires, state)).decode())
        return self._sealer.seal(plain, context=_context(type(state), browser))

    def open(self, kind: type[StateT], sealed: str, *, browser: str) -> StateT:
        """Return the state, or raise Malformed if its type, browser or expiry does not match."""
        if not browser or len(sealed) > _MAX_STATE_BYTES:
            raise Malformed(_INVALID_STATE)
        try:
            plain = self._sealer.open(sealed, context=_context(kind, browser)).reveal()
        except Unsealable:
            raise Malformed(_INVALID_STATE) from None
        content = msgspec.json.decode(plain, type=_SealedState[kind])  # type: ignore[valid-type]  # kind is a type
        if content.expires <= self._clock.now().timestamp():
            raise Malformed(_INVALID_STATE)
        return content.state

    async def use(self, state: BrowserState | UnfinishedLogin, *, browser: str) -> None:
        """Record the use of a state, or of what several states contain, or raise Malformed if it was used before."""
        used = msgspec.json.encode((type(state).__name__, token_hash(browser), state)).decode()
        spec = UsedStateSpec(expires=self._clock.now() + UNFINISHED_LIFETIME)  # later than that of any state
        try:
            await self._store.create(UsedState(metadata=Metadata(name=token_hash(used)), spec=spec))
        except AlreadyExists:
            raise Malformed(_INVALID_STATE) from None


def _context(kind: type[BrowserState], browser: str) -> str:
    return f"browser state {kind.context} of {token_hash(browser)}"
