"""The pages of logging in: plain forms, without scripts and with nothing from elsewhere, in our own hand.

Whatever somebody else wrote, be it an address, a code or a state, is text in them and never markup.

What the page of an account shows.
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

from remuda.http.responses import HtmlPage
from remuda.identity.kinds.common import UserState
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.login.passwords import LEAST_CHARACTERS
from remuda.resources.conventions import NAME


@dataclass(frozen=True, slots=True)
class MembershipRow:
    """An organization that somebody is in."""

    name: str
    state: UserState


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """An application or a device that acts as somebody."""

    id: str
    client: str
    """What people call it."""
    began: datetime | None
    used: datetime | None
    """When it last got a new token, if it ever did."""
    is_from_here: bool
    """It was opened from the browser that shows the page, and ends with the login there."""

    def order(self) -> float:
        """Sort the newest first."""
        return _newest_first(self.began)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserRow:
    """A browser that somebody is logged in in."""

    id: str
    began: datetime | None
    provider: str
    """What people call the provider; nothing for a password."""

    def order(self) -> float:
        """Sort the newest first."""
        return _newest_first(self.began)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountView:
    """All of it."""

    email: str
    here: BrowserRow
    memberships: Sequence[MembershipRow]
    is_administrator: bool
    """Of the whole platform."""
    sessions: Sequence[SessionRow]
    elsewhere: Sequence[BrowserRow]
    has_password: bool


def _newest_first(moment: datetime | None) -> float:
    return -(moment or datetime.min.replace(tzinfo=UTC)).timestamp()


_OK = 200
_NAMES = {"google": "Google", "microsoft": "Microsoft"}


class Pages:
    """Renders them."""

    def __init__(self, issuer: str) -> None:
        self._environment, self._here = _compiled(), issuer
        style = self._environment.get_template("page.css").render().encode()
        allowed = f"style-src 'sha256-{base64.b64encode(hashlib.sha256(style).digest()).decode()}'"
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
        """Ask who somebody is; `known` is who is logged in already."""
        named = [(each.name, provider_name(each)) for each in providers]
        told = {"state": state, "providers": named, "application": application, "email": email, "known": known}
        # Where this form leads is a client's address, or a provider's: a browser would hold `form-action` against both.
        return self._page("login.html", "Log in", problem, status, cookies, leads_away=True, **told)

    def go_on(self, *, state: str, email: str, provider: str) -> HtmlPage:
        """Let somebody who was sent here by a form of another site send it once more, from this one."""
        return self._page("continue.html", "Log in", leads_away=True, state=state, email=email, provider=provider)

    def depart(self, *, state: str, email: str, provider: OAuth2Provider, organization: str) -> HtmlPage:
        """Ask whether somebody wants to go to the provider of an organization; it is called by its name."""
        host, title = urlsplit(provider.spec.issuer).netloc, "Log in at your organization?"
        told: dict[str, Any] = {"organization": organization, "host": host, "provider": provider.name}
        return self._page("depart.html", title, leads_away=True, state=state, email=email, **told)

    def device(self, *, code: str = "", problem: str = "", status: int = _OK) -> HtmlPage:
        """Ask for the code that a device shows."""
        return self._page("device.html", "Connect a device", problem, status, code=code)

    def approve(self, *, state: str, code: str, application: str, scope: str, known: str) -> HtmlPage:
        """Ask whether a device may act for somebody."""
        asked: dict[str, Any] = {"code": code, "application": application, "scope": scope, "known": known}
        return self._page("approve.html", "Allow this device?", state=state, **asked)

    def account(self, account: AccountView, *, state: str, leaving: str) -> HtmlPage:
        """Show somebody their account; `leaving` is what the button to log out sends."""
        return self._page("account.html", "Your account", account=account, state=state, leaving=leaving)

    def logout(self, *, state: str, known: str) -> HtmlPage:
        """Ask whether somebody wants to log out."""
        return self._page("logout.html", "Log out?", leads_away=True, state=state, known=known)

    def password(self, *, link: str = "", email: str = "", problem: str = "", status: int = _OK) -> HtmlPage:
        """Ask for a new password: by a link, or by the present one."""
        title = "Choose a password" if link else "Change your password"
        return self._page("password.html", title, problem, status, link=link, email=email, least=LEAST_CHARACTERS)

    def message(
        self,
        title: str,
        message: str,
        *,
        leads: tuple[str, str],
        status: int = _OK,
        cookies: tuple[str, ...] = (),
    ) -> HtmlPage:
        """Say something, and where to go from there: what the link says, and its path here."""
        return self._page("message.html", title, "", status, cookies, message=message, leads=leads)

    def _page(
        self,
        template: str,
        title: str,
        problem: str = "",
        status: int = _OK,
        cookies: tuple[str, ...] = (),
        *,
        leads_away: bool = False,
        **told: Any,
    ) -> HtmlPage:
        html = self._environment.get_template(template).render(here=self._here, title=title, problem=problem, **told)
        policy = self._policy if leads_away else f"{self._policy}; form-action 'self'"
        return HtmlPage(html, status, {"Content-Security-Policy": policy}, cookies)


def provider_name(provider: OAuth2Provider) -> str:
    """Return what people call a provider."""
    return _NAMES.get(provider.spec.type) or provider.metadata.labels.get(NAME) or provider.spec.issuer


@cache
def _compiled() -> Environment:
    """Return the templates, all of them compiled: that takes milliseconds for which nobody's login should wait."""
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
    """Return a time as people read it."""
    there = moment.astimezone(UTC)
    return f"{there.day} {there:%b %Y, %H:%M} UTC"
