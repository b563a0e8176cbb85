"""Identity on a socket, and a service elsewhere that asks it who its callers are.

::

    async with apart(tmp_path) as there:
        token, _ = await there.door.log_in(ann)
        principal = await there.let_in(token)
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from prometheus_client import CollectorRegistry

from remuda.access.principal import Principal
from remuda.http.api import Api, ApiSettings
from remuda.http.authentication import RequestCredentials
from remuda.http.client import Client
from remuda.http.routes import Table
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.http.transport import BearerCredentials, ClientSettings
from remuda.http.watch import WatchPorts
from remuda.identity.app import oauth_service
from remuda.identity.federation.bearer_tokens import ExternalBearers
from remuda.identity.federation.provider_client import Fetcher
from remuda.identity.oauth.routes import ROUTES as OAUTH_ROUTES
from remuda.identity.ports import Fetched
from remuda.identity.rbac.remote_authenticator import RemoteAuthenticator
from remuda.identity.rbac.revocation_feed import RevocationFeed
from remuda.identity.rbac.roles import seed_roles
from remuda.identity.rbac.routes import ROUTES
from remuda.identity.settings import IdentitySettings
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import RemudaError
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.secrets import Secret
from remuda.outbound.addresses import SystemResolver
from remuda.outbound.fetch import GuardedFetcher
from remuda.store.sqlite.store import open_store
from tests.kit.asgi.api_ports import api_ports
from tests.kit.asgi.reference import response_contract
from tests.kit.asgi.validating import Validated
from tests.kit.certificates import certificate_proxies
from tests.kit.clocks import SkippingClock
from tests.kit.http_server import until
from tests.kit.identity.authenticator import AuthenticatorEnvironment
from tests.kit.identity.external_issuer import Issuer
from tests.kit.identity.resource_api import registry
from tests.kit.identity.service_credentials import system_accounts
from tests.kit.outbound_servers import HERE
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER

ISSUER = "http://identity.example"
HEARTBEAT_S = 0.1
OF_OAUTH = {"read_keys", "read_userinfo"}


class Identity:
    """The part of identity that others ask, on a port of its own that stays the same when it is started again."""

    def __init__(self, authentication: AuthenticatorEnvironment) -> None:
        self._socket = authentication
        self._server: HttpServer | None = None
        self.address = ListenAddress("127.0.0.1", 0)

    async def start(self) -> None:
        clock, closing, authentication = SystemClock(), asyncio.Event(), self._socket
        oauth = oauth_service(
            store=authentication.store,
            clock=clock,
            randomness=SystemRandomness(),
            settings=authentication.settings,
            services=authentication.tokens,
            permissions=authentication.permissions,
        )
        service = {"permissions": authentication.permissions, "oauth": oauth}
        table = Table(
            "identity",
            title="Identity",
            description="Some of it.",
            routes=[
                *ROUTES,
                *(each for each in OAUTH_ROUTES if each.name in OF_OAUTH),
            ],
        )
        ports = api_ports(
            authentication.store,
            authentication.authenticator,
            clock=clock,
            randomness=SystemRandomness(),
            watch=WatchPorts(clock=clock, closing=closing, heartbeat_s=HEARTBEAT_S),
            settings=ApiSettings(certificates=certificate_proxies()),
        )
        self._server = HttpServer(
            Validated(Api(table, service, ports), response_contract(table)),
            clock=clock,
            randomness=SystemRandomness(),
            count_closed=lambda _: None,
            closing=closing,
        )
        self.address = await self._server.start(self.address)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.hurry()
            await self._server.stop()
            self._server = None


@dataclass
class There:
    """A service in another process, as far as its callers can tell."""

    environment: AuthenticatorEnvironment
    elsewhere: Issuer
    """An issuer of others' tokens, whom identity may trust."""
    identity: Identity
    clock: SkippingClock
    feed: RevocationFeed
    authenticator: RemoteAuthenticator
    asked: Counter[str]
    answered: Counter[str]
    """What identity has answered to, whether or not the answers may arrive."""
    may_answer: asyncio.Event
    """Clear it, and answers to what is asked do not arrive."""
    following: asyncio.Task[Any] = field(repr=False)

    async def let_in(self, token: str | None = None, **more: Any) -> Principal:
        """Show credentials there."""
        return await self.authenticator.authenticate(RequestCredentials(token=token, **more))

    async def rejection(self, token: str | None = None, **more: Any) -> RemudaError | None:
        """Return why credentials are refused there, if they are."""
        try:
            await self.let_in(token, **more)
        except RemudaError as error:
            return error
        return None

    def is_believed(self) -> bool:
        """Tell whether the feed is."""
        try:
            self.feed.check()
        except RemudaError:
            return False
        return True

    async def until_believed(self) -> None:
        await until(self.is_believed)

    async def stop_following(self) -> None:
        """Cut the feed off, and nothing else."""
        self.following.cancel()
        await asyncio.gather(self.following, return_exceptions=True)


@asynccontextmanager
async def apart(
    directory: Path, *, service: str = "unikorn-region", is_up: bool = True, **settings: Any
) -> AsyncIterator[There]:
    """Run both for the time of a `with` block; the service shows its own token to follow what is revoked."""
    store = open_store(directory / "identity.db", registry(), SEALER)
    machine = cast("World", SimpleNamespace(clock=SystemClock(), randomness=SystemRandomness()))
    await seed_roles(store)
    wanted = IdentitySettings(issuer=ISSUER, **{"system_accounts": system_accounts(), **settings})
    elsewhere = Issuer(machine.clock.now)
    external = ExternalBearers(
        store=store, clock=machine.clock, settings=wanted, fetch=elsewhere, metrics=CollectorRegistry()
    )
    authentication = AuthenticatorEnvironment(machine, store, wanted, external)
    identity = Identity(authentication)
    await identity.start()
    if not is_up:
        await identity.stop()
    own, server = Secret(await authentication.service_token(service)), f"http://{identity.address}"
    clock, fetcher, asked, answered, may_answer = (
        SkippingClock(),
        Fetcher(GuardedFetcher(resolve=SystemResolver(), reach=HERE)),
        Counter[str](),
        Counter[str](),
        asyncio.Event(),
    )
    may_answer.set()
    client = Client(
        server,
        credentials=BearerCredentials(lambda: own),
        clock=clock,
        randomness=SystemRandomness(),
        settings=ClientSettings(silence_s=2, longest_pause_s=0.2),
    )
    feed = RevocationFeed(client, clock)
    authenticator = RemoteAuthenticator(
        issuer=ISSUER, server=server, fetch=counting(fetcher, asked, answered, may_answer), feed=feed, clock=clock
    )
    following = asyncio.create_task(feed.run())
    there = There(
        authentication, elsewhere, identity, clock, feed, authenticator, asked, answered, may_answer, following
    )
    try:
        if is_up and service in authentication.settings.system_accounts:
            await there.until_believed()
        yield there
    finally:
        await there.stop_following()
        await client.close()
        await identity.stop()
        await store.close()


def counting(
    fetch: Fetcher, asked: Counter[str], answered: Counter[str], may_answer: asyncio.Event
) -> Callable[..., Any]:
    """Count what is asked for, by the last word of its path, and hold answers back if that is wanted."""

    async def ask(method: str, url: str, headers: dict[str, str], body: bytes | None, *, organization: str) -> Fetched:
        what = url.rpartition("/")[2]
        asked[what] += 1
        answer = await fetch(method, url, headers, body, organization=organization)
        answered[what] += 1
        await may_answer.wait()
        return answer

    return ask
