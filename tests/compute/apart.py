"""Compute in a process of its own: identity and region are reached over sockets, as services reach each other.

`apart` is the house of `house` otherwise, in real time.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from remuda.access.context import Context
from remuda.access.principal import Principal
from remuda.http.client import Client
from remuda.http.remote import Credentials, Service
from remuda.identity.api import TABLE as IDENTITY
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.links.identity import IdentityLink
from remuda.links.projects import watch_projects
from remuda.links.region import RegionLink
from remuda.links.sending import There
from remuda.links.watching import WatchThere
from remuda.region.api import TABLE as REGION
from tests.compute.house import SERVICE, ComputeHouse, with_compute
from tests.identity.proving import certified
from tests.links.ground import QUICK, Certified, Serving
from tests.region.house import running


class Impersonating:
    """The credentials of a service that asks for no more than both it and the caller may."""

    def headers(self, context: Context | None) -> Mapping[str, str]:
        shown = certified(SERVICE, {}, now=SystemClock().now())
        claimed = Service(SERVICE, impersonate=True).headers(context)
        return {**shown, **{name.lower(): value for name, value in claimed.items()}}


async def _service() -> Principal:
    return Principal(subject=SERVICE, type="system")


@asynccontextmanager
async def apart(directory: Path) -> AsyncIterator[ComputeHouse]:
    """Run everything for the time of a block."""
    randomness = SystemRandomness()
    async with AsyncExitStack() as stack:
        house = await stack.enter_async_context(running(directory))

        async def client(app: Any, credentials: Credentials) -> Client:
            serving = Serving(app)
            url = await serving.start()
            stack.push_async_callback(serving.stop)
            made = Client(url, credentials=credentials, clock=SystemClock(), randomness=randomness, settings=QUICK)
            return await stack.enter_async_context(made)

        identity = await client(house.identity.asgi, Certified(SERVICE))
        acting, asking = await client(house.asgi, Certified(SERVICE)), await client(house.asgi, Impersonating())
        watch: dict[str, Any] = {"clock": SystemClock(), "randomness": randomness}
        projects = WatchThere(IDENTITY, identity, **watch)
        ports = {
            "identity": IdentityLink(
                send=There(IDENTITY, identity),
                service=_service,
                randomness=randomness,
                watch=lambda: watch_projects(projects),
            ),
            "region": RegionLink(
                asking=There(REGION, asking),
                acting=There(REGION, acting),
                service=_service,
                watch=WatchThere(REGION, acting, **watch),
                randomness=randomness,
            ),
        }
        yield await stack.enter_async_context(with_compute(house, ports))
