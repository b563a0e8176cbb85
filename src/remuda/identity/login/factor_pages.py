"""Pages on which users log in with a second factor and manage their authenticators, and the reset of lost ones.

Authenticators are changed only shortly after a login, with a second factor if the user has one: a forgotten screen or a
stolen cookie is not enough. A login at an organization's own provider changes none, since they belong to the user of
the whole system, and the organization controls that provider. During a login, only the first authenticator is added,
so a password alone never adds one beside others.
"""

from dataclasses import dataclass

from remuda.access.checks import require_everywhere
from remuda.access.principal import Context
from remuda.http.audit import AuditTarget
from remuda.http.responses import HtmlPage, Redirect
from remuda.identity.factors.passkeys import NewCredential
from remuda.identity.factors.service import Addition, Authenticators
from remuda.identity.factors.totp import new_totp_secret
from remuda.identity.kinds.factors import SECOND_FACTORS, AuthenticationMethod, SecondFactorsSpec
from remuda.identity.kinds.users import User, user_id
from remuda.identity.login import schema
from remuda.identity.login.account_pages import UPDATE_USERS
from remuda.identity.login.browser_sessions import ActiveLogin
from remuda.identity.login.browser_state import (
    STATE_LIFETIME,
    AccountPageState,
    BrowserRequest,
    PendingLogin,
    UnfinishedLogin,
)
from remuda.identity.login.factor_templates import FactorTemplates, factors_view
from remuda.identity.login.login_pages import BrowserPages, LoginPages
from remuda.identity.login.redirect import FACTORS
from remuda.identity.login.second_factor import Enrolment, FactorChallenge, VerifiedLogin
from remuda.identity.lookups import audited_organizations
from remuda.identity.tokens.sessions import Sessions, provider_organization
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid, Malformed, TooMany
from remuda.kernel.secrets import Secret
from remuda.store.contract import Store

