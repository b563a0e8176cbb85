"""Region with identity in another place: everything that it asks, and that it hears of projects, goes over a socket."""

import asyncio
from pathlib import Path

from remuda.access.principal import Principal
from remuda.clients.identity import IdentityLink, watch_projects
from remuda.clients.transport import There
from remuda.identity.app import TABLE as IDENTITY
from remuda.kernel.randomness import SystemRandomness
from tests.kit.region.environment import running
from tests.kit.region.project_deletion import end_project, left_of, until_project_is_gone
from tests.links.ground import Serving, client_of, free_port, there

REGION = Principal(subject="unikorn-region", type="system")
WITHIN_S = 60.0


async def test_a_project_ends_with_all_that_region_has_in_it(tmp_path: Path) -> None:
    port = free_port()
    async with client_of(f"http://127.0.0.1:{port}", REGION.subject) as client:
        watch = there(IDENTITY, client)

        async def service() -> Principal:
            return REGION

        link = IdentityLink(
            send=There(IDENTITY, client),
            service=service,
            randomness=SystemRandomness(),
            watch=lambda: watch_projects(watch),
        )
        async with running(tmp_path, identity=link) as house:
            serving = Serving(house.identity.asgi, port)
            await serving.start()
            server = await house.server(await house.network())
            await house.until(f"/api/v2/servers/{server}", "provisioned")
            await serving.stop()
            await end_project(house)
            await asyncio.sleep(0.5)
            assert await left_of(house) != {}, "region has not heard of it"
            await serving.start()
            await until_project_is_gone(house, within_s=WITHIN_S)
            assert await left_of(house) == {}
            await serving.stop()
