"""What others do to a server: it is shown, and destroys nothing."""

from typing import Any

import msgspec
import pytest

from remuda.compute.names import INSTANCE_TAG
from remuda.kernel.tags import Tag
from remuda.quota.ports import Place
from remuda.region.kinds.servers import Server
from remuda.resources.conventions import NETWORK, REGION
from tests.compute.controlling import SMALL, at_cloud, change, events, made, network_of, rest, server_of, stored
from tests.compute.house import ComputeHouse, in_a_compute
from tests.region.house import STANDARD


@pytest.mark.parametrize("change_at_provider", ["stop", "migrate"])
def test_c13_m12_what_happens_at_the_provider_is_shown_and_destroys_nothing(change_at_provider: str) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        (machine,) = at_cloud(house)
        getattr(house.region.north.operator, change_at_provider)(machine.id)
        await rest(house, 20)
        (now,) = at_cloud(house)
        assert now.id == machine.id
        read = await house.read(instance)
        assert read["status"]["powerState"] == ("Stopped" if change_at_provider == "stop" else "Running")
        assert read["metadata"]["provisioningStatus"] == "provisioned"
        assert await events(house, instance) == ["ServerMade"]

    in_a_compute(scenario)


def test_c13_another_flavor_at_the_provider_is_drift_and_no_reason_to_replace() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house), flavorId=STANDARD)
        server = await server_of(house, instance)
        assert server is not None
        await house.store.update_status(_resized(server))
        await rest(house)
        assert len(at_cloud(house)) == 1
        assert await events(house, instance) == ["ServerMade"]
        assert (await house.read(instance))["spec"]["flavorId"] == STANDARD

    in_a_compute(scenario)


def _resized(server: Server) -> Server:
    return msgspec.structs.replace(server, status=msgspec.structs.replace(server.status, flavor_id=SMALL))


def test_a_server_that_broke_after_it_ran_is_an_error_and_left_alone() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        (machine,) = at_cloud(house)
        house.region.north.operator.fail(machine.id, "the host died")
        await rest(house, 20)
        read = await house.read(instance)
        assert (read["status"]["powerState"], read["metadata"]["healthStatus"]) == ("Error", "error")
        assert [each.id for each in at_cloud(house)] == [machine.id]

    in_a_compute(scenario)


def test_what_another_service_has_written_on_the_server_is_left_to_it() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        server = await house.store.get(Server, instance)
        tags = (*server.spec.tags, Tag("storage.unikorn-cloud.org/x", "y"), Tag("team", "red"))
        await house.store.update(msgspec.structs.replace(server, spec=msgspec.structs.replace(server.spec, tags=tags)))
        await rest(house)
        after = await house.store.get(Server, instance)
        assert after.spec.tags == tags
        assert INSTANCE_TAG in {tag.name for tag in after.spec.tags}
        assert await events(house, instance) == ["ServerMade"]

    in_a_compute(scenario)


def test_what_region_does_not_take_over_is_not_asked_for_again_and_again() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        link: Any = type(house.app.ports.region)
        asked: list[str] = []

        async def change_server(self: Any, wanted: Any) -> Any:
            asked.append(wanted.id)
            where = house.region.organization, house.region.project
            labels = (await stored(house, instance)).metadata.labels
            (server,) = await self.servers_of(instance, Place(*where), labels[REGION], labels[NETWORK])
            return server

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(link, "change_server", change_server)
            await change(house, instance, description="mine")
            await rest(house, 300)
            assert (await house.read(instance))["metadata"]["provisioningStatus"] == "error"
        assert len(asked) <= 7
        assert await events(house, instance) == ["ServerMade"]
        await rest(house, 120)
        assert (await house.read(instance))["metadata"]["provisioningStatus"] == "provisioned"

    in_a_compute(scenario)
