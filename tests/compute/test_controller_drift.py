"""What others do to a server: it is shown, and destroys nothing."""

from typing import Any

import msgspec
import pytest

from remuda.compute.instances.server_lookup import list_tagged
from remuda.compute.names import INSTANCE_TAG
from remuda.kernel.tags import Tag
from remuda.region.kinds.servers import Server
from tests.kit.compute.controllers import SMALL, at_cloud, change, events, made, network_of, rest, server_of, stored
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.region.environment import STANDARD


@pytest.mark.parametrize("change_at_provider", ["stop", "migrate"])
async def test_c13_m12_what_happens_at_the_provider_is_shown_and_destroys_nothing(
    compute: ComputeEnvironment, change_at_provider: str
) -> None:
    instance = await made(compute, await network_of(compute))
    (machine,) = at_cloud(compute)
    getattr(compute.region.north.operator, change_at_provider)(machine.id)
    await rest(compute, 20)
    (now,) = at_cloud(compute)
    assert now.id == machine.id
    read = await compute.read(instance)
    assert read["status"]["powerState"] == ("Stopped" if change_at_provider == "stop" else "Running")
    assert read["metadata"]["provisioningStatus"] == "provisioned"
    assert await events(compute, instance) == ["ServerCreated"]


async def test_c13_another_flavor_at_the_provider_is_drift_and_no_reason_to_replace(
    compute: ComputeEnvironment,
) -> None:
    instance = await made(compute, await network_of(compute), flavorId=STANDARD)
    server = await server_of(compute, instance)
    assert server is not None
    await compute.store.update_status(_resized(server))
    await rest(compute)
    assert len(at_cloud(compute)) == 1
    assert await events(compute, instance) == ["ServerCreated"]
    assert (await compute.read(instance))["spec"]["flavorId"] == STANDARD


def _resized(server: Server) -> Server:
    return msgspec.structs.replace(server, status=msgspec.structs.replace(server.status, flavor_id=SMALL))


async def test_a_server_that_broke_after_it_ran_is_an_error_and_left_alone(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    (machine,) = at_cloud(compute)
    compute.region.north.operator.fail(machine.id, "the host died")
    await rest(compute, 20)
    read = await compute.read(instance)
    assert (read["status"]["powerState"], read["metadata"]["healthStatus"]) == ("Error", "error")
    assert [each.id for each in at_cloud(compute)] == [machine.id]


async def test_what_another_service_has_written_on_the_server_is_left_to_it(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    server = await compute.store.get(Server, instance)
    tags = (*server.spec.tags, Tag("storage.unikorn-cloud.org/x", "y"), Tag("team", "red"))
    await compute.store.update(msgspec.structs.replace(server, spec=msgspec.structs.replace(server.spec, tags=tags)))
    await rest(compute)
    after = await compute.store.get(Server, instance)
    assert after.spec.tags == tags
    assert INSTANCE_TAG in {tag.name for tag in after.spec.tags}
    assert await events(compute, instance) == ["ServerCreated"]


async def test_what_region_does_not_take_over_is_not_asked_for_again_and_again(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    region = compute.app.ports.region
    asked: list[str] = []

    async def update_server(_: Any, server: str, *_body: Any, **_options: Any) -> Any:
        asked.append(server)
        (found,) = await list_tagged(region, await stored(compute, instance))
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(region.api, "update_server", update_server)
        await change(compute, instance, description="mine")
        await rest(compute, 300)
        assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "error"
    assert len(asked) <= 7
    assert await events(compute, instance) == ["ServerCreated"]
    await rest(compute, 120)
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
