"""A provider call that ends long after its deadline: its object is reconciled at once, without an event."""

import msgspec
import pytest

from remuda.providers.contract import common
from remuda.providers.proxy import image_key
from remuda.region.app import CONTROLLER_OF_TYPE
from remuda.region.kinds.servers import SERVER
from remuda.store.logs import subject_of
from tests.kit.environment import options
from tests.kit.identity.environment import expect
from tests.kit.region.environment import NORTH, RegionEnvironment, unwatched
from tests.kit.region.late_servers import TAKES_S, at_late_servers


async def reported(region: RegionEnvironment, server: str) -> list[str]:
    """Return the reasons of the changed conditions in the timeline of a server."""
    page = await region.store.read("timeline", subject_of(SERVER.qualified, server), limit=1000)
    entries = [msgspec.json.decode(each.data) for each in page.entries]
    return [each["reason"] for each in entries if each["event"] == "ConditionChanged"]


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
    metadata = expect(await region.root.get(f"/api/v2/servers/{server}"), 200)["metadata"]
    assert metadata["provisioningStatus"] == "provisioning"
    assert metadata["provisioningStatusDetail"]["reason"] == "ProviderUnavailable"
    assert "did not respond in time" in metadata["provisioningStatusDetail"]["message"]
    assert NORTH not in metadata["provisioningStatusDetail"]["message"]
    assert await reported(region, server) == ["ProviderUnavailable"], "once, however many attempts there were"
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
