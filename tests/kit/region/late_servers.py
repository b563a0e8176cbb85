"""Servers of a cloud, whose first create begins late: the caller has long stopped waiting for it."""

from dataclasses import replace
from typing import Any

from tests.kit.region.environment import NORTH, RegionEnvironment

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
