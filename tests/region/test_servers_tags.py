"""Servers that a service has tagged: found by an index. And a replacement for which there is no capacity."""

from typing import Any

import pytest

from remuda.providers.simulated.catalogue import Hosts, load_catalogues
from remuda.region.servers.routes import SERVERS
from tests.kit.environment import options
from tests.kit.region.servers import COMPUTE, SMALL, STANDARD, UBUNTU, ServersEnvironment, update, wanted

TAG = "compute.unikorn-cloud.org/instance-id"
ONE, OTHER = "a0000000-0000-4000-8000-000000000001", "b0000000-0000-4000-8000-000000000002"


def _tagged(body: dict[str, Any], *tags: tuple[str, str]) -> dict[str, Any]:
    said = {"name": body["metadata"]["name"], "tags": [{"name": name, "value": value} for name, value in tags]}
    return body | {"metadata": said}


async def _make(region_servers: ServersEnvironment, network: str, name: str, *tags: tuple[str, str]) -> str:
    reply = await region_servers.servers.ask(COMPUTE).post(SERVERS, _tagged(wanted(network, name), *tags))
    assert reply.status == 201, reply
    return str(reply.json["metadata"]["id"])


async def _found(region_servers: ServersEnvironment, tag: str, value: str) -> list[str]:
    reply = await region_servers.servers.ask(COMPUTE).get(SERVERS, {"tag": f"{tag}={value}"})
    assert reply.status == 200, reply
    return [each["metadata"]["id"] for each in reply.json]


async def test_the_tag_of_a_service_is_a_label_by_which_the_server_is_found(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    one = await _make(region_servers, network, "one", (TAG, ONE), ("team", "red"))
    await _make(region_servers, network, "other", (TAG, OTHER), ("team", "red"))
    assert await _found(region_servers, TAG, ONE) == [one]
    assert (await region_servers.stored(one)).metadata.labels[TAG] == ONE
    assert "team" not in (await region_servers.stored(one)).metadata.labels, "what users say is theirs, and no label"
    (found,) = (await region_servers.store.list_names(type(await region_servers.stored(one)), labels={TAG: ONE})).items
    assert found == one


async def test_the_label_follows_the_tag(region_servers: ServersEnvironment) -> None:
    server = await _make(region_servers, await region_servers.make_network(), "web", (TAG, ONE))
    path = f"{SERVERS}/{server}"
    assert (await region_servers.servers.ask(COMPUTE).put(path, _tagged(update(), (TAG, OTHER)))).status == 202
    assert (await _found(region_servers, TAG, ONE), await _found(region_servers, TAG, OTHER)) == ([], [server])
    await region_servers.put(server, update())  # by somebody who cannot take it away
    assert await _found(region_servers, TAG, OTHER) == [server]
    assert (await region_servers.servers.ask(COMPUTE).put(path, update())).status == 202
    assert await _found(region_servers, TAG, OTHER) == []
    assert TAG not in (await region_servers.stored(server)).metadata.labels


@pytest.mark.parametrize(
    ("tag", "value"),
    [("compute.unikorn-cloud.org:instance-id", ONE), (TAG, "not a label!"), (TAG, "x" * 64), ("team", "red")],
)
async def test_what_is_no_label_is_found_all_the_same(region_servers: ServersEnvironment, tag: str, value: str) -> None:
    network = await region_servers.make_network()
    server = await _make(region_servers, network, "web", (tag, value))
    await _make(region_servers, network, "other")
    assert await _found(region_servers, tag, value) == [server]
    assert tag not in (await region_servers.stored(server)).metadata.labels


@options(lambda: {"hosts": dict(load_catalogues()["sim-north"].hosts) | {SMALL: Hosts(count=0, size=1)}}, at_work=True)
async def test_a_flavor_without_capacity_is_refused_before_anything_is_destroyed(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    (before,) = region_servers.at_cloud()
    ask, path = region_servers.servers.ask(COMPUTE), f"{SERVERS}/{server}/replace"
    reply = await ask.post(path, {"flavorId": SMALL, "imageId": UBUNTU})
    assert (reply.status, reply.json["error"]) == (422, "unprocessable_content")
    assert "no free capacity" in reply.json["error_description"]
    await region_servers.rest()
    assert region_servers.at_cloud() == [before]
    assert (await region_servers.stored(server)).spec.replacement == 0
    assert (await ask.post(path, {"flavorId": STANDARD, "imageId": UBUNTU})).status == 202, "it has its own place"
