"""Second step of a login, after the password or the provider: a second factor, or the way to get one.

The step is decided by what the user has and what the organizations require:

================  ====================  =================================================
Login             User has a factor     User has none
================  ====================  =================================================
with a password   it is asked for       the user is led to one if an organization requires it
at a provider     asked for if an organization always requires it, otherwise not
================  ====================  =================================================

Nothing is stored between the steps: the state is sealed to the browser's cookie, which the completed login replaces. A
login that came to a second step is completed once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from remuda.http.responses import HtmlPage
from remuda.identity.factors.service import Authenticators
from remuda.identity.kinds.factors import AuthenticationMethod, SecondFactorsSpec
from remuda.identity.kinds.users import User
from remuda.identity.login.browser_state import BrowserRequest, BrowserState, States, UnfinishedLogin
from remuda.identity.login.factor_requirement import FactorRequirement
from remuda.identity.login.factor_templates import FactorTemplates
from remuda.identity.tokens.sessions import provider_organization
from remuda.store.contract import Store


class FactorChallenge(BrowserState, frozen=True):
    """Login that waits for a second factor, and the challenge for a passkey."""

    context: ClassVar[str] = "second factor"
    login: UnfinishedLogin
    challenge: str


class Enrolment(BrowserState, frozen=True, omit_defaults=True):
    """Enrolment of an authenticator, during a login or on the page of second factors."""

    context: ClassVar[str] = "enrolment"
    user: str
    login: UnfinishedLogin | None = None
    secret: str = ""
    """Secret that the app will have. It is stored after a code has confirmed it."""
    challenge: str = ""


class VerifiedLogin(BrowserState, frozen=True):
    """Login with a verified second factor, whose user reads the recovery codes."""

    context: ClassVar[str] = "verified login"
    login: UnfinishedLogin
    method: AuthenticationMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondFactorStep:
    """Second step of a login."""

    store: Store
    states: States
    authenticators: Authenticators
    requirement: FactorRequirement
    templates: FactorTemplates

    async def due_challenge(self, browser: BrowserRequest, login: UnfinishedLogin, user: User) -> HtmlPage | None:
        """Return the page that asks for a second factor, or None if the login needs none that the user has now."""
        factors = await self.authenticators.of_user(user.name)
        if not factors.has_authenticator:
            return None
        is_needed = not login.provider or login.pending.is_elevation or bool(await self._closed(login, user))
        return self.challenge(browser, login, factors) if is_needed else None

    async def due_enrolment(self, browser: BrowserRequest, login: UnfinishedLogin, user: User) -> HtmlPage | None:
        """Return the page that leads to a first authenticator, or None if none is required or the user has one."""
        factors = await self.authenticators.of_user(user.name)
        closed = () if factors.has_authenticator else await self._closed(login, user)
        if not closed:
            return None
        return self.templates.requirement(
            state=self.states.seal(Enrolment(user=user.name, login=login), browser=browser.cookie),
            organizations=closed,
            can_enrol=not await provider_organization(self.store, login.provider),
        )

    async def _closed(self, login: UnfinishedLogin, user: User) -> Sequence[str]:
        """Return the names of the organizations that require a second factor of this login."""
        return await self.requirement.closed_organizations(user, methods=login.methods, provider=login.provider)

    def challenge(
        self,
        browser: BrowserRequest,
        login: UnfinishedLogin,
        factors: SecondFactorsSpec,
        *,
        problem: str = "",
        status: int = 200,
    ) -> HtmlPage:
        """Return the page that asks for a second factor."""
        challenge = self.authenticators.new_challenge()
        relying_party = self.authenticators.relying_party
        return self.templates.challenge(
            state=self.states.seal(FactorChallenge(login, challenge), browser=browser.cookie),
            has_apps=bool(factors.apps),
            has_passkeys=bool(factors.passkeys),
            options=relying_party.request_options(challenge, factors.passkeys) if relying_party.is_usable else None,
            has_codes=bool(factors.recovery_hashes),
            problem=problem,
            status=status,
        )