_WRONG_CODE = "The code is wrong, or was used already: enter the one that your app shows now."
_WRONG_RECOVERY_CODE = "The recovery code is wrong, or was used already: enter another one."
_WRONG_PASSKEY = "The passkey did not work: try again, or use another authenticator."
_BAD_REQUEST, _UNAUTHORIZED, _TOO_MANY = 400, 401, 429


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorPages(BrowserPages):
    """Pages of second factors."""

    clock: Clock
    authenticators: Authenticators
    login: LoginPages

    @property
    def templates(self) -> FactorTemplates:
        return self.login.second_factor.templates

    async def verify(self, browser: BrowserRequest, form: schema.FactorForm) -> HtmlPage | Redirect:
        """Complete a login with a second factor."""
        state = self.states.open(FactorChallenge, form.state, browser=browser.cookie)
        user = await self.login.user_of(state.login)
        async with self.attempts.code(browser.peer, subject=user.name):
            try:
                problem = await self._problem(browser, user, form, state.challenge)
            except TooMany as error:
                wait = f"Too many wrong codes: wait {error.retry_after_s} s, or use a passkey or a recovery code."
                return await self._ask_again(browser, state.login, wait, _TOO_MANY)
            if problem:
                await self.records.failed(browser, user)
                self.attempts.fail_code(browser.peer)
        if problem:
            return await self._ask_again(browser, state.login, problem, _UNAUTHORIZED)
        return await self.login.complete(browser, state.login, user, factor="pop" if form.credential else "otp")

    async def enrol(self, browser: BrowserRequest, form: schema.EnrolmentForm) -> HtmlPage | Redirect:
        """Show the form of a new authenticator, or add the authenticator; or go on with a login without one."""
        state = self.states.open(Enrolment, form.state, browser=browser.cookie)
        current = None
        if state.login is not None:
            user = await self.login.user_of(state.login)
            if form.decline:
                return await self.login.complete(browser, state.login, user, is_declined=True)
            if await provider_organization(self.store, state.login.provider):
                raise Malformed("A login at your organization adds no authenticator: log in with your password.")
        else:
            current = await self._elevated(browser)
            if current is None or current.user.name != state.user:
                return Redirect(f"{self.settings.issuer}{FACTORS}")
            user = current.user
        try:
            return await self._enrol(browser, form, state, user, current)
        except Invalid as error:
            return await self._form(browser, form.kind, state, user, problem=error.message)

    async def complete(self, browser: BrowserRequest, form: schema.CompletionForm) -> HtmlPage | Redirect:
        """Complete a login after the recovery codes were shown."""
        state = self.states.open(VerifiedLogin, form.state, browser=browser.cookie)
        user = await self.login.user_of(state.login)
        return await self.login.complete(browser, state.login, user, factor=state.method)

    async def show(self, browser: BrowserRequest, query: schema.FactorsQuery) -> HtmlPage | Redirect:
        """Show the second factors of the logged-in user, or the login page."""
        current = await self.logins.find(browser.cookie)
        if current is None or query.confirm:
            expected = "" if current is None else current.user.spec.subject
            return await self.login.show_login(browser, PendingLogin(expected_subject=expected, is_elevation=True))
        return await self._show(browser, current)

    async def add(self, browser: BrowserRequest, form: schema.FactorsForm) -> HtmlPage | Redirect:
        """Show the form of a new authenticator."""
        current = await self._changing(browser, form)
        if isinstance(current, Redirect):
            return current
        return await self._form(browser, form.kind, Enrolment(user=current.user.name), current.user)

    async def remove(self, browser: BrowserRequest, form: schema.FactorsForm) -> HtmlPage | Redirect:
        """Remove an authenticator, and end every other login and session, in case it was stolen and used.

        They end before and after the write, as in `FactorReset`. One that no longer exists counts as removed.
        """
        current = await self._changing(browser, form)
        if isinstance(current, Redirect):
            return current
        log = await self.records.succeeded(browser, current.user, _target(form.authenticator))
        await self.logins.end_others(current)
        if await self.authenticators.remove(current.user, form.authenticator, log):
            await self.logins.end_others(current)
        return Redirect(f"{self.settings.issuer}{FACTORS}")

    async def replace_codes(self, browser: BrowserRequest, form: schema.FactorsForm) -> HtmlPage | Redirect:
        """Replace the recovery codes, and show the new ones once."""
        current = await self._changing(browser, form)
        if isinstance(current, Redirect):
            return current
        log = await self.records.succeeded(browser, current.user, _target(current.user.name))
        codes = await self.authenticators.replace_recovery_codes(current.user, log)
        if not codes:
            return Redirect(f"{self.settings.issuer}{FACTORS}")
        return self.templates.recovery_codes(codes, state="")

    async def _problem(self, browser: BrowserRequest, user: User, form: schema.FactorForm, challenge: str) -> str:
        """Verify a second factor, and return what is wrong with it, or an empty string."""
        if form.credential:
            is_valid = await self.authenticators.verify_passkey(user, form.credential, challenge)
            return "" if is_valid else _WRONG_PASSKEY
        if form.recovery_code is not None:
            is_valid = await self.authenticators.verify_recovery_code(user, form.recovery_code.reveal())
            return "" if is_valid else _WRONG_RECOVERY_CODE
        code = "" if form.code is None else form.code.reveal()
        known = browser.known_browser.id_for(user.name)
        return "" if await self.authenticators.verify_code(user, code, known_browser=known) else _WRONG_CODE

    async def _ask_again(
        self, browser: BrowserRequest, login: UnfinishedLogin, problem: str, status: int
    ) -> HtmlPage | Redirect:
        factors = await self.authenticators.of_user(login.user)
        return self.login.second_factor.challenge(browser, login, factors, problem=problem, status=status)

    async def _enrol(
        self,
        browser: BrowserRequest,
        form: schema.EnrolmentForm,
        state: Enrolment,
        user: User,
        current: ActiveLogin | None,
    ) -> HtmlPage | Redirect:
        method: AuthenticationMethod
        codes: tuple[Secret, ...] | None
        if form.code is not None and state.secret:
            method, addition = "otp", await self._addition(browser, form, state, user)
            codes = await self.authenticators.add_app(user, addition, Secret(state.secret), form.code.reveal())
            if codes is None:
                return await self._form(browser, "app", state, user, problem=_WRONG_CODE)
        elif form.credential and state.challenge:
            credential = self._credential(form.credential, state.challenge)
            if credential is None:
                return await self._form(browser, "passkey", state, user, problem=_WRONG_PASSKEY)
            method, addition = "pop", await self._addition(browser, form, state, user)
            codes = await self.authenticators.add_passkey(user, addition, credential)
        else:
            return await self._form(browser, form.kind, state, user)
        return await self._enrolled(browser, state, codes, method, current)

    async def _addition(
        self, browser: BrowserRequest, form: schema.EnrolmentForm, state: Enrolment, user: User
    ) -> Addition:
        name = self.authenticators.new_id()
        log = await self.records.succeeded(browser, user, _target(name))
        return Addition(id=name, name=form.name, only_first=state.login is not None, log=log)

    def _credential(self, response: str, challenge: str) -> NewCredential | None:
        relying_party = self.authenticators.relying_party
        return relying_party.new_credential(response, challenge) if relying_party.is_usable else None

    async def _enrolled(
        self,
        browser: BrowserRequest,
        state: Enrolment,
        codes: tuple[Secret, ...],
        method: AuthenticationMethod,
        current: ActiveLogin | None,
    ) -> HtmlPage | Redirect:
        """Show the recovery codes of a first authenticator, or return to the page of second factors."""
        if state.login is not None:
            verified = VerifiedLogin(state.login, method)
            sealed = self.states.seal(verified, browser=browser.cookie)
            return self.templates.recovery_codes(codes, state=sealed)
        assert current is not None, "without an unfinished login there is a completed one"
        await self.logins.strengthen(current, method)
        if codes:
            return self.templates.recovery_codes(codes, state="")
        return Redirect(f"{self.settings.issuer}{FACTORS}")

    async def _form(
        self, browser: BrowserRequest, kind: str, state: Enrolment, user: User, *, problem: str = ""
    ) -> HtmlPage:
        """Return the form of a new authenticator. After a wrong code it has the same secret."""
        status = _BAD_REQUEST if problem else 200
        if kind == "passkey" or (not kind and state.challenge):
            relying_party, challenge = self.authenticators.relying_party, self.authenticators.new_challenge()
            factors = await self.authenticators.of_user(user.name)
            asked = Enrolment(user=state.user, login=state.login, challenge=challenge)
            options = relying_party.creation_options(user, challenge, factors.passkeys)
            return self.templates.passkey(
                state=self.states.seal(asked, browser=browser.cookie),
                options=options if relying_party.is_usable else None,
                problem=problem,
                status=status,
            )
        secret = Secret(state.secret) if state.secret else new_totp_secret(self.login.randomness)
        asked = Enrolment(user=state.user, login=state.login, secret=secret.reveal())
        return self.templates.app(
            state=self.states.seal(asked, browser=browser.cookie),
            secret=secret,
            account=user.spec.subject,
            problem=problem,
            status=status,
        )

    async def _show(self, browser: BrowserRequest, current: ActiveLogin) -> HtmlPage:
        factors = await self.authenticators.of_user(current.user.name)
        spec = current.login.spec
        closed = await self.login.redirects.requirement.closed_organizations(
            current.user, methods=spec.methods, provider=spec.provider
        )
        view = factors_view(
            factors,
            email=current.user.spec.subject,
            closed=closed,
            can_change=self._is_elevated(current, factors),
            is_limited=bool(await provider_organization(self.store, spec.provider)),
            can_use_passkeys=self.authenticators.relying_party.is_usable,
        )
        return self.templates.factors(view, state=self.states.seal(AccountPageState(), browser=browser.cookie))

    async def _changing(self, browser: BrowserRequest, form: schema.FactorsForm) -> ActiveLogin | Redirect:
        """Return the login that may change second factors, or the redirect to the page that says how to get one."""
        self.states.open(AccountPageState, form.state, browser=browser.cookie)
        return await self._elevated(browser) or Redirect(f"{self.settings.issuer}{FACTORS}")

    async def _elevated(self, browser: BrowserRequest) -> ActiveLogin | None:
        current = await self.logins.find(browser.cookie)
        if current is None or await provider_organization(self.store, current.login.spec.provider):
            return None
        factors = await self.authenticators.of_user(current.user.name)
        return current if self._is_elevated(current, factors) else None

    def _is_elevated(self, current: ActiveLogin, factors: SecondFactorsSpec) -> bool:
        """Tell whether a login is recent, and had a second factor if the user has one."""
        spec = current.login.spec
        is_recent = spec.authenticated is not None and self.clock.now() < spec.authenticated + STATE_LIFETIME
        return is_recent and (spec.proof == "factor" or not factors.has_authenticator)


def _target(name: str) -> AuditTarget:
    return AuditTarget(type=SECOND_FACTORS.plural, id=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorReset:
    """Reset of second factors by a platform administrator, for users who lost them all.

    Sessions end before and after the write, as with a new password: one that begins in between is found by one of the
    two. Browser logins from before are no longer valid.
    """

    store: Store
    authenticators: Authenticators
    sessions: Sessions

    async def reset(self, context: Context, body: schema.FactorResetWrite) -> None:
        """Remove all authenticators and recovery codes of a user, and end the user's sessions."""
        require_everywhere(context.principal, UPDATE_USERS)
        user = await self.store.get(User, user_id(body.subject))
        organizations = [*await audited_organizations(self.store, user), None]
        audited = (context.audit(SECOND_FACTORS.plural, user.name, organization=each) for each in organizations)
        log = [record for records in audited for record in records]
        await self.sessions.end_all(user.name)
        await self.authenticators.reset(user, log)
        await self.sessions.end_all(user.name)
