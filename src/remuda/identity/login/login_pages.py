"""Login and logout in a browser.

::

    authorization ── logged in, and recent enough ───────────► redirect URI, with a code
          │ not logged in                                          ▲
          ▼                                                        │
      login page ── password ──────────────────────────────────────┤
          └──────── provider ──► its own pages ──► callback ───────┘

A login is two writes: the browser login with its audit record, and the authorization code. After a crash between the
two the user is logged in, and the next attempt succeeds.

The cookie is `SameSite=Lax`, so a form of another site arrives without it. Such a form is not processed: the response
makes the browser send it again from this site.
"""

from dataclasses import dataclass

import msgspec

from remuda.http.pages import with_query
from remuda.http.ratelimit import SITE_BITS, client_network
from remuda.http.responses import HtmlPage, Redirect
from remuda.identity.federation.code_flow import Federation
from remuda.identity.federation.providers import LoginProviders, is_organization_provider
from remuda.identity.kinds.factors import AuthenticationMethod
from remuda.identity.kinds.oauth import OAuth2Client, OAuth2Provider
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import User, user_id
from remuda.identity.login import schema
from remuda.identity.login.attempts import Attempts
from remuda.identity.login.audit import LoginAudit
from remuda.identity.login.authorization import (
    AuthorizationRequest,
    check_redirect_uri,
    check_request,
    prompts,
    provider_parameters,
    read_id_token_hint,
)
from remuda.identity.login.browser_sessions import LOGIN_LIFETIME, ActiveLogin, BrowserLogins
from remuda.identity.login.browser_state import (
    UNFINISHED_LIFETIME,
    BrowserCookie,
    BrowserRequest,
    BrowserRequestReader,
    CompletedLogin,
    KnownBrowserCookie,
    LogoutConfirmation,
    PasswordReplacement,
    PendingLogin,
    ProviderLogin,
    States,
    UnfinishedLogin,
    form_query,
)
from remuda.identity.login.failed_logins import FailedLogins, FailureReport, address_hash
from remuda.identity.login.invitations import Invitations
from remuda.identity.login.pages import Pages
from remuda.identity.login.passwords import Passwords
from remuda.identity.login.redirect import ACCOUNT, LoginRedirects, user_mismatch
from remuda.identity.login.second_factor import SecondFactorStep
from remuda.identity.lookups import find_active_user
from remuda.identity.oauth.clients import Clients
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.jwt import IdClaims
from remuda.identity.tokens.service import Tokens
from remuda.identity.tokens.sessions import has_newer_password, lost_factors
from remuda.kernel.errors import Malformed, OAuthError
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import NAME
from remuda.resources.crud import find
from remuda.store.contract import Store

LOGIN_FAILED = (
    "The e-mail address or the password is wrong, or this account has no password: "
    "try again, or ask an administrator for a link to set a new password."
)
"""The only error that a failed password login shows."""

