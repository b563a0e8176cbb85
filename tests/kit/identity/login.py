"""Login pages and the token endpoint over one store, and users with browsers.

A `Browser` keeps its cookies, sends the forms of the pages that it is shown, and goes where it is sent, as long as that
is here. Passwords cost next to nothing here, and every argon2 run is counted.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from remuda.http.routes import AnyRoute
from remuda.identity.app import TokenServices, login_services, oauth_service, token_services
from remuda.identity.kinds.oauth import OAuth2Client, OAuth2ClientSpec, OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.tenancy import Organization, OrganizationSpec
from remuda.identity.kinds.users import OrganizationUser, OrganizationUserSpec, User, UserSpec, membership_id, user_id
from remuda.identity.login import routes as login_api
from remuda.identity.login.account_pages import AccountPage, PasswordPages
from remuda.identity.login.common_passwords import load_words
from remuda.identity.login.device_page import DevicePage
from remuda.identity.login.factor_pages import FactorPages, FactorReset
from remuda.identity.login.invitation_pages import InvitationPages
from remuda.identity.login.login_pages import LoginPages, LogoutPages
from remuda.identity.login.login_steps import LoginSteps
from remuda.identity.login.passwords import Argon2Parameters, Passwords
from remuda.identity.oauth import routes as oauth_api
from remuda.identity.oauth.registration import ClientRegistration
from remuda.identity.oauth.service import OAuth
from remuda.identity.ports import Fetch, Fetched, IdentityPorts
from remuda.identity.rbac.service import Permissions
from remuda.identity.settings import IdentitySettings
from remuda.identity.tenancy.domains import prove
from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.errors import ServerUnreachable
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import NAME, ORGANIZATION, USER
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.identity.resource_api import IdentityApi, run_identity_api
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER

ISSUER = "https://remuda.test/identity"
COOKIE, KNOWN_BROWSER = "__Host-remuda-browser", "__Host-remuda-known-browser"
CHEAP = Argon2Parameters(memory_kib=8, time_cost=1)

CONSOLE = "a1111111-0000-4000-8000-000000000001"
CONSOLE_SECRET = "console-secret-console-secret-console-secret"
CONSOLE_URI = "https://console.test/callback?here=1"
CONSOLE_HOME = "https://console.test/"
APP = "b1111111-0000-4000-8000-000000000002"
APP_URI = "https://app.test/cb"

common_words = cache(load_words)
"""Common words, read once for all tests of a process."""

JO = "jo@example.com"
PASSWORD = "correct horse battery staple"


async def nobody_answers(
    method: str,  # noqa: ARG001  a Fetch
    url: str,
    headers: dict[str, str],  # noqa: ARG001  same
    body: bytes | None,  # noqa: ARG001  same
    *,
    organization: str,  # noqa: ARG001  same
) -> Fetched:
    raise ServerUnreachable(urlsplit(url).netloc, "there is no network in this test")


async def nothing_published(name: str, *, organization: str) -> Sequence[str]:  # noqa: ARG001  a FindTxt
    """Return no TXT records."""
    return ()


@dataclass
class Counted:
    """Runs work at once or when it may, and counts how often."""

    times: int = 0
    may_run: asyncio.Event | None = None

    async def __call__(self, work: Callable[[], Any]) -> Any:
        self.times += 1
        if self.may_run is not None:
            await self.may_run.wait()
        return work()


@dataclass(frozen=True, kw_only=True)
class LoginServices:
    """Login pages and OAuth endpoints with their services."""

    login: LoginPages
    logout: LogoutPages
    account: AccountPage
    invitations: InvitationPages
    devices: DevicePage
    password_pages: PasswordPages
    steps: LoginSteps
    factors: FactorPages
    factor_reset: FactorReset
    oauth: OAuth
    registration: ClientRegistration
    tokens: TokenServices
    passwords: Passwords
    argon2: Counted


def new_services(world: World, store: SqliteStore, *, fetch: Fetch = nobody_answers, **settings: Any) -> LoginServices:
    given: dict[str, Any] = {"issuer": ISSUER, "logins_per_minute": 1000, **settings}
    chosen = IdentitySettings(**given)
    counted = Counted()
    ports = IdentityPorts(
        store=store,
        log=store,
        clock=world.clock,
        randomness=world.randomness,
        sealer=SEALER,
        fetch=fetch,
        find_txt=nothing_published,
        run_blocking=counted,
        settings=chosen,
    )
    shared: dict[str, Any] = {
        "store": store,
        "clock": world.clock,
        "randomness": world.randomness,
        "settings": chosen,
    }
    tokens = token_services(**shared)
    oauth = oauth_service(**shared, services=tokens, permissions=Permissions(store=store, settings=chosen))
    passwords = Passwords(
        store=store,
        clock=world.clock,
        randomness=world.randomness,
        run_blocking=counted,
        sessions=tokens.sessions,
        parameters=CHEAP,
        load_common=common_words,
    )
    pages = login_services(ports, tokens=tokens, oauth=oauth, passwords=passwords)
    return LoginServices(
        login=pages.login,
        logout=pages.logout,
        account=pages.account,
        invitations=pages.invitations,
        devices=pages.devices,
        password_pages=pages.passwords,
        steps=pages.login_steps,
        factors=pages.factors,
        factor_reset=pages.factor_reset,
        oauth=oauth,
        registration=ClientRegistration(store=store, clock=world.clock, randomness=world.randomness),
        tokens=tokens,
        passwords=passwords,
        argon2=counted,
    )


ROUTES: list[AnyRoute] = [*login_api.ROUTES, *oauth_api.ROUTES]


def run_login(
    scenario: Callable[["LoginEnvironment"], Coroutine[Any, Any, None]],
    *,
    fetch: Fetch = nobody_answers,
    seeds: int = 1,
    **settings: Any,
) -> None:
    """Run a scenario with two OAuth clients and one user, Jo. One of the clients needs no code challenge."""

    async def run(api: IdentityApi[LoginServices]) -> None:
        logins = LoginEnvironment(api)
        await logins.furnish()
        await scenario(logins)

    run_identity_api(lambda world, store: new_services(world, store, fetch=fetch, **settings), ROUTES, run, seeds=seeds)


class LoginEnvironment:
    """Login pages and OAuth endpoints, with users and browsers to drive them."""

    def __init__(self, api: IdentityApi[LoginServices]) -> None:
        self.api, self.services, self.store, self.world = api, api.service, api.store, api.world

    async def furnish(self) -> None:
        await self.client(
            CONSOLE,
            name="console",
            redirect_uri=CONSOLE_URI,
            home_uri=CONSOLE_HOME,
            secret_hash=token_hash(CONSOLE_SECRET),
            is_first_party=True,
            is_challenge_optional=True,
        )
        await self.client(APP, name="app", redirect_uri=APP_URI, is_public=True)
        await self.user(JO, password=PASSWORD)

    async def client(self, client_id: str, *, name: str, **spec: Any) -> None:
        metadata = Metadata(name=client_id, labels={NAME: name})
        await self.store.create(OAuth2Client(metadata=metadata, spec=OAuth2ClientSpec(**spec)))

    async def user(self, subject: str, *, password: str = "", state: Any = "active") -> str:
        name = user_id(subject)
        await self.store.create(User(metadata=Metadata(name=name), spec=UserSpec(subject=subject, state=state)))
        if password:
            await self.services.passwords.set_password(name, Secret(password))
        return name

    async def organization(self, name: str, **spec: Any) -> None:
        metadata = Metadata(name=name, labels={NAME: "org"})
        made = await self.store.create(Organization(metadata=metadata, spec=OrganizationSpec(**spec)))
        if made.spec.domain:
            await prove(self.store, made, made.spec.domain, "dns", now=self.world.clock.now())

    async def member(self, organization: str, user: str, state: Any = "active") -> None:
        labels = {ORGANIZATION: organization, USER: user}
        metadata = Metadata(name=membership_id(organization, user), labels=labels)
        await self.store.create(OrganizationUser(metadata=metadata, spec=OrganizationUserSpec(state=state)))

    async def provider(self, name: str, *, organization: str = "", **spec: Any) -> None:
        labels = {NAME: "acme", **({ORGANIZATION: organization} if organization else {})}
        await self.store.create(
            OAuth2Provider(metadata=Metadata(name=name, labels=labels), spec=OAuth2ProviderSpec(**spec))
        )

    def browser(self, peer: str = "192.0.2.1") -> "Browser":
        return Browser(Client(app=self.api.app, contract=None, peer=(peer, 4711)))

    async def logged_in(self, subject: str = JO, password: str = PASSWORD) -> "Browser":
        """Return a browser in which somebody has logged in to the console and got tokens."""
        browser = self.browser()
        page = await browser.authorize()
        answer = await browser.submit(page, email=subject, password=password)
        assert answer.status == 302, answer.body
        await self.exchange(sent_to(answer)["code"])
        return browser

    async def exchange(self, code: str, **more: str) -> Reply:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": CONSOLE,
            "client_secret": CONSOLE_SECRET,
            "redirect_uri": CONSOLE_URI,
            **more,
        }
        return await self.api.ask(None).post("/oauth2/v2/token", form=form)


def request(**more: str) -> dict[str, str]:
    """Return an authorization request of the console; what is empty is left out."""
    asked = {
        "client_id": CONSOLE,
        "redirect_uri": CONSOLE_URI,
        "response_type": "code",
        "scope": "openid email",
        "state": "client-state",
        **more,
    }
    return {name: value for name, value in asked.items() if value}


def sent_to(reply: Reply) -> dict[str, str]:
    """Return the query of where a reply sends the browser."""
    assert reply.status == 302, (reply.status, reply.body.decode())
    return dict(parse_qsl(urlsplit(reply.headers["location"]).query, keep_blank_values=True))


@dataclass
class Browser:
    """A browser of somebody's."""

    client: Client
    cookies: dict[str, str] = field(default_factory=dict)

    async def authorize(self, **more: str) -> Reply:
        return await self.get("/oauth2/v2/authorization", request(**more))

    async def get(self, path: str, query: Any = ()) -> Reply:
        return self._kept(await self.client.get(path, query, **self._sent()))

    async def post(self, path: str, form: Mapping[str, str]) -> Reply:
        return self._kept(await self.client.post(path, form=form, **self._sent()))

    async def submit(self, page: Reply, button: tuple[str, str] | None = None, form: int = 0, **fields: str) -> Reply:
        """Send a form of a page, filled in."""
        found = Forms.of(page)[form]
        assert found.action.startswith(ISSUER), found.action
        filled = {**found.fields, **fields, **(dict([button]) if button else {})}
        return await self.post(found.action.removeprefix(ISSUER), filled)

    async def follow(self, reply: Reply) -> Reply:
        """Go where a reply sends the browser, which is here."""
        location = reply.headers["location"]
        assert location.startswith(ISSUER), location
        parts = urlsplit(location.removeprefix(ISSUER))
        return await self.get(parts.path, parse_qsl(parts.query, keep_blank_values=True))

    def _sent(self) -> dict[str, str]:
        return {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}

    def _kept(self, reply: Reply) -> Reply:
        for cookie in reply.cookies:
            pair, *attributes = (part.strip() for part in cookie.split(";"))
            name, _, value = pair.partition("=")
            if "Max-Age=0" in attributes:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return reply


@dataclass
class Form:
    action: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)


class Forms(HTMLParser):
    """Finds the forms of a page, with what they would send."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []

    @classmethod
    def of(cls, page: Reply) -> list[Form]:
        parser = cls()
        parser.feed(page.body.decode())
        assert parser.forms, page.body.decode()
        return parser.forms

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(given["action"]))
        elif tag == "input":
            self.forms[-1].fields[given["name"]] = given.get("value", "")
        elif tag == "button" and "name" in given:
            self.forms[-1].buttons.append((given["name"], given["value"]))
