"""Token and OAuth APIs over a real store, with tenants, users and clients.

::

    async def test_…(oauth: OAuthEnvironment) -> None:
        ann = await oauth.user("ann@example.com")
        app = await oauth.client()
        reply = await oauth.token(grant_type="authorization_code", …)
"""

import base64
import hashlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec

from remuda.identity.app import TokenServices, oauth_service, token_services
from remuda.identity.kinds.oauth import AuthorizationCodeSpec, OAuth2Client, OAuth2ClientSpec
from remuda.identity.kinds.users import User
from remuda.identity.oauth.registration import ClientRegistration
from remuda.identity.oauth.routes import ROUTES
from remuda.identity.oauth.service import OAuth
from remuda.identity.rbac.roles import seed_roles
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.clock import Clock
from remuda.resources import service_info
from remuda.resources.conventions import NAME
from remuda.resources.service_info import ServiceInfo
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.identity.permissions import PermissionEnvironment
from tests.kit.identity.resource_api import IdentityApi, registry
from tests.kit.identity.service_credentials import system_accounts
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

ISSUER = "https://identity.example.com"
CALLBACK = "https://app.example.com/callback"
VERIFIER = "a-verifier-that-is-long-enough-to-be-one-0123456789"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class App:
    """A registered client, and the secret that only it knows."""

    id: str
    secret: str = ""

    @property
    def proof(self) -> dict[str, str]:
        """What it sends in a form."""
        return {"client_id": self.id} | ({"client_secret": self.secret} if self.secret else {})

    @property
    def basic(self) -> str:
        """What it sends as a header."""
        return f"Basic {base64.b64encode(f'{self.id}:{self.secret}'.encode()).decode()}"


class Later:
    """The simulated clock, or any time after it: to sleep for months would keep the store's own tasks busy."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._ahead = clock, timedelta()

    def move(self, ahead: timedelta) -> None:
        self._ahead += ahead

    def now(self) -> datetime:
        return self._clock.now() + self._ahead

    def monotonic(self) -> float:
        return self._clock.monotonic() + self._ahead.total_seconds()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


@dataclass(frozen=True)
class MountedServices:
    """The services whose routes are called."""

    oauth: OAuth
    registration: ClientRegistration
    info: ServiceInfo


class OAuthEnvironment(PermissionEnvironment):
    """Token and OAuth APIs over one store."""

    def __init__(self, world: World, store: SqliteStore, settings: IdentitySettings) -> None:
        super().__init__(world, store, settings)
        self.clock = Later(world.clock)
        self.api: TokenServices = self.new_api()
        self.oauth: OAuth = oauth_service(
            store=store,
            clock=self.clock,
            randomness=world.randomness,
            settings=settings,
            services=self.api,
            permissions=self.permissions,
        )
        mounted = MountedServices(
            self.oauth,
            ClientRegistration(store=store, clock=self.clock, randomness=world.randomness),
            ServiceInfo(name="unikorn-identity", release="1.2.3", url=settings.issuer, issuer=settings.issuer),
        )
        self.mounted: IdentityApi[MountedServices] = IdentityApi(world, store, mounted, [*ROUTES, *service_info.ROUTES])
        self.anybody: Client = self.mounted.ask(None)

    def new_api(self) -> TokenServices:
        """Return the token services of another process."""
        return token_services(
            store=self.store, clock=self.clock, randomness=self.world.randomness, settings=self.settings
        )

    async def app(self, **spec: Any) -> App:
        """Register a client; unless it is public it has a secret."""
        name, secret = self.new_id(), "" if spec.get("is_public") else f"secret-of-{self.new_id()}"
        spec = {"redirect_uri": CALLBACK, "secret_hash": token_hash(secret) if secret else "", **spec}
        await self.store.create(
            OAuth2Client(metadata=Metadata(name=name, labels={NAME: "app"}), spec=OAuth2ClientSpec(**spec))
        )
        return App(name, secret)

    async def code(self, user: User, app: App, **spec: Any) -> str:
        """Return the code of a login that has just succeeded."""
        given: dict[str, Any] = {
            "user": user.name,
            "client": app.id,
            "redirect_uri": CALLBACK,
            "scope": "openid email",
            "nonce": "a-nonce",
            "challenge": CHALLENGE,
            "authenticated": self.clock.now(),
            **spec,
        }
        return (await self.oauth.grants.codes.issue(AuthorizationCodeSpec(**given))).reveal()

    async def post(self, path: str, form: dict[str, Any], **headers: str) -> Reply:
        """Send a form."""
        body = urlencode(form, doseq=True).encode()
        return await self.anybody.send("POST", path, body=body, headers={"content_type": FORM, **headers})

    async def token(self, form: dict[str, Any], **headers: str) -> Reply:
        """Ask the token endpoint."""
        return await self.post("/oauth2/v2/token", form, **headers)

    async def redeem(self, code: str, app: App, /, **form: Any) -> Reply:
        """Exchange a code as its client does."""
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            **app.proof,
            **form,
        }
        return await self.token({name: value for name, value in sent.items() if value is not None})

    async def refresh(self, token: str, app: App, **form: str) -> Reply:
        """Exchange a refresh token."""
        return await self.token({"grant_type": "refresh_token", "refresh_token": token, **app.proof, **form})

    async def log_in(self, user: User, app: App, **spec: Any) -> dict[str, Any]:
        """Return the tokens of a new login."""
        reply = await self.redeem(await self.code(user, app, **spec), app)
        assert reply.status == 200, reply.body
        return answer(reply)

    async def userinfo(self, token: str) -> Reply:
        """Ask who the bearer of a token is."""
        return await self.anybody.get("/oauth2/v2/userinfo", authorization=f"Bearer {token}")

    async def is_good(self, token: str) -> bool:
        """Tell whether an access token is good."""
        return (await self.userinfo(token)).status == 200


def answer(reply: Reply) -> dict[str, Any]:
    """Return the body of an answer."""
    decoded: dict[str, Any] = msgspec.json.decode(reply.body)
    return decoded


def rejection(reply: Reply) -> tuple[int, str]:
    """Return status and OAuth2's word of a rejection that is in OAuth2's form."""
    body = answer(reply)
    assert set(body) == {"error", "error_description"}, body
    assert reply.headers["cache-control"] == "no-store"
    return reply.status, body["error"]


def said(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims of a token, whoever signed it."""
    parts = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split(".")[:2]]
    return msgspec.json.decode(parts[0]), msgspec.json.decode(parts[1])


def run_oauth(
    scenario: Callable[[OAuthEnvironment], Coroutine[Any, Any, None]], *, seeds: int = 1, **settings: Any
) -> None:
    """Run a scenario in simulated time; `settings` are those of identity that it wants otherwise."""

    async def run(world: World) -> None:
        store = open_simulated(world, registry())
        try:
            await seed_roles(store)
            oauth = OAuthEnvironment(
                world, store, IdentitySettings(**{"issuer": ISSUER, "system_accounts": system_accounts(), **settings})
            )
            await scenario(oauth)
            oauth.mounted.app.assert_documented()
        finally:
            await store.close()

    simulate(run, seeds)
