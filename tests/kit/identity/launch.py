"""All of identity for tests, built as in production: in real time on a real file, or on the simulated machine.

::

    async with running(tmp_path) as identity:
        acme = await identity.organization("acme")
        ann = await identity.member("ann@example.com", acme, "administrator")
        reply = await identity.client(ann).get(f"/api/v1/organizations/{acme}")

    def test_…() -> None:
        run_identity(scenario)

Every answer is held against identity's own document and against the wire contract. `identity.root` is the token of a
platform administrator.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from remuda.http.api import ApiSettings
from remuda.http.ratelimit import RateLimit
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.identity.app import IdentityApp
from remuda.identity.oauth.clients import seed_clients
from remuda.identity.ports import IdentityPorts
from remuda.identity.quotas.ledger import seed_quota_metadata
from remuda.identity.rbac.roles import seed_roles
from remuda.identity.settings import IdentitySettings, RoleBinding
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.certificates import certificate_proxies
from tests.kit.environment import run_inline
from tests.kit.identity.environment import ISSUER, LOOKER, ROOT, IdentityEnvironment
from tests.kit.identity.login import nobody_answers, nothing_published
from tests.kit.identity.resource_api import registry
from tests.kit.identity.service_credentials import system_accounts
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import SEALER, open_simulated

T = TypeVar("T")


def settings(**more: Any) -> IdentitySettings:
    """Return what environments are told unless a test wants it otherwise."""
    given: dict[str, Any] = {
        "issuer": ISSUER,
        "platform_administrators": (ROOT,),
        "role_bindings": (RoleBinding(subject=LOOKER, roles=("platform-reader",)),),
        "system_accounts": system_accounts(),
        "logins_per_minute": 1000,
    }
    return IdentitySettings(**given | more)


@asynccontextmanager
async def _identity_environment(
    store: SqliteStore, clock: Clock, randomness: Randomness, more: dict[str, Any], *, is_quiet: bool = False
) -> AsyncIterator[IdentityEnvironment]:
    given: dict[str, Any] = {
        "settings": settings(),
        "fetch": nobody_answers,
        "find_txt": nothing_published,
        "rate": RateLimit(quota=10_000_000),
        "failure_rate": RateLimit(quota=10_000_000, name="failures"),
        "api": ApiSettings(certificates=certificate_proxies()),
    }
    app = IdentityApp(
        IdentityPorts(store=store, log=store, clock=clock, randomness=randomness, sealer=SEALER, **given | more)
    )
    identity = IdentityEnvironment(app, store)
    await (_furnish(store) if is_quiet else app.start())
    try:
        identity.root = await identity.log_in(ROOT)
        yield identity
        identity.asgi.assert_documented()
    finally:
        await app.stop()
        await store.close()


async def _furnish(store: SqliteStore) -> None:
    """Write what is built in, as a start does."""
    for seed in (seed_roles, seed_quota_metadata, seed_clients):
        await seed(store)


@asynccontextmanager
async def running(directory: Path, *, is_quiet: bool = False, **ports: Any) -> AsyncIterator[IdentityEnvironment]:
    """Run identity for the time of a block; `ports` are those of `IdentityPorts` that a test wants otherwise.

    With `is_quiet`, only callers act: no controllers and no background tasks run.
    """
    store = open_store(directory / "identity.db", registry(), SEALER)
    async with _identity_environment(store, SystemClock(), SystemRandomness(), ports, is_quiet=is_quiet) as identity:
        yield identity


@asynccontextmanager
async def serving(identity: IdentityEnvironment) -> AsyncIterator[ListenAddress]:
    """Answer on a socket for the time of a block; yields where."""
    ports = identity.app.ports
    server = HttpServer(
        identity.asgi, clock=ports.clock, randomness=ports.randomness, count_closed=identity.metrics.count_closed
    )
    address = await server.start(ListenAddress("127.0.0.1", 0))
    try:
        yield address
    finally:
        ports.closing.set()
        server.hurry()
        await server.stop()


def run_identity(
    scenario: Callable[[IdentityEnvironment], Coroutine[Any, Any, None]],
    *,
    seed: int = 5,
    is_quiet: bool = False,
    **ports: Any,
) -> None:
    """Run a scenario in simulated time; `ports` are those of `IdentityPorts` that a test wants otherwise.

    With `is_quiet`, only callers act: no controllers and no background tasks run.
    """

    async def run(world: World) -> None:
        store = open_simulated(world, registry())
        async with _identity_environment(
            store, world.clock, world.randomness, {"run_blocking": run_inline} | ports, is_quiet=is_quiet
        ) as identity:
            await scenario(identity)

    simulate(run, [seed])
