"""Networks over HTTP: what can be changed of one, what keeps it, and how it goes."""

from typing import Any

import pytest

from remuda.region.deletion import refuse_if_used
from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.servers import Server, ServerImage, ServerNetwork, ServerSpec
from remuda.region.networks import service
from remuda.region.networks.routes import NETWORKS
from remuda.store.objects import Metadata
from tests.region.networks_asking import REFERENCE, reference_at, update
from tests.region.networks_ground import TENANT, Ground, network, on_ground
from tests.region.room import ORG, OTHER_REGION, member, refusal


def test_a_put_replaces_all_that_can_be_changed_and_says_who_did() -> None:
    async def scenario(ground: Ground) -> None:
        client = ground.networks.ask(TENANT)
        wanted = network(routes=[{"prefix": "1.0.0.0/8", "nexthop": "10.0.0.9"}], reservations={"prefixLength": 26})
        wanted["metadata"] |= {"description": "old", "tags": [{"name": "a", "value": "1"}]}
        made = (await client.post(NETWORKS, wanted)).json
        path = f"{NETWORKS}/{made['metadata']['id']}"
        await ground.world.clock.sleep(5)
        changer = member("cho@example.com", ORG, "region:networks:v2 RU")
        body = {
            "metadata": {"name": "new"},
            "spec": {"dnsNameservers": ["1.1.1.1"], "prefix": "10.9.0.0/16", "regionId": OTHER_REGION},
        }
        reply = await ground.networks.ask(changer).put(path, body)
        assert reply.status == 202
        metadata = reply.json["metadata"]
        assert metadata["name"] == "new"
        assert not {"description", "tags"} & metadata.keys()
        assert (metadata["createdBy"], metadata["modifiedBy"]) == ("ann@example.com", "cho@example.com")
        assert metadata["modifiedTime"] > metadata["creationTime"] == made["metadata"]["creationTime"]
        assert reply.json["spec"] == {"dnsNameservers": ["1.1.1.1"]}
        assert reply.json["status"] == made["status"], "prefix, region and reservations are settled"
        assert (await client.get(path)).json == reply.json

    on_ground(scenario)


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
def test_a_put_of_what_no_network_can_become_changes_nothing(spec: dict[str, Any], sentence: str) -> None:
    async def scenario(ground: Ground) -> None:
        name = await ground.make_network()
        before = await ground.versions()
        reply = await ground.networks.ask(TENANT).put(f"{NETWORKS}/{name}", update(**spec))
        assert refusal(reply) == (400, sentence)
        assert await ground.versions() == before

    on_ground(scenario)


def test_m26_a_write_with_an_old_tag_is_refused_and_one_with_the_right_tag_goes_through() -> None:
    async def scenario(ground: Ground) -> None:
        client, path = ground.networks.ask(TENANT), f"{NETWORKS}/{await ground.make_network()}"
        old = (await client.get(path)).headers["etag"]
        assert (await client.put(path, update(), if_match=old)).status == 202
        assert (await client.put(path, update(), if_match=old)).status == 412
        assert (await client.delete(path, if_match=old)).status == 412
        new = (await client.get(path)).headers["etag"]
        assert (await client.delete(path, if_match=new)).status == 202

    on_ground(scenario)


# The end, and what keeps it off.


def test_a_network_goes_with_its_identity_and_says_so_while_it_does() -> None:
    async def scenario(ground: Ground) -> None:
        client, name = ground.networks.ask(TENANT), await ground.make_network()
        path = f"{NETWORKS}/{name}"
        reply = await client.delete(path)
        assert (reply.status, reply.body) == (202, b"")
        (hidden,) = (await ground.store.list(Identity)).items
        assert hidden.is_marked
        metadata = (await client.get(path)).json["metadata"]
        assert metadata["provisioningStatus"] == "deprovisioning"
        assert metadata["deletionTime"]
        assert [each["metadata"]["id"] for each in (await client.get(NETWORKS)).json] == [name]
        before = await ground.versions()
        assert (await client.delete(path)).status == 202
        assert await ground.versions() == before
        assert refusal(await client.put(path, update())) == (400, "network is being deleted")
        reply = await client.put(reference_at(name))
        assert refusal(reply) == (400, "unable to add reference, resource is being deleted")

    on_ground(scenario)


