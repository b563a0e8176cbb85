"""Identity as production puts it together, over a file of its own: access log, metrics, mount, rate limit, controllers.

Beside it stands a twin of its API in which one route is public and asks for no right: the same request, and nobody is
asked who sends it.
"""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from prometheus_client import CollectorRegistry

from bench.bed import Bed
from bench.identity.client import Client
from bench.identity.tenants import Tenant, settle
from bench.kinds import SEALER
from remuda.access.principal import Principal
from remuda.app import IDENTITY_PREFIX, registry
from remuda.http.api import Api
from remuda.http.asgi import ASGIApp
from remuda.http.authentication import RequestCredentials
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.http.responses import Rendered, split_etag
from remuda.http.routes import AnyRoute, Call, Table
from remuda.http.schema import Nothing
from remuda.http.server.access_log import AccessLog, LineWriter, Sink
from remuda.http.server.health import PROCESS, Mounted, Mounts, ProcessPages
from remuda.http.server.metrics import Metrics
from remuda.identity.app import IdentityApp
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.kinds.users import User, user_id
from remuda.identity.oauth.clients import CLI
from remuda.identity.ports import Fetched, IdentityPorts
from remuda.identity.settings import IdentitySettings
from remuda.identity.tenancy.rules import ORGANIZATION_VIEW
from remuda.identity.tenancy.schema import OrganizationRead
from remuda.identity.tenancy.service import Organizations
from remuda.identity.users.rules import new_user
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import AlreadyExists, ServerUnreachable
from remuda.kernel.randomness import SystemRandomness
from remuda.process import prepare_interpreter
from remuda.resources.schema import OrganizationPath
from remuda.service import api_ports
from remuda.store.readside.reader import ReaderSettings
from remuda.store.readside.reads import MaintenanceSettings
from remuda.store.sqlite.store import SqliteSettings, SqliteStore, open_store
from remuda.version import describe

__all__ = ["ROOT", "Environment", "housed", "open_identity"]

ROOT = "root@example.com"
"""A platform administrator."""

_ISSUER = f"http://127.0.0.1:8080{IDENTITY_PREFIX}"
_UNLIMITED = 1_000_000_000
_QUIET_S = 0.5
_READ = "get_organization"


def open_identity(path: Path, *, cache_bytes: int = ReaderSettings.cache_bytes) -> SqliteStore:
    """Open a store for identity whose own upkeep stays out of the way."""
    reader = ReaderSettings(cache_bytes=cache_bytes, bookmark_interval_s=3_600)
    settings = SqliteSettings(reader=reader, maintenance=MaintenanceSettings(interval_s=3_600))
    return open_store(path, registry(), SEALER, settings=settings)


