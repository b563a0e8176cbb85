"""HTML pages of second factors. Only those with passkeys have a script, which their policy names by its hash."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from remuda.http.responses import HtmlPage
from remuda.identity.factors.totp import grouped, provisioning_uri, qr_code
from remuda.identity.kinds.factors import AuthenticatorApp, FactorEvent, Passkey, SecondFactorsSpec
from remuda.identity.login.pages import Pages
from remuda.kernel.secrets import Secret

_KINDS: Mapping[type, str] = {AuthenticatorApp: "Authenticator app", Passkey: "Passkey"}
_EVENTS: Mapping[str, str] = {
    "app-added": "The authenticator app “{}” was added.",
    "passkey-added": "The passkey “{}” was added.",
    "removed": "The authenticator “{}” was removed.",
    "recovery-codes-replaced": "The recovery codes were replaced.",
    "recovery-code-used": "A recovery code was used.",
    "reset": "A platform administrator removed all authenticators.",
    "copied-passkey": "A login with a copy of the passkey “{}” was rejected: remove it if you do not know why.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatorRow:
    """Authenticator of the user."""

    id: str
    name: str
    kind: str
    added: datetime
    used: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """Change of the user's second factors."""

    text: str
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorsView:
    """Content of the page of second factors."""

    email: str
    authenticators: Sequence[AuthenticatorRow]
    codes_left: int
    events: Sequence[EventRow]
    closed: Sequence[str]
    """Organizations that are closed to this login, because they require a second factor."""
    can_change: bool
    """The user logged in recently, with a second factor if there was one."""
    is_limited: bool
    """The login is limited to the organization whose own provider vouched for the user."""
    can_use_passkeys: bool


def factors_view(factors: SecondFactorsSpec, **more: Any) -> FactorsView:
    rows = [
        AuthenticatorRow(id=each.id, name=each.name, kind=_KINDS[type(each)], added=each.added, used=each.used)
        for each in factors.authenticators
    ]
    return FactorsView(
        authenticators=rows,
        codes_left=len(factors.recovery_hashes),
        events=[EventRow(text=event_text(each), time=each.time) for each in factors.events],
        **more,
    )


def event_text(event: FactorEvent) -> str:
    return _EVENTS[event.type].format(event.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorTemplates:
    """Renderer of the pages of second factors."""

    pages: Pages
    host: str
    """Host of our public URL, which names us in an authenticator app."""

    def challenge(
        self,
        *,
        state: str,
        has_apps: bool,
        has_passkeys: bool,
        options: Mapping[str, Any] | None,
        has_codes: bool,
        problem: str = "",
        status: int = 200,
    ) -> HtmlPage:
        """Render the second step of a login. Without options for passkeys, these cannot be used at our URL."""
        return self.pages.factor_page(
            "second_factor.html",
            "Confirm that it is you",
            redirects=True,
            problem=problem,
            status=status,
            state=state,
            has_apps=has_apps,
            has_passkeys=has_passkeys,
            options=_json(options),
            has_codes=has_codes,
        )

    def requirement(self, *, state: str, organizations: Sequence[str], can_enrol: bool) -> HtmlPage:
        """Render the page that leads a user to a second factor."""
        return self.pages.factor_page(
            "factor_required.html",
            "A second factor is required",
            redirects=True,
            state=state,
            organizations=organizations,
            can_enrol=can_enrol,
        )

    def app(self, *, state: str, secret: Secret, account: str, problem: str = "", status: int = 200) -> HtmlPage:
        """Render the enrolment of an authenticator app."""
        uri = provisioning_uri(secret, account=account, issuer=f"Remuda {self.host}")
        return self.pages.factor_page(
            "enrol_app.html",
            "Add an authenticator app",
            problem=problem,
            status=status,
            state=state,
            qr=qr_code(uri),
            uri=uri.reveal(),
            key=grouped(secret),
        )

    def passkey(
        self, *, state: str, options: Mapping[str, Any] | None, problem: str = "", status: int = 200
    ) -> HtmlPage:
        """Render the enrolment of a passkey, or the reason why there can be none."""
        return self.pages.factor_page(
            "enrol_passkey.html",
            "Add a passkey",
            problem=problem,
            status=status,
            state=state,
            options=_json(options),
            host=self.host,
        )

    def recovery_codes(self, codes: Sequence[Secret], *, state: str) -> HtmlPage:
        """Render new recovery codes. With a state, a form continues the login."""
        shown = [code.reveal() for code in codes]
        return self.pages.factor_page(
            "recovery_codes.html", "Save your recovery codes", redirects=bool(state), codes=shown, state=state
        )

    def factors(self, view: FactorsView, *, state: str, problem: str = "", status: int = 200) -> HtmlPage:
        """Render the page of second factors."""
        return self.pages.factor_page(
            "factors.html", "Second factor", problem=problem, status=status, view=view, state=state, host=self.host
        )


def _json(options: Mapping[str, Any] | None) -> str:
    return "" if options is None else msgspec.json.encode(options).decode()
