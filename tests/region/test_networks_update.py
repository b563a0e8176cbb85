"""Networks over HTTP: what can be changed of one, what keeps it, and how it goes."""

from typing import Any

import pytest

from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.servers import Server, ServerImage, ServerNetwork, ServerSpec
from remuda.region.networks.routes import NETWORKS
from remuda.region.networks.service import Networks
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.region.network_requests import REFERENCE, reference_at, update
from tests.kit.region.networks import TENANT, NetworksEnvironment, network
from tests.kit.region.resource_api import ORG, OTHER_REGION, member, rejection


async def test_a_put_replaces_all_that_can_be_changed_and_says_who_did(region_networks: NetworksEnvironment) -> None:
    client = region_networks.networks.ask(TENANT)
    wanted = network(routes=[{"prefix": "1.0.0.0/8", "nexthop": "10.0.0.9"}], reservations={"prefixLength": 26})
    wanted["metadata"] |= {"description": "old", "tags": [{"name": "a", "value": "1"}]}
    made = (await client.post(NETWORKS, wanted)).json
    path = f"{NETWORKS}/{made['metadata']['id']}"
    await region_networks.world.clock.sleep(5)
    changer = member("cho@example.com", ORG, "region:networks:v2 RU")
    body = {
        "metadata": {"name": "new"},
        "spec": {"dnsNameservers": ["1.1.1.1"], "prefix": "10.9.0.0/16", "regionId": OTHER_REGION},
    }
    reply = await region_networks.networks.ask(changer).put(path, body)
    assert reply.status == 202
    metadata = reply.json["metadata"]
    assert metadata["name"] == "new"
    assert not {"description", "tags"} & metadata.keys()
    assert (metadata["createdBy"], metadata["modifiedBy"]) == ("ann@example.com", "cho@example.com")
    assert metadata["modifiedTime"] > metadata["creationTime"] == made["metadata"]["creationTime"]
    assert reply.json["spec"] == {"dnsNameservers": ["1.1.1.1"]}
    assert reply.json["status"] == made["status"], "prefix, region and reservations are settled"
    assert (await client.get(path)).json == reply.json


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"dnsNameservers": ["x"]}, "unable to parse IPv4 address"),
        ({"routes": [{"prefix": "x", "nexthop": "10.0.0.1"}]}, "failed to parse route prefix"),
        (
            {"routes": [{"prefix": "10.0.0.0/8", "nexthop": "::1"}]},
            "failed to parse route next-hop, IPv6 is not supported",
        ),
    ],
    ids=["name server", "prefix", "next hop"],
)
async def test_a_put_of_what_no_network_can_become_changes_nothing(
    region_networks: NetworksEnvironment, spec: dict[str, Any], sentence: str
) -> None:
    name = await region_networks.make_network()
    before = await region_networks.versions()
    reply = await region_networks.networks.ask(TENANT).put(f"{NETWORKS}/{name}", update(**spec))
    assert rejection(reply) == (400, sentence)
    assert await region_networks.versions() == before


async def test_m26_a_write_with_an_old_tag_is_refused_and_one_with_the_right_tag_goes_through(
    region_networks: NetworksEnvironment,
) -> None:
    client, path = region_networks.networks.ask(TENANT), f"{NETWORKS}/{await region_networks.make_network()}"
    old = (await client.get(path)).headers["etag"]
    assert (await client.put(path, update(), if_match=old)).status == 202
    assert (await client.put(path, update(), if_match=old)).status == 412
    assert (await client.delete(path, if_match=old)).status == 412
    new = (await client.get(path)).headers["etag"]
    assert (await client.delete(path, if_match=new)).status == 202


# The end, and what keeps it off.


async def test_a_network_goes_with_its_identity_and_says_so_while_it_does(region_networks: NetworksEnvironment) -> None:
    client, name = region_networks.networks.ask(TENANT), await region_networks.make_network()
    path = f"{NETWORKS}/{name}"
    reply = await client.delete(path)
    assert (reply.status, reply.body) == (202, b"")
    (hidden,) = (await region_networks.store.list(Identity)).items
    assert hidden.is_deleting
    metadata = (await client.get(path)).json["metadata"]
    assert metadata["provisioningStatus"] == "deprovisioning"
    assert metadata["deletionTime"]
    assert [each["metadata"]["id"] for each in (await client.get(NETWORKS)).json] == [name]
    before = await region_networks.versions()
    assert (await client.delete(path)).status == 202
    assert await region_networks.versions() == before
    assert rejection(await client.put(path, update())) == (400, "network is being deleted")
    reply = await client.put(reference_at(name))
    assert rejection(reply) == (400, "unable to add reference, resource is being deleted")