class Environment:
    """Identity at work."""

    def __init__(self, identity: IdentityApp, store: SqliteStore, sink: Sink) -> None:
        self.identity, self.store = identity, store
        self.app = self._edge(identity.table, identity.api, sink)
        """What clients reach."""
        twin = Table(
            "identity",
            title="Twin",
            description="One route is public.",
            routes=list(map(_opened, identity.table.routes)),
        )
        self.root = ""
        """The token of a platform administrator."""
        ports = identity.ports
        the_same = api_ports(ports, identity.authenticator, identity.watches, url=ports.settings.issuer)
        self.public = self._edge(twin, Api(twin, identity.services, the_same), sink)

    def _edge(self, table: Table, api: Api, sink: Sink) -> ASGIApp:
        ports = self.identity.ports
        mounted = Mounted(IDENTITY_PREFIX, table, api)
        metrics = Metrics(CollectorRegistry(), [PROCESS, table])
        limiter = RateLimiter(ports.rate, ports.clock)
        pages = ProcessPages(description=describe(), checks=(), mounted=[mounted], limiter=limiter)
        return AccessLog(
            Mounts([mounted], pages), clock=ports.clock, randomness=ports.randomness, metrics=metrics, sink=sink
        )

    async def log_in(self, subject: str) -> str:
        """Begin a session for a user, as a login does, and return its token."""
        resource, user = self.identity.tokens, await self.store.get(User, user_id(subject))
        session = await resource.sessions.begin(user=user, client="console", scope="openid email")
        return (await resource.tokens.issue_for_session(user, session)).token.reveal()

    async def refresh_token(self, subject: str) -> str:
        """Begin a session for a user of our command line, and return what refreshes it."""
        sessions, user = self.identity.tokens.sessions, await self.store.get(User, user_id(subject))
        refresh = sessions.new_refresh()
        await sessions.begin(user=user, client=CLI, scope="openid email", refresh=refresh)
        return refresh.text.reveal()

    async def account(self, tenant: Tenant) -> str:
        """Make a service account that is in all groups of an organization, and return its token."""
        body = {"metadata": {"name": "robot"}, "spec": {"groupIDs": tenant.groups}}
        made = await self.client(self.root).post(f"/api/v1/organizations/{tenant.id}/serviceaccounts", body)
        return str(made.json["status"]["accessToken"])

    async def principal(self, token: str) -> Principal:
        """Return whose token it is."""
        return await self.identity.authenticator.authenticate(RequestCredentials(token=token))

    async def settled(self) -> None:
        """Return when the controllers have nothing more to do."""
        change_count = None
        while change_count != (change_count := self.store.change_counter((Organization, Project))):  # noqa: ASYNC110  see below
            await asyncio.sleep(_QUIET_S)  # they tell nobody, so they are watched

    def client(self, token: str | None = None) -> Client:
        """Return the client of whoever has this token, or of nobody."""
        return Client(self.app, token)


@asynccontextmanager
async def housed(bed: Bed, *tenants: Tenant, store: SqliteStore | None = None) -> AsyncIterator[Environment]:
    """Run identity for the time of a block, with these organizations in it."""
    store = store or open_identity(bed.fresh())
    settings = IdentitySettings(issuer=_ISSUER, platform_administrators=(ROOT,), logins_per_minute=_UNLIMITED)
    ports = IdentityPorts(
        store=store,
        log=store,
        clock=SystemClock(),
        randomness=SystemRandomness(),
        sealer=SEALER,
        fetch=_nobody_answers,
        find_txt=_nothing_published,
        settings=settings,
        rate=RateLimit(quota=_UNLIMITED),
    )
    with bed.fresh().open("ab", buffering=0) as lines, contextlib.closing(LineWriter(lines.fileno())) as sink:
        identity = IdentityApp(ports)
        await identity.start()
        with contextlib.suppress(AlreadyExists):  # of an environment that was open before
            await store.create(new_user(ROOT, (), Principal(subject=ROOT, type="user")))
        await settle(store, tenants)
        prepare_interpreter()
        environment = Environment(identity, store, sink)
        environment.root = await environment.log_in(ROOT)
        yield environment
        await identity.stop()
    await store.close()
    gc.unfreeze()  # nobody looks at an environment that was frozen, and so nobody would clear it away


def _opened(route: AnyRoute) -> AnyRoute:
    if route.name != _READ:
        return route
    return replace(route, scope="public", permission=None, calls=None, view=None, handler=_read)


async def _read(
    organizations: Organizations, call: Call[OrganizationPath, Nothing, Nothing]
) -> Rendered[OrganizationRead]:
    """Do what the route does, in as many steps, without a permission check."""
    found = await _get(organizations, call.path.organization)
    return split_etag(await organizations.store.get_view(Organization, found.name, ORGANIZATION_VIEW))


async def _get(organizations: Organizations, name: str) -> Organization:
    return await organizations.store.get(Organization, name)


async def _nobody_answers(_method: str, url: str, *_: object, **__: object) -> Fetched:
    raise ServerUnreachable(url, "nothing here is asked of others")


async def _nothing_published(_name: str, **_: object) -> Sequence[str]:
    return ()