def test_m21_a_reference_keeps_a_network_until_it_is_taken_off() -> None:
    async def scenario(ground: Ground) -> None:
        client, name = ground.networks.ask(TENANT), await ground.make_network()
        for _ in range(2):
            reply = await client.put(reference_at(name))
            assert (reply.status, reply.body) == (201, b"")
        stored = await ground.store.get(Network, name)
        assert stored.metadata.finalizers.count(REFERENCE) == 1
        reply = await client.delete(f"{NETWORKS}/{name}")
        assert refusal(reply) == (403, "network is in use and cannot be deleted")
        assert not (await ground.store.get(Network, name)).is_marked
        for _ in range(2):
            reply = await client.delete(reference_at(name))
            assert (reply.status, reply.body) == (204, b"")
        assert (await client.delete(f"{NETWORKS}/{name}")).status == 202

    on_ground(scenario)


@pytest.mark.parametrize("reference", ["unikorn", "foregroundDeletion", "remuda/in-use", "servers/x", "a.b/"])
def test_what_is_no_reference_can_neither_be_put_nor_taken_off(reference: str) -> None:
    async def scenario(ground: Ground) -> None:
        client, name = ground.networks.ask(TENANT), await ground.make_network()
        before = await ground.versions()
        for reply in (
            await client.put(reference_at(name, reference)),
            await client.delete(reference_at(name, reference)),
        ):
            assert refusal(reply) == (422, "reference is not a resource's: write it as plural.group/id.")
        assert await ground.versions() == before

    on_ground(scenario)


@pytest.mark.parametrize("reference", ["servers.example/" + "x" * 200, "servers.example/a b", "servers.example/ä"])
def test_a_reference_that_no_backend_can_keep_is_refused_not_stored(reference: str) -> None:
    async def scenario(ground: Ground) -> None:
        client, name = ground.networks.ask(TENANT), await ground.make_network()
        before = await ground.versions()
        path = reference_at(name, reference.replace(" ", "%20"))
        put, taken_off = await client.put(path), await client.delete(path)
        assert refusal(put) == refusal(taken_off)
        assert put.status in {400, 422}
        assert await ground.versions() == before

    on_ground(scenario)


def test_m26_a_reference_that_comes_at_the_moment_of_a_deletion_keeps_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(ground: Ground) -> None:
        client, name = ground.networks.ask(TENANT), await ground.make_network()
        replies = []

        async def refer(*arguments: Any) -> None:
            await refuse_if_used(*arguments)
            replies.append((await client.put(reference_at(name))).status)

        monkeypatch.setattr(service, "refuse_if_used", refer)
        reply = await client.delete(f"{NETWORKS}/{name}")
        assert refusal(reply) == (403, "network is in use and cannot be deleted")
        assert replies == [201]
        assert not (await ground.store.get(Network, name)).is_marked

    on_ground(scenario)


def test_a_network_takes_its_identity_with_it_also_if_whoever_deleted_it_did_not_come_to_that() -> None:
    async def scenario(ground: Ground) -> None:
        network = await ground.store.get(Network, await ground.make_network())
        await ground.rest()
        await ground.store.delete(Network, network.name, uid=network.uid)
        await ground.rest()
        assert (await ground.store.list(Identity)).items == []
        assert (await ground.store.list(Network)).items == []

    on_ground(scenario, at_work=True)


def test_a_server_keeps_its_network() -> None:
    async def scenario(ground: Ground) -> None:
        client, name = ground.networks.ask(TENANT), await ground.make_network()
        spec = ServerSpec(flavor_id="flavor", image=ServerImage(id="image"), networks=(ServerNetwork(id=name),))
        server = await ground.store.create(Server(metadata=Metadata(name="server"), spec=spec))
        reply = await client.delete(f"{NETWORKS}/{name}")
        assert refusal(reply) == (403, "network is in use and cannot be deleted")
        await ground.store.delete(Server, server.name, uid=server.uid)
        assert (await client.delete(f"{NETWORKS}/{name}")).status == 202

    on_ground(scenario)


def test_every_change_is_witnessed_in_its_organization() -> None:
    async def scenario(ground: Ground) -> None:
        client, name = ground.networks.ask(TENANT), await ground.make_network()
        path = f"{NETWORKS}/{name}"
        await client.put(path, update())
        await client.put(reference_at(name))
        await client.delete(reference_at(name))
        await client.delete(path)
        assert await ground.audited() == [
            ("POST", "networks", name, 201),
            ("PUT", "networks", name, 202),
            ("PUT", "networks", name, 201),
            ("DELETE", "networks", name, 204),
            ("DELETE", "networks", name, 202),
        ]

    on_ground(scenario)
