"""Logging in with a browser: who asks is known again, or asked, and then sent back with an authorization code.

::

    authorization ── known, and fresh enough ────────────────► the client, with a code
          │ not known                                              ▲
          ▼                                                        │
      login page ── password ──────────────────────────────────────┤
          └──────── provider ──► its own pages ──► callback ───────┘

Whose address alone leads to an organization's own provider is asked before they are sent there: that an organization
has a domain says nothing of whose it is.

A login is two writes: the login in the browser, with its audit record, and the code. If it breaks off between the two,
the user is logged in and comes through at the next try.

The cookie is `SameSite=Lax`, so what another site's form sends comes without it. Such a form is not acted upon: the
browser is made to come again by itself.

How often somebody may try: one account's password, from one address, and the codes of devices.

Each address has a quota, for all accounts together, and an account has one for all addresses together that is ten times
as large: to use it up takes many addresses. (With one for both, a single stranger who keeps guessing would shut an
account's owner out.) A browser in which the account's password was right before has a quota of its own instead, so that
not even many strangers shut out the owner there.

An account that does not exist has a quota too, so that nobody learns from being refused which ones do.

Logging out (OpenID Connect RP-Initiated Logout).

A client that shows an ID token of the very user who is logged in here is believed that the user wants to leave.
Everybody else who sends a browser here has its user asked: no page on the web logs somebody out by a link. After that
the browser goes to the client's home page, if the client has one and asks for exactly that.
"""

from dataclasses import dataclass

import msgspec

from remuda.http.pages import with_query
from remuda.http.ratelimit import RateLimit, RateLimiter, anonymous
from remuda.http.responses import HtmlPage, Redirect
from remuda.identity.federation.code_flow import Federation, Ticket
from remuda.identity.federation.providers import Providers, is_own
from remuda.identity.kinds.oauth import OAuth2Client, OAuth2Provider
from remuda.identity.kinds.users import User, user_id
from remuda.identity.login.audit import Records
from remuda.identity.login.authorization import (
    AuthorizationRequest,
    check_address,
    check_request,
    hinted,
    prompts,
    upstream_wishes,
)
from remuda.identity.login.browser_sessions import LIFE, LoggedIn, Logins
from remuda.identity.login.browser_state import (
    BrowserCookie,
    BrowserRequest,
    BrowserRequestReader,
    FamiliarCookie,
    Flight,
    Leaving,
    Pending,
    States,
    query_of,
)
from remuda.identity.login.pages import Pages
from remuda.identity.login.passwords import Passwords
from remuda.identity.login.redirect import ACCOUNT, Passing, unexpected
from remuda.identity.login.schema import CallbackQuery, LoginForm, LogoutRequest
from remuda.identity.oauth.clients import Clients
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.jwt import IdClaims
from remuda.identity.tokens.service import Tokens
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Malformed, OAuthError
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import NAME
from remuda.resources.crud import find
from remuda.store.contract import Store

ADDRESSES = 10
"""How many addresses it takes to use up what one account may be tried."""

_WINDOW_S = 60


class Attempts:
    """Counts them."""

    def __init__(self, *, clock: Clock, per_minute: int) -> None:
        self._limiter = RateLimiter(RateLimit(quota=per_minute, window_s=_WINDOW_S, name="attempts"), clock)
        everywhere = RateLimit(quota=per_minute * ADDRESSES, window_s=_WINDOW_S, name="account")
        self._accounts = RateLimiter(everywhere, clock)

    def password(self, account: str, *, peer: str, browser: str) -> None:
        """Charge an attempt at an account's password, or raise OverLimit.

        `browser` is the number of one in which somebody has logged in to this account before, or nothing.
        """
        if browser:
            self._limiter.take(f"browser {browser} {account}")
            return
        # The address goes first: one that has used up its own quota takes nothing from the account's.
        self._limiter.take(f"password {anonymous((peer, 0))}")
        self._accounts.take(account)

    def code(self, peer: str) -> None:
        """Charge an attempt at a device's code, or raise OverLimit."""
        self._limiter.take(f"code {anonymous((peer, 0))}")


WRONG = (
    "The e-mail address and the password do not go together, or this account cannot log in with a password: "
    "try again, or ask an administrator for a link to set a new one."
)
"""All that anybody learns of a password that was not right."""