async def test_m21_a_reference_keeps_a_network_until_it_is_taken_off(region_networks: NetworksEnvironment) -> None:
    client, name = region_networks.networks.ask(TENANT), await region_networks.make_network()
    for _ in range(2):
        reply = await client.put(reference_at(name))
        assert (reply.status, reply.body) == (201, b"")
    stored = await region_networks.store.get(Network, name)
    assert stored.metadata.finalizers.count(REFERENCE) == 1
    reply = await client.delete(f"{NETWORKS}/{name}")
    assert rejection(reply) == (403, "network is in use and cannot be deleted")
    outdated = (await client.get(f"{NETWORKS}/{await region_networks.make_network()}")).headers["etag"]
    reply = await client.delete(f"{NETWORKS}/{name}", if_match=outdated)
    assert reply.status == 412, "If-Match is compared before the network is found to be in use"
    assert not (await region_networks.store.get(Network, name)).is_deleting
    for _ in range(2):
        reply = await client.delete(reference_at(name))
        assert (reply.status, reply.body) == (204, b"")
    assert (await client.delete(f"{NETWORKS}/{name}")).status == 202


@pytest.mark.parametrize("reference", ["unikorn", "foregroundDeletion", "remuda/in-use", "servers/x", "a.b/"])
async def test_what_is_no_reference_can_neither_be_put_nor_taken_off(
    region_networks: NetworksEnvironment, reference: str
) -> None:
    client, name = region_networks.networks.ask(TENANT), await region_networks.make_network()
    before = await region_networks.versions()
    for reply in (
        await client.put(reference_at(name, reference)),
        await client.delete(reference_at(name, reference)),
    ):
        assert rejection(reply) == (422, "reference is not a resource's: write it as plural.group/id.")
    assert await region_networks.versions() == before


@pytest.mark.parametrize("reference", ["servers.example/" + "x" * 200, "servers.example/a b", "servers.example/ä"])
async def test_a_reference_that_no_backend_can_keep_is_refused_not_stored(
    region_networks: NetworksEnvironment, reference: str
) -> None:
    client, name = region_networks.networks.ask(TENANT), await region_networks.make_network()
    before = await region_networks.versions()
    path = reference_at(name, reference.replace(" ", "%20"))
    put, taken_off = await client.put(path), await client.delete(path)
    assert rejection(put) == rejection(taken_off)
    assert put.status in {400, 422}
    assert await region_networks.versions() == before


async def test_m26_a_reference_that_comes_at_the_moment_of_a_deletion_keeps_the_network(
    region_networks: NetworksEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, name = region_networks.networks.ask(TENANT), await region_networks.make_network()
    replies, check_deletion = [], Networks.check_deletion

    async def refer(*arguments: Any) -> None:
        await check_deletion(*arguments)
        replies.append((await client.put(reference_at(name))).status)

    monkeypatch.setattr(Networks, "check_deletion", refer)
    reply = await client.delete(f"{NETWORKS}/{name}")
    assert rejection(reply) == (403, "network is in use and cannot be deleted")
    assert replies == [201]
    assert not (await region_networks.store.get(Network, name)).is_deleting


@options(at_work=True)
async def test_a_network_takes_its_identity_with_it_also_if_whoever_deleted_it_did_not_come_to_that(
    region_networks: NetworksEnvironment,
) -> None:
    network = await region_networks.store.get(Network, await region_networks.make_network())
    await region_networks.rest()
    await region_networks.store.delete(Network, network.name, uid=network.uid)
    await region_networks.rest()
    assert (await region_networks.store.list(Identity)).items == []
    assert (await region_networks.store.list(Network)).items == []


async def test_a_server_keeps_its_network(region_networks: NetworksEnvironment) -> None:
    client, name = region_networks.networks.ask(TENANT), await region_networks.make_network()
    spec = ServerSpec(flavor_id="flavor", image=ServerImage(id="image"), networks=(ServerNetwork(id=name),))
    server = await region_networks.store.create(Server(metadata=Metadata(name="server"), spec=spec))
    reply = await client.delete(f"{NETWORKS}/{name}")
    assert rejection(reply) == (403, "network is in use and cannot be deleted")
    await region_networks.store.delete(Server, server.name, uid=server.uid)
    assert (await client.delete(f"{NETWORKS}/{name}")).status == 202


async def test_every_change_is_audited_in_its_organization(region_networks: NetworksEnvironment) -> None:
    client, name = region_networks.networks.ask(TENANT), await region_networks.make_network()
    path = f"{NETWORKS}/{name}"
    await client.put(path, update())
    await client.put(reference_at(name))
    await client.delete(reference_at(name))
    await client.delete(path)
    assert await region_networks.audited() == [
        ("POST", "networks", name, 201),
        ("PUT", "networks", name, 202),
        ("PUT", "networks", name, 201),
        ("DELETE", "networks", name, 204),
        ("DELETE", "networks", name, 202),
    ]
