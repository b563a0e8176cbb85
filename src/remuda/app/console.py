"""Console of a process: it shows a logged-in user the instances of compute."""

from collections.abc import Callable, Sequence
from typing import Any

from remuda.access.principal import Context, Principal
from remuda.compute.app import ComputeApp
from remuda.config import settings as effect
from remuda.config.schema import ServerConfig
from remuda.console.app import Console, ConsolePages, ConsolePorts
from remuda.http.asgi import ASGIApp
from remuda.http.ratelimit import RateLimiter
from remuda.http.responses import Collection
from remuda.http.server.health import Mounted, ProcessPages
from remuda.identity.app import IdentityApp
from remuda.identity.login.browser_sessions import BrowserAuthenticator
from remuda.process import ProcessPorts
from remuda.resources.query import NetworkedQuery
from remuda.version import describe


def console_in_front(
    process: ProcessPorts,
    server: ServerConfig,
    *,
    identity: IdentityApp,
    compute: ComputeApp,
    mounted: Sequence[Mounted],
    account: str,
) -> Callable[[ProcessPages], ASGIApp]:
    """Return a function that puts the console before the pages of a process. `account` is the login page."""
    login, permissions = identity.services.login, identity.services.permissions
    viewers = BrowserAuthenticator(
        store=process.store, cookie=login.cookie, logins=login.logins, permissions=permissions
    )

    async def instances(principal: Principal) -> Collection[Any, Any]:
        return await compute.services.instances.list(Context(principal=principal, operation=""), NetworkedQuery())

    ports = ConsolePorts(
        pages=ConsolePages(description=describe(), mounted=mounted, account=account),
        viewer=viewers.find,
        instances=instances,
        watch=compute.watches,
        limiter=RateLimiter(effect.rate_limit(server), process.clock),
    )
    return lambda pages: Console(ports, pages)