_NO_PROVIDER = "There is no such way to log in here: choose another one, or type your password."
_NO_DOMAIN = "Type your password, too: no organization here has a login of its own for this address."
_UNAUTHORIZED, _BAD = 401, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPages:
    """Lets people in."""

    store: Store
    randomness: Randomness
    settings: IdentitySettings
    requests: BrowserRequestReader
    cookie: BrowserCookie
    familiar: FamiliarCookie
    states: States
    pages: Pages
    logins: Logins
    passing: Passing
    passwords: Passwords
    attempts: Attempts
    providers: Providers
    federation: Federation
    clients: Clients
    tokens: Tokens
    records: Records

    async def authorize(
        self, visit: BrowserRequest, request: AuthorizationRequest, *, is_form: bool
    ) -> HtmlPage | Redirect:
        """Answer a client's request: at once, or after a login."""
        client = check_address(request, await self.clients.find(request.client_id))
        pending = Pending(request)
        try:
            check_request(request, client)
        except OAuthError as refusal:
            return self.passing.refused(pending, refusal)
        if is_form and not visit.cookie:
            return Redirect(f"{self.settings.issuer}/oauth2/v2/authorization?{query_of(request)}")
        hint, known = await hinted(self.tokens, request.id_token_hint), await self.logins.find(visit.cookie)
        if hint is not None:
            pending = Pending(msgspec.structs.replace(request, id_token_hint=""), expected=hint.sub)
        if known is not None and await self.passing.is_open(pending, known):
            return Redirect(await self.passing.onward(pending, known))
        if "none" in prompts(request):
            asking = OAuthError("interaction_required", "the user has to log in: ask again without prompt=none")
            is_other = known is not None and not pending.expects(known.user.spec.subject)
            return self.passing.refused(pending, unexpected() if is_other else asking)
        return await self.ask(visit, pending, client)

    async def ask(
        self, visit: BrowserRequest, pending: Pending, client: OAuth2Client | None = None
    ) -> HtmlPage | Redirect:
        """Ask who somebody is, on our page or on the client's own."""
        value = visit.cookie or self.cookie.fresh(self.randomness)
        cookies = () if visit.cookie else (self.cookie.write(value),)
        state = self.states.seal(pending, browser=value)
        if client is not None and client.spec.login_uri:
            return Redirect(await self._elsewhere(client.spec.login_uri, state), cookies=cookies)
        email = (pending.request.login_hint if pending.request else "") or pending.expected
        page = await self._page(visit, pending, state, email=email)
        return msgspec.structs.replace(page, cookies=cookies)

    async def login(self, visit: BrowserRequest, form: LoginForm) -> HtmlPage | Redirect:
        """Take what somebody typed into the login page, or chose on it."""
        if not visit.cookie and form.password is None:
            return self.pages.go_on(state=form.state, email=form.email, provider=form.provider)
        pending = self.states.open(Pending, form.state, browser=visit.cookie)
        if form.known:
            known = await self.logins.find(visit.cookie)
            if known is not None and self.passing.is_enough(pending, known):
                return Redirect(await self.passing.onward(pending, known))
        if form.password is not None:
            return await self._by_password(visit, pending, form, form.password)
        if form.stay:
            return await self._page(visit, pending, form.state, email=form.email)
        return await self._by_provider(visit, pending, form)

    async def callback(self, visit: BrowserRequest, query: CallbackQuery) -> HtmlPage | Redirect:
        """Take somebody back who was at a provider."""
        flight = self.states.open(Flight, query.state, browser=visit.cookie)
        try:
            user = await self._vouched(flight.ticket, query)
        except OAuthError as refusal:
            await self.records.failed(visit, None)
            return self.passing.refused(flight.pending, refusal)
        return await self._arrive(visit, flight.pending, user, provider=flight.ticket.provider)

    async def _by_password(
        self, visit: BrowserRequest, pending: Pending, form: LoginForm, password: Secret
    ) -> HtmlPage | Redirect:
        account = user_id(form.email)
        self.attempts.password(account, peer=visit.peer, browser=visit.familiar.number_for(account))
        is_right = await self.passwords.verify(account, password)
        user = await find(self.store, User, account)
        if user is None or not user.is_active or not is_right:
            await self.records.failed(visit, user)
            return await self._page(visit, pending, form.state, email=form.email, problem=WRONG, status=_UNAUTHORIZED)
        return await self._arrive(visit, pending, user, provider="")

    async def _by_provider(self, visit: BrowserRequest, pending: Pending, form: LoginForm) -> HtmlPage | Redirect:
        """Send somebody to the provider that they named, or to that of their address; to an organization's own, ask."""
        if form.provider:
            provider, organization = await self.providers.named(form.provider), None
        else:
            provider, organization = await self.providers.of_address(form.email) or (None, None)
        if provider is None:
            problem = _NO_PROVIDER if form.provider else _NO_DOMAIN
            return await self._page(visit, pending, form.state, email=form.email, problem=problem, status=_BAD)
        if organization is not None and is_own(provider):
            name = organization.metadata.labels[NAME]
            return self.pages.depart(state=form.state, email=form.email, provider=provider, organization=name)
        return await self._depart(visit, pending, provider, form.email)

    async def _depart(
        self, visit: BrowserRequest, pending: Pending, provider: OAuth2Provider, email: str
    ) -> HtmlPage | Redirect:
        ticket = self.federation.ticket(provider)
        state = self.states.seal(Flight(pending, ticket), browser=visit.cookie)
        wishes = upstream_wishes(pending.request, email)
        place = self.federation.departure(provider, ticket, state=state, wishes=wishes)
        try:
            return Redirect(await place)
        except OAuthError as refusal:
            return self.passing.refused(pending, refusal)

    async def _vouched(self, ticket: Ticket, query: CallbackQuery) -> User:
        """Return the user whom a provider vouches for, if its word counts and the user may log in."""
        provider = await self.providers.named(ticket.provider)
        if provider is None:
            raise OAuthError("access_denied", "the provider is no longer known here")
        if query.error or not query.code:
            raise OAuthError("access_denied", "the provider has not let you in")
        email = await self.federation.arrival(provider, ticket, code=query.code, issuer=query.iss)
        user = await find(self.store, User, user_id(email), include_deleting=False)
        if user is None:
            raise OAuthError("access_denied", "user not found")
        await self.providers.check_vouching(provider, user)
        if not user.is_active:
            raise OAuthError("access_denied", "user is not active")
        return user

    async def _arrive(self, visit: BrowserRequest, pending: Pending, user: User, *, provider: str) -> Redirect:
        """Log somebody in, with a new cookie."""
        cookie, before = self.cookie.fresh(self.randomness), await self.logins.find(visit.cookie)
        log = await self.records.succeeded(visit, user)
        known = await self.logins.begin(user, cookie=cookie, provider=provider, before=before, log=log)
        cookies = [self.cookie.write(cookie, life=LIFE)]
        if not provider:  # a provider's word says nothing of who knows the password, and earns no more guesses at it
            cookies.append(self.familiar.write(visit.familiar, user.name))
        return Redirect(await self.passing.onward(pending, known), cookies=tuple(cookies))

    async def _page(
        self, visit: BrowserRequest, pending: Pending, state: str, *, email: str, problem: str = "", status: int = 200
    ) -> HtmlPage:
        known = await self.logins.find(visit.cookie)
        is_known = known is not None and self.passing.is_enough(pending, known)
        return self.pages.login(
            state=state,
            providers=await self.providers.platform(),
            application=await self._application(pending),
            email=email,
            known=known.user.spec.subject if known is not None and is_known else "",
            problem=problem,
            status=status,
        )

    async def _application(self, pending: Pending) -> str:
        if pending.request is None:
            return ""
        return await self.clients.called(pending.request.client_id)

    async def _elsewhere(self, login_uri: str, state: str) -> str:
        types = sorted({each.spec.type for each in await self.providers.platform()})
        told = {"state": state, "callback": f"{self.settings.issuer}/oauth2/v2/login", "providers": " ".join(types)}
        return with_query(login_uri, told)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogoutPages:
    """Lets people out."""

    settings: IdentitySettings
    requests: BrowserRequestReader
    cookie: BrowserCookie
    states: States
    pages: Pages
    logins: Logins
    clients: Clients
    tokens: Tokens
    records: Records

    async def leave(self, visit: BrowserRequest, request: LogoutRequest, *, is_form: bool) -> HtmlPage | Redirect:
        """Log somebody out, or ask first."""
        if request.confirmation:
            return await self._confirmed(visit, request.confirmation)
        if is_form and not visit.cookie:
            # A form from another site comes without our cookie. Coming back by itself, the browser brings it.
            return Redirect(f"{self.settings.issuer}/oauth2/v2/logout?{query_of(request)}")
        hint = await hinted(self.tokens, request.id_token_hint)
        location = _location(request, await self._client(request, hint))
        known = await self.logins.find(visit.cookie)
        if known is not None and not (hint is not None and hint.sub == known.user.spec.subject):
            state = self.states.seal(Leaving(location), browser=visit.cookie)
            return self.pages.logout(state=state, known=known.user.spec.subject)
        return await self._leave(visit, known, location)

    async def _confirmed(self, visit: BrowserRequest, confirmation: str) -> HtmlPage | Redirect:
        asked = self.states.open(Leaving, confirmation, browser=visit.cookie)
        known = await self.logins.find(visit.cookie)
        return await self._leave(visit, known, asked.location)

    async def _leave(self, visit: BrowserRequest, known: LoggedIn | None, location: str) -> HtmlPage | Redirect:
        if known is not None:
            await self.logins.end(known.login, log=await self.records.succeeded(visit, known.user))
        else:
            await self.logins.see_through(visit.cookie)
        cookies = (self.cookie.clear(),) if visit.cookie else ()
        if location:
            return Redirect(location, cookies=cookies)
        return self.pages.message(
            "You are logged out", "You can close this page.", cookies=cookies, leads=("Log in again", ACCOUNT)
        )

    async def _client(self, request: LogoutRequest, hint: IdClaims | None) -> OAuth2Client | None:
        name = request.client_id or (hint.azp if hint is not None else "")
        if hint is not None and name not in hint.aud:
            raise Malformed("client_id and id_token_hint are of two applications: tell whoever runs them.")
        return await self.clients.find(name) if name else None


def _location(request: LogoutRequest, client: OAuth2Client | None) -> str:
    """Return where to go after, if that is the client's home page. An address of anybody's choice it must not be."""
    wanted = request.post_logout_redirect_uri
    if not wanted:
        return ""
    if client is None or not client.spec.home_uri or wanted != client.spec.home_uri:
        raise Malformed(
            "The application wants you sent to an address that is not registered as its home page, so you stay here: "
            "tell whoever runs it that post_logout_redirect_uri has to be that address, letter by letter."
        )
    if not request.state:
        return wanted
    return with_query(wanted, {"state": request.state})
