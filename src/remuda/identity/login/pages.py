"""HTML pages of login: plain forms without external content. All values are escaped.

Only the pages of passkeys have a script. Styles and the script are part of the page, and its policy names their hashes.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from msgspec.structs import replace

from remuda.http.responses import HtmlPage
from remuda.identity.kinds.common import UserState
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.login.failed_logins import FailureReport
from remuda.identity.login.passwords import MIN_CHARACTERS
from remuda.resources.conventions import NAME


@dataclass(frozen=True, slots=True)
class MembershipRow:
    """Membership of the user."""

    name: str
    state: UserState


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationRow:
    """Membership that the user can accept or decline."""

    id: str
    organization: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """Session of the user with an application or a device."""

    id: str
    client: str
    began: datetime | None
    used: datetime | None
    """Time of the last refresh, if any."""
    is_from_here: bool
    """The session belongs to the login of this browser, and ends with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserRow:
    """Login of the user in a browser."""

    id: str
    began: datetime | None
    provider: str
    """Display name of the provider; empty for a password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountView:
    """Content of the account page."""

    email: str
    here: BrowserRow
    memberships: Sequence[MembershipRow]
    invitations: int
    """Number of organizations that invite the user."""
    is_administrator: bool
    sessions: Sequence[SessionRow]
    elsewhere: Sequence[BrowserRow]
    has_password: bool
    failures: FailureReport | None
    """Failed logins since the one before this; None for a login at an organization's provider."""
    second_factor: str
    """State of the second factor; empty if this login cannot change it."""


def newest_first(row: SessionRow | BrowserRow) -> float:
    return -(row.began or datetime.min.replace(tzinfo=UTC)).timestamp()


_OK = 200
_NAMES = {"google": "Google", "microsoft": "Microsoft"}


