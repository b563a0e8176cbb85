"""User data of servers is parsed off the event loop, also by the controller."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from remuda.cloudinit.user_data import read_user_data
from remuda.region.servers import provider_spec
from tests.kit.region.environment import STANDARD, RegionEnvironment, run_region
from tests.kit.region.servers import DEBIAN, encoded

T = TypeVar("T")

DATA = encoded("#cloud-config\npackages: [jq]\n")


class Observed:
    """Blocking work that is known while it runs."""

    def __init__(self) -> None:
        self.is_running = False
        self.readings: list[bool] = []
        """Of each reading of user data for the provider, whether it was inside such work."""

    async def __call__(self, work: Callable[[], T]) -> T:
        self.is_running = True
        try:
            return work()
        finally:
            self.is_running = False

    def read(self, text: str) -> bytes:
        self.readings.append(self.is_running)
        return self._read(text)

    _read = staticmethod(read_user_data)


def test_a_controller_parses_user_data_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = Observed()
    monkeypatch.setattr(provider_spec, "read_user_data", observed.read)

    async def scenario(region: RegionEnvironment) -> None:
        server = await region.server(await region.network(), userData=DATA)
        path = f"/api/v2/servers/{server}"
        found = await region.until(path, "provisioned")
        assert observed.readings == [True]
        spec = {"flavorId": STANDARD, "imageId": DEBIAN, "userData": DATA}
        changed = await region.root.put(path, {"metadata": {"name": found["metadata"]["name"]}, "spec": spec})
        assert changed.status in {200, 202}, changed
        await region.until(path, "provisioned")
        assert len(observed.readings) > 1
        assert all(observed.readings)

    run_region(scenario, run_blocking=observed)
