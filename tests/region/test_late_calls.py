"""A provider call that ends long after its deadline: its object is reconciled at once, without an event."""

from dataclasses import replace
from typing import Any

import pytest

from remuda.providers.contract import common
from remuda.providers.proxy import image_key
from remuda.region.app import CONTROLLER_OF_TYPE
from tests.kit.environment import options
from tests.kit.region.environment import NORTH, RegionEnvironment, unwatched

TAKES_S = 400.0
"""So long that the backoff has grown to minutes."""


class LateServers:
    """The servers of a cloud, whose first create begins late and then ends as given."""

    def __init__(self, region: RegionEnvironment, error: Exception | None) -> None:
        self._servers: Any = region.north.provider.servers
        self._clock, self._error = region.clock, error
        self.ended_at = 0.0
        self.creates = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._servers, name)

    async def create_server(self, desired: Any) -> Any:
        self.creates += 1
        if self.creates > 1:
            return await self._servers.create_server(desired)
        await self._clock.sleep(TAKES_S)
        self.ended_at = self._clock.monotonic()
        if self._error is not None:
            raise self._error
        return await self._servers.create_server(desired)


def at_late_servers(region: RegionEnvironment, error: Exception | None = None) -> LateServers:
    late = LateServers(region, error)
    servers: Any = late
    region.clouds.clouds[NORTH].provider = replace(region.north.provider, servers=servers)
    return late


@pytest.mark.parametrize("error", [None, common.Rejected("no")], ids=["created", "failed"])
@options(is_instant=True, settings=unwatched())
async def test_a_server_whose_create_ends_late_is_reconciled_at_once(
    region: RegionEnvironment, error: Exception | None
) -> None:
    late = at_late_servers(region, error)
    network = await region.network()
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    server = await region.server(network)
    await region.clock.sleep(TAKES_S - 20)
    assert late.creates == 1, "no second create is sent while the first one has not ended"
    await region.until(f"/api/v2/servers/{server}", "provisioned")
    assert region.clock.monotonic() - late.ended_at < 1
    assert len(region.north.operator.servers()) == 1


@options(settings=unwatched())
async def test_every_type_of_key_has_a_controller(region: RegionEnvironment) -> None:
    keys = [
        common.tenancy_name("id", "uid"),
        common.network_name("id", "uid"),
        common.group_name("id", "uid"),
        common.port_name("id", "uid"),
        common.server_name("id", "uid", 0),
        common.balancer_name("id", "uid"),
        common.storage_name("id", "uid"),
        image_key("id"),
    ]
    assert {key.partition("-")[0] for key in keys} == set(CONTROLLER_OF_TYPE)
    assert set(CONTROLLER_OF_TYPE.values()) <= set(region.app.running_controllers)