class Pages:
    """Renderer of the HTML pages."""

    def __init__(self, issuer: str) -> None:
        self._environment, self._issuer = _compiled(), issuer
        style = self._environment.get_template("page.css").render().encode()
        allowed = f"style-src 'sha256-{base64.b64encode(hashlib.sha256(style).digest()).decode()}'"
        script = self._environment.get_template("passkey.js").render().encode()
        self._script_policy = f"; script-src 'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
        self._policy = f"default-src 'none'; {allowed}; base-uri 'none'; frame-ancestors 'none'"

    def login(
        self,
        *,
        state: str,
        providers: Sequence[OAuth2Provider],
        application: str = "",
        email: str = "",
        known: str = "",
        problem: str = "",
        status: int = _OK,
        cookies: tuple[str, ...] = (),
    ) -> HtmlPage:
        """Render the login page. `known` is the user who is already logged in."""
        named = [(each.name, provider_name(each)) for each in providers]
        values = {"state": state, "providers": named, "application": application, "email": email, "known": known}
        # The form redirects to a client or a provider, and browsers apply `form-action` to redirects.
        return self._page("login.html", "Log in", problem, status, cookies, redirects=True, **values)

    def resubmit(self, *, state: str, email: str, provider: str) -> HtmlPage:
        """Render a form that sends the login form of another site again, from this site."""
        return self._page("continue.html", "Log in", redirects=True, state=state, email=email, provider=provider)

    def confirm_provider(self, *, state: str, email: str, provider: OAuth2Provider, organization: str) -> HtmlPage:
        """Render the confirmation before a login at an organization's own provider."""
        host, title = urlsplit(provider.spec.issuer).netloc, "Log in at your organization?"
        values: dict[str, Any] = {"organization": organization, "host": host, "provider": provider.name}
        return self._page("confirm_provider.html", title, redirects=True, state=state, email=email, **values)

    def device(self, *, code: str = "", problem: str = "", status: int = _OK) -> HtmlPage:
        return self._page("device.html", "Connect a device", problem, status, code=code)

    def approve(self, *, state: str, code: str, application: str, scope: str, known: str) -> HtmlPage:
        values: dict[str, Any] = {"code": code, "application": application, "scope": scope, "known": known}
        return self._page("approve.html", "Allow this device?", state=state, **values)

    def account(self, account: AccountView, *, state: str, logout_state: str) -> HtmlPage:
        return self._page("account.html", "Your account", account=account, state=state, logout_state=logout_state)

    def invitations(
        self, invitations: Sequence[InvitationRow], *, state: str, cookies: tuple[str, ...] = ()
    ) -> HtmlPage:
        """Render the invitations. The form redirects to a client when the login continues."""
        title = "You are invited" if invitations else "Invitations"
        values: dict[str, Any] = {"invitations": invitations, "state": state}
        return self._page("invitations.html", title, cookies=cookies, redirects=True, **values)

    def logout(self, *, state: str, known: str) -> HtmlPage:
        return self._page("logout.html", "Log out?", redirects=True, state=state, known=known)

    def password(self, *, link: str = "", email: str = "", problem: str = "", status: int = _OK) -> HtmlPage:
        """Render the form for a new password, with a link or with the current password."""
        title = "Choose a password" if link else "Change your password"
        return self._page("password.html", title, problem, status, link=link, email=email, minimum=MIN_CHARACTERS)

    def temporary_password(self, *, state: str, email: str, problem: str = "", status: int = _OK) -> HtmlPage:
        """Render the form for a password in place of a temporary one."""
        values: dict[str, Any] = {"state": state, "email": email, "minimum": MIN_CHARACTERS}
        title = "Choose a new password"
        return self._page("temporary_password.html", title, problem, status, redirects=True, **values)

    def failed_logins(self, failures: FailureReport, *, state: str, cookies: tuple[str, ...]) -> HtmlPage:
        """Render the report of failed logins at the end of a login."""
        title = "Failed logins to your account"
        return self._page("failed_logins.html", title, cookies=cookies, redirects=True, failures=failures, state=state)

    def factor_page(
        self, template: str, title: str, *, problem: str = "", status: int = _OK, redirects: bool = False, **values: Any
    ) -> HtmlPage:
        """Render a page of second factors, which may contain the script for passkeys."""
        page = self._page(template, title, problem, status, redirects=redirects, **values)
        policy = page.headers["Content-Security-Policy"] + self._script_policy
        return replace(page, headers={"Content-Security-Policy": policy})

    def message(
        self, title: str, message: str, *, leads: tuple[str, str], status: int = _OK, cookies: tuple[str, ...] = ()
    ) -> HtmlPage:
        """Render a message with a link; `leads` is the text and the path of the link."""
        return self._page("message.html", title, "", status, cookies, message=message, leads=leads)

    def _page(
        self,
        template: str,
        title: str,
        problem: str = "",
        status: int = _OK,
        cookies: tuple[str, ...] = (),
        *,
        redirects: bool = False,
        **values: Any,
    ) -> HtmlPage:
        page = self._environment.get_template(template)
        html = page.render(issuer=self._issuer, title=title, problem=problem, **values)
        policy = self._policy if redirects else f"{self._policy}; form-action 'self'"
        return HtmlPage(html, status, {"Content-Security-Policy": policy}, cookies)


def provider_name(provider: OAuth2Provider) -> str:
    return _NAMES.get(provider.spec.type) or provider.metadata.labels.get(NAME) or provider.spec.issuer


@cache
def _compiled() -> Environment:
    """Return the environment with all templates compiled, so that no login waits for it."""
    own, shared = PackageLoader("remuda.identity.login"), PackageLoader("remuda.http")
    environment = Environment(
        loader=ChoiceLoader([own, shared]),
        auto_reload=False,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["moment"] = _moment
    for name in ("page.html", *own.list_templates()):
        environment.get_template(name)
    return environment


def _moment(moment: datetime) -> str:
    utc = moment.astimezone(UTC)
    return f"{utc.day} {utc:%b %Y, %H:%M} UTC"