_NO_PROVIDER = "This provider is not available: choose another one, or enter your password."
_NO_PROVIDER_OF_DOMAIN = "Enter your password: no organization has a provider for the domain of this address."
_NOT_FOR_APPLICATION = (
    "This application accepts no logins at the provider of your organization: enter your password, or ask the operator "
    "of this system to list the organization for the application."
)
_UNAUTHORIZED, _BAD_REQUEST = 401, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserPages:
    """Pages for browsers: what the services of all of them need."""

    store: Store
    settings: IdentitySettings
    requests: BrowserRequestReader
    states: States
    pages: Pages
    logins: BrowserLogins
    clients: Clients
    passwords: Passwords
    attempts: Attempts
    failures: FailedLogins
    records: LoginAudit

    async def verified_user(self, browser: BrowserRequest, email: str, password: Secret) -> User | None:
        """Return the active user with this address and password, or None after recording the failed attempt."""
        account = user_id(email)
        known_browser = browser.known_browser.id_for(account)
        async with self.attempts.password(account, peer=browser.peer, browser=known_browser):
            async with self.failures.attempt(account, is_known=bool(known_browser)):
                site = client_network(browser.peer, bits=SITE_BITS)
                is_valid = await self.passwords.verify(account, password, client=site)
                user = await find(self.store, User, account)
                if user is not None and user.is_active and is_valid:
                    return user
                await self.records.failed(browser, user, self.failures.failure(browser, account))
            self.attempts.fail_password(peer=browser.peer, browser=known_browser)
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPages(BrowserPages):
    """Authorization endpoint, login page and callback of external providers."""

    randomness: Randomness
    cookie: BrowserCookie
    known_browser_cookie: KnownBrowserCookie
    redirects: LoginRedirects
    providers: LoginProviders
    federation: Federation
    invitations: Invitations
    tokens: Tokens
    second_factor: SecondFactorStep

    async def authorize(self, browser: BrowserRequest, request: AuthorizationRequest) -> HtmlPage | Redirect:
        """Handle an authorization request: redirect to the client, or show the login page."""
        client = check_redirect_uri(request, await self.clients.find(request.client_id))
        pending = PendingLogin(request)
        try:
            check_request(request, client)
        except OAuthError as error:
            return self.redirects.error_response(pending, error)
        if browser.method == "POST" and not browser.cookie:
            return Redirect(f"{self.settings.issuer}/oauth2/v2/authorization?{form_query(request)}")
        hint = await read_id_token_hint(self.tokens, request.id_token_hint)
        current = await self.logins.find(browser.cookie)
        if hint is not None:
            pending = PendingLogin(msgspec.structs.replace(request, id_token_hint=""), expected_subject=hint.sub)
        if current is not None and await self.redirects.can_skip_login_page(pending, current):
            return Redirect(await self.redirects.location(pending, current))
        if "none" in prompts(request):
            interaction = OAuthError(
                "interaction_required", "the user has to log in: repeat the request without prompt=none"
            )
            is_other = current is not None and not pending.expects(current.user.spec.subject)
            return self.redirects.error_response(pending, user_mismatch() if is_other else interaction)
        return await self.show_login(browser, pending, client)

    async def show_login(
        self, browser: BrowserRequest, pending: PendingLogin, client: OAuth2Client | None = None
    ) -> HtmlPage | Redirect:
        """Show our login page, or redirect to that of the client."""
        value = browser.cookie or self.cookie.new_value(self.randomness)
        cookies = () if browser.cookie else (self.cookie.write(value),)
        state = self.states.seal(pending, browser=value)
        if client is not None and client.spec.login_uri:
            return Redirect(await self._client_login_uri(client.spec.login_uri, state), cookies=cookies)
        email = (pending.authorization.login_hint if pending.authorization else "") or pending.expected_subject
        page = await self._page(browser, pending, state, email=email)
        return msgspec.structs.replace(page, cookies=cookies)

    async def login(self, browser: BrowserRequest, form: schema.LoginForm) -> HtmlPage | Redirect:
        if not browser.cookie and form.password is None:
            return self.pages.resubmit(state=form.state, email=form.email, provider=form.provider)
        pending = self.states.open(PendingLogin, form.state, browser=browser.cookie)
        if form.continue_as_current:
            current = await self.logins.find(browser.cookie)
            if current is not None and await self.redirects.can_continue(pending, current):
                return Redirect(await self.redirects.location(pending, current))
        if form.password is not None:
            return await self._log_in_with_password(browser, pending, form, form.password)
        if form.use_password:
            return await self._page(browser, pending, form.state, email=form.email)
        return await self._log_in_with_provider(browser, pending, form)

    async def callback(self, browser: BrowserRequest, query: schema.CallbackQuery) -> HtmlPage | Redirect:
        """Complete a login at an external provider. The state is used before the provider receives a request."""
        attempt = self.states.open(ProviderLogin, query.state, browser=browser.cookie)
        async with self.attempts.provider(browser.peer, subject=attempt.request.provider):
            await self.states.use(attempt, browser=browser.cookie)
            try:
                user = await self._provider_user(attempt, query)
            except OAuthError as error:
                await self.records.failed(browser, None)
                self.attempts.fail_provider(browser.peer)
                return self.redirects.error_response(attempt.pending, error)
        return await self.proceed(browser, attempt.pending, user, provider=attempt.request.provider)

    async def _log_in_with_password(
        self, browser: BrowserRequest, pending: PendingLogin, form: schema.LoginForm, password: Secret
    ) -> HtmlPage | Redirect:
        user = await self.verified_user(browser, form.email, password)
        if user is None:
            return await self._page(
                browser, pending, form.state, email=form.email, problem=LOGIN_FAILED, status=_UNAUTHORIZED
            )
        temporary_since = await self.passwords.temporary_since(user.name)
        if temporary_since is not None:
            replacement = PasswordReplacement(self._unfinished(pending, user), temporary_since)
            state = self.states.seal(replacement, browser=browser.cookie)
            return self.pages.temporary_password(state=state, email=user.spec.subject)
        return await self.proceed(browser, pending, user)

    async def _log_in_with_provider(
        self, browser: BrowserRequest, pending: PendingLogin, form: schema.LoginForm
    ) -> HtmlPage | Redirect:
        """Redirect to the provider that was chosen, or that of the address's domain.

        An organization's own provider needs a confirmation: it sees that the user logs in, and is not ours.
        """
        provider, organization = await self._chosen_provider(form)
        if provider is None:
            problem = _NO_PROVIDER if form.provider else _NO_PROVIDER_OF_DOMAIN
            return await self._page(
                browser, pending, form.state, email=form.email, problem=problem, status=_BAD_REQUEST
            )
        if not await self.redirects.accepts_provider(pending, provider.name):
            problem = _NOT_FOR_APPLICATION
            return await self._page(
                browser, pending, form.state, email=form.email, problem=problem, status=_BAD_REQUEST
            )
        if organization is not None and is_organization_provider(provider) and not form.provider:
            name = organization.metadata.labels[NAME]
            return self.pages.confirm_provider(state=form.state, email=form.email, provider=provider, organization=name)
        return await self._redirect_to_provider(browser, pending, provider, form.email)

    async def _chosen_provider(self, form: schema.LoginForm) -> tuple[OAuth2Provider | None, Organization | None]:
        """Return the provider that was chosen, or that of the address's domain with its organization.

        An organization's own provider can be chosen only with an address in its proven domain, as its confirmation
        does: its id in a form proves nothing.
        """
        chosen = await self.providers.find(form.provider) if form.provider else None
        if form.provider and (chosen is None or not is_organization_provider(chosen)):
            return chosen, None
        found, organization = await self.providers.of_address(form.email) or (None, None)
        is_other = chosen is not None and (found is None or found.name != chosen.name)
        return (None, None) if is_other else (found, organization)

    async def _redirect_to_provider(
        self, browser: BrowserRequest, pending: PendingLogin, provider: OAuth2Provider, email: str
    ) -> HtmlPage | Redirect:
        request = self.federation.new_request(provider)
        attempt = ProviderLogin(pending, request, began=self.redirects.clock.now())
        state = self.states.seal(attempt, browser=browser.cookie)
        parameters = provider_parameters(pending.authorization, email)
        location = self.federation.authorization_url(provider, request, state=state, parameters=parameters)
        try:
            return Redirect(await location)
        except OAuthError as error:
            return self.redirects.error_response(pending, error)

    async def _provider_user(self, attempt: ProviderLogin, query: schema.CallbackQuery) -> User:
        """Return the active user whom the provider has authenticated, or raise OAuthError."""
        request = attempt.request
        provider = await self.providers.find(request.provider)
        if provider is None:
            raise OAuthError("access_denied", "the provider no longer exists")
        if query.error or not query.code:
            raise OAuthError("access_denied", "the provider rejected the login")
        email = await self.federation.verified_email(provider, request, code=query.code, issuer=query.iss)
        user = await find(self.store, User, user_id(email), include_deleting=False)
        if user is None:
            raise OAuthError("access_denied", "user not found")
        await self.providers.check_user(provider, user)
        if not user.is_active or user.was_suspended_since(attempt.began):
            raise OAuthError("access_denied", "user is not active, or was not when this login began: log in again")
        return user

    async def proceed(
        self, browser: BrowserRequest, pending: PendingLogin, user: User, *, provider: str = ""
    ) -> HtmlPage | Redirect:
        """Continue after the password, or the provider's word: with the second factor, or to the end of the login."""
        login = self._unfinished(pending, user, provider)
        return (
            await self.second_factor.due_enrolment(browser, login, user)
            or await self.second_factor.due_challenge(browser, login, user)
            or await self._log_in(browser, login, user)
        )

    def _unfinished(self, pending: PendingLogin, user: User, provider: str = "") -> UnfinishedLogin:
        return UnfinishedLogin(pending, user.name, self.redirects.clock.now(), provider)

    async def user_of(self, login: UnfinishedLogin) -> User:
        """Return the user of an unfinished login, or raise Malformed if it must begin again.

        It must if anything happened since that ends logins: a suspension, even a past one, a new password, or the
        removal of a second factor.
        """
        user, began = await find_active_user(self.store, login.user), login.authenticated
        if (
            user is None
            or self.redirects.clock.now() >= began + UNFINISHED_LIFETIME
            or user.was_suspended_since(began)
            or await has_newer_password(self.store, user.name, began)
            or await lost_factors(self.store, user.name, began)
        ):
            raise Malformed("This login has expired: log in again.")
        return user

    async def complete(
        self,
        browser: BrowserRequest,
        login: UnfinishedLogin,
        user: User,
        *,
        factor: AuthenticationMethod | None = None,
        is_declined: bool = False,
    ) -> HtmlPage | Redirect:
        """Complete a login that came to a second step, once: with the second factor that was verified, or without one.

        Without one, ask for it if the login needs one now: the user may have added an authenticator since the state of
        this login was sealed.
        """
        if factor is None and (page := await self.second_factor.due_challenge(browser, login, user)):
            return page
        await self.states.use(login, browser=browser.cookie)
        return await self._log_in(browser, login, user, factor=factor, is_declined=is_declined)

    async def _log_in(
        self,
        browser: BrowserRequest,
        login: UnfinishedLogin,
        user: User,
        *,
        factor: AuthenticationMethod | None = None,
        is_declined: bool = False,
    ) -> HtmlPage | Redirect:
        cookie, previous = self.cookie.new_value(self.randomness), await self.logins.find(browser.cookie)
        log = [*await self.records.succeeded(browser, user)]
        cookies, failures = [self.cookie.write(cookie, lifetime=LOGIN_LIFETIME)], FailureReport()
        if not login.provider:  # a login at a provider does not prove knowledge of the password
            cookies.append(self.known_browser_cookie.write(browser.known_browser, user.name))
            failures = await self.failures.report(user.name)
            log.append(self.failures.success(browser, user.name))
        current = await self.logins.begin(
            user,
            cookie=cookie,
            provider=login.provider,
            methods=(*login.methods, factor, "mfa") if factor else login.methods,
            is_declined=is_declined,
            previous=previous,
            log=log,
        )
        if failures.addresses - {address_hash(browser, user.name)}:
            state = self.states.seal(CompletedLogin(login.pending), browser=cookie)
            return self.pages.failed_logins(failures, state=state, cookies=tuple(cookies))
        return await self.leave(login.pending, current, browser=cookie, cookies=tuple(cookies))

    async def leave(
        self, pending: PendingLogin, current: ActiveLogin, *, browser: str, cookies: tuple[str, ...] = ()
    ) -> HtmlPage | Redirect:
        """Show the invitations of a user who has logged in, if any, or redirect to where the login was going."""
        if rows := await self.invitations.of(current):
            return self.invitations.page(rows, pending, browser=browser, cookies=cookies)
        return Redirect(await self.redirects.location(pending, current), cookies=cookies)

    async def _page(
        self,
        browser: BrowserRequest,
        pending: PendingLogin,
        state: str,
        *,
        email: str,
        problem: str = "",
        status: int = 200,
    ) -> HtmlPage:
        current = await self.logins.find(browser.cookie)
        is_known = current is not None and await self.redirects.can_continue(pending, current)
        return self.pages.login(
            state=state,
            providers=await self.providers.platform(),
            application=await self._application(pending),
            email=email,
            known=current.user.spec.subject if current is not None and is_known else "",
            problem=problem,
            status=status,
        )

    async def _application(self, pending: PendingLogin) -> str:
        if pending.authorization is None:
            return ""
        return await self.clients.display_name(pending.authorization.client_id)

    async def _client_login_uri(self, login_uri: str, state: str) -> str:
        types = sorted({each.spec.type for each in await self.providers.platform()})
        callback = f"{self.settings.issuer}/oauth2/v2/login"
        return with_query(login_uri, {"state": state, "callback": callback, "providers": " ".join(types)})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogoutPages(BrowserPages):
    """Logout (OpenID Connect RP-Initiated Logout).

    A client whose `id_token_hint` names the logged-in user logs that user out directly. Otherwise the user must
    confirm, so that a link on another site cannot log users out. The browser is redirected only to the client's
    registered home page.
    """

    cookie: BrowserCookie
    tokens: Tokens

    async def log_out(self, browser: BrowserRequest, request: schema.LogoutRequest) -> HtmlPage | Redirect:
        """Log the user out, or show the confirmation."""
        if request.confirmation:
            return await self._confirmed(browser, request.confirmation)
        if browser.method == "POST" and not browser.cookie:
            # A form of another site arrives without our cookie; after a redirect the browser sends it.
            return Redirect(f"{self.settings.issuer}/oauth2/v2/logout?{form_query(request)}")
        hint = await read_id_token_hint(self.tokens, request.id_token_hint)
        location = _post_logout_location(request, await self._client(request, hint))
        current = await self.logins.find(browser.cookie)
        if current is not None and not (hint is not None and hint.sub == current.user.spec.subject):
            state = self.states.seal(LogoutConfirmation(location), browser=browser.cookie)
            return self.pages.logout(state=state, known=current.user.spec.subject)
        return await self._end(browser, current, location)

    async def _confirmed(self, browser: BrowserRequest, confirmation: str) -> HtmlPage | Redirect:
        confirmed = self.states.open(LogoutConfirmation, confirmation, browser=browser.cookie)
        current = await self.logins.find(browser.cookie)
        return await self._end(browser, current, confirmed.location)

    async def _end(self, browser: BrowserRequest, current: ActiveLogin | None, location: str) -> HtmlPage | Redirect:
        if current is not None:
            await self.logins.end(current.login, log=await self.records.succeeded(browser, current.user))
        else:
            await self.logins.finish_logout(browser.cookie)
        cookies = (self.cookie.clear(),) if browser.cookie else ()
        if location:
            return Redirect(location, cookies=cookies)
        return self.pages.message(
            "You are logged out", "You can close this page.", cookies=cookies, leads=("Log in again", ACCOUNT)
        )

    async def _client(self, request: schema.LogoutRequest, hint: IdClaims | None) -> OAuth2Client | None:
        name = request.client_id or (hint.azp if hint is not None else "")
        if hint is not None and name not in hint.aud:
            raise Malformed(
                "The client_id and the id_token_hint belong to different applications: contact their operator."
            )
        return await self.clients.find(name) if name else None


def _post_logout_location(request: schema.LogoutRequest, client: OAuth2Client | None) -> str:
    """Return the location after logout, or raise Malformed if it is not the client's home page."""
    uri = request.post_logout_redirect_uri
    if not uri:
        return ""
    if client is None or not client.spec.home_uri or uri != client.spec.home_uri:
        raise Malformed(
            "The post_logout_redirect_uri of the application is not registered as its home page: "
            "contact the operator of the application."
        )
    if not request.state:
        return uri
    return with_query(uri, {"state": request.state})
