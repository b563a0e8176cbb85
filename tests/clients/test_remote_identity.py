"""Region with identity in another place: everything that it asks, and that it hears of projects, goes over a socket."""

import asyncio
from pathlib import Path

from remuda.access.principal import Principal
from remuda.clients.delegation import Delegation
from remuda.identity.api import IdentityApi
from remuda.identity.app import TABLE as IDENTITY
from remuda.kernel.randomness import SystemRandomness
from remuda.quota.client import QuotaClient
from tests.kit.both_transports import Serving, client_of, free_port, remote_of
from tests.kit.region.environment import running
from tests.kit.region.project_deletion import end_project, left_of, until_project_is_gone

REGION = Principal(subject="unikorn-region", type="system")
WITHIN_S = 60.0


async def test_a_project_ends_with_all_that_region_has_in_it(tmp_path: Path) -> None:
    port = free_port()
    async with client_of(f"http://127.0.0.1:{port}", REGION.subject) as client:

        async def service() -> Principal:
            return REGION

        identity = QuotaClient(
            identity=remote_of(IdentityApi, IDENTITY, client),
            delegation=Delegation(service=service, randomness=SystemRandomness()),
        )
        async with running(tmp_path, identity=identity) as system:
            serving = Serving(system.identity.asgi, port)
            await serving.start()
            server = await system.server(await system.network())
            await system.until(f"/api/v2/servers/{server}", "provisioned")
            await serving.stop()
            await end_project(system)
            await asyncio.sleep(0.5)
            assert await left_of(system) != {}, "region has not heard of it"
            await serving.start()
            await until_project_is_gone(system, within_s=WITHIN_S)
            assert await left_of(system) == {}
            await serving.stop()
