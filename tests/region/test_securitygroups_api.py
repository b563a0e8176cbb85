"""Security groups over HTTP: what may be asked of them, in which order that is validated, and how it is told."""

import dataclasses
from typing import Any

import pytest

from remuda.access.principal import Principal
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import PortRange, Rule, RulePort, SecurityGroup
from remuda.region.kinds.servers import Server, ServerGroup, ServerImage, ServerNetwork, ServerSpec
from remuda.region.networks.routes import NETWORKS
from remuda.region.securitygroups.routes import SECURITY_GROUPS
from remuda.resources.conventions import API_VERSION, CONTROLLER_FINALIZER, IDENTITY
from remuda.resources.conventions import NETWORK as NETWORK_LABEL
from remuda.resources.conventions import REGION as REGION_LABEL
from remuda.store.objects import Metadata
from tests.kit.region.network_requests import NOT_FOUND, OUTSIDE, make_group
from tests.kit.region.networks import ABSENT, OTHER_PROJECT, TENANT, NetworksEnvironment
from tests.kit.region.resource_api import ORG, OTHER_ORG, PROJECT, REGION, member, rejection

SSH = {"direction": "ingress", "protocol": "tcp", "port": 22, "prefix": "10.0.0.0/8"}
STRANGER = member("eve@example.com", OTHER_ORG, "region:securitygroups:v2 CRUD, region:networks:v2 R")
ENDPOINT = "region:securitygroups:v2"


def group(network: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "sg"}, "spec": {"networkId": network, "rules": list(rules)}}


def update(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "sg"}, "spec": {"rules": list(rules)}}


def forbidden(verb: str, why: str = OUTSIDE, endpoint: str = ENDPOINT) -> tuple[int, str]:
    return 403, f"operation is not allowed by rbac: operation '{verb}' on endpoint '{endpoint}'{why}"


async def test_a_new_group_is_where_its_network_is_and_belongs_to_it(region_networks: NetworksEnvironment) -> None:
    network = await region_networks.make_network()
    client = region_networks.groups.ask(TENANT)
    reply = await client.post(SECURITY_GROUPS, group(network, SSH))
    assert reply.status == 201
    metadata = reply.json["metadata"]
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("pending", "unknown")
    assert (metadata["organizationId"], metadata["projectId"]) == (ORG, PROJECT)
    assert metadata["createdBy"] == "ann@example.com"
    assert reply.json["spec"] == {"rules": [SSH]}
    assert reply.json["status"] == {"regionId": REGION, "networkId": network}
    read = await client.get(f"{SECURITY_GROUPS}/{metadata['id']}")
    assert (read.status, read.json) == (200, reply.json)
    stored, parent = (
        await region_networks.store.get(SecurityGroup, metadata["id"]),
        await region_networks.store.get(Network, network),
    )
    assert [owner.uid for owner in stored.metadata.owner_references] == [parent.uid]
    assert CONTROLLER_FINALIZER in stored.metadata.finalizers
    labels = stored.metadata.labels
    assert (labels[NETWORK_LABEL], labels[REGION_LABEL], labels[API_VERSION]) == (network, REGION, "2")
    assert labels[IDENTITY] == parent.metadata.labels[IDENTITY]


async def test_the_same_request_under_its_key_makes_one_group(region_networks: NetworksEnvironment) -> None:
    network = await region_networks.make_network()
    client = region_networks.groups.ask(TENANT)
    replies = [await client.post(SECURITY_GROUPS, group(network), idempotency_key="once") for _ in range(2)]
    assert [reply.status for reply in replies] == [201, 201]
    assert replies[0].json == replies[1].json
    assert len((await region_networks.store.list(SecurityGroup)).items) == 1


# Rules.

STORED: list[tuple[str, dict[str, Any], Rule, dict[str, Any]]] = [
    (
        "one port",
        SSH,
        Rule(direction="ingress", protocol="tcp", port=RulePort(number=22), cidr="10.0.0.0/8"),
        SSH,
    ),
    (
        "a range",
        {"direction": "egress", "protocol": "udp", "port": 1, "portMax": 65535},
        Rule(direction="egress", protocol="udp", port=RulePort(range=PortRange(start=1, end=65535))),
        {"direction": "egress", "protocol": "udp", "port": 1, "portMax": 65535},
    ),
    (
        "bits of a host",
        {"direction": "ingress", "protocol": "any", "prefix": "10.1.2.3/16"},
        Rule(direction="ingress", protocol="any", cidr="10.1.0.0/16"),
        {"direction": "ingress", "protocol": "any", "prefix": "10.1.0.0/16"},
    ),
    (
        "a last port without a first",
        {"direction": "ingress", "protocol": "tcp", "portMax": 90},
        Rule(direction="ingress", protocol="tcp"),
        {"direction": "ingress", "protocol": "tcp"},
    ),
    (
        "a last port where there are none",
        {"direction": "ingress", "protocol": "vrrp", "portMax": 90},
        Rule(direction="ingress", protocol="vrrp"),
        {"direction": "ingress", "protocol": "vrrp"},
    ),
]


@pytest.mark.parametrize(("sent", "stored", "read"), [row[1:] for row in STORED], ids=[row[0] for row in STORED])
async def test_a_rule_is_stored_and_read_like_this(
    region_networks: NetworksEnvironment, sent: dict[str, Any], stored: Rule, read: dict[str, Any]
) -> None:
    name = await make_group(region_networks, await region_networks.make_network(), sent, sent)
    assert (await region_networks.store.get(SecurityGroup, name)).spec.rules == (stored, stored), (
        "however often it is there"
    )
    reply = await region_networks.groups.ask(TENANT).get(f"{SECURITY_GROUPS}/{name}")
    assert reply.json["spec"]["rules"] == [read, read]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("no prefix", {"prefix": "pony"}, "unable to parse prefix"),
    ("an empty prefix", {"prefix": ""}, "unable to parse prefix"),
    ("an address", {"prefix": "10.0.0.1"}, "unable to parse prefix"),
    ("IPv6", {"prefix": "fd00::/8"}, "unable to parse prefix, IPv6 is not supported"),
    ("a port of any", {"protocol": "any", "port": 1}, "rule specified ports for a layer 3 protocol"),
    ("a port of icmp", {"protocol": "icmp", "port": 1}, "rule specified ports for a layer 3 protocol"),
    ("ports of vrrp", {"protocol": "vrrp", "port": 1, "portMax": 2}, "rule specified ports for a layer 3 protocol"),
    ("a range of one", {"port": 5, "portMax": 5}, "rule must have a range where start < end"),
    ("a range backwards", {"port": 6, "portMax": 5}, "rule must have a range where start < end"),
]


@pytest.mark.parametrize(("rule", "sentence"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_what_no_rule_can_be_is_refused_when_made_and_when_changed(
    region_networks: NetworksEnvironment, rule: dict[str, Any], sentence: str
) -> None:
    network = await region_networks.make_network()
    name = await make_group(region_networks, network)
    before = await region_networks.versions()
    bad = {"direction": "ingress", "protocol": "tcp"} | rule
    client = region_networks.groups.ask(TENANT)
    assert rejection(await client.post(SECURITY_GROUPS, group(network, SSH, bad))) == (400, sentence)
    assert rejection(await client.put(f"{SECURITY_GROUPS}/{name}", update(SSH, bad))) == (400, sentence)
    assert await region_networks.versions() == before


@pytest.mark.parametrize(
    "rule",
    [{"direction": "up"}, {"protocol": "sctp"}, {"port": 0}, {"port": 65536}, {"port": 1, "portMax": 70000}],
    ids=["direction", "protocol", "port 0", "port 65536", "last port"],
)
async def test_what_does_not_fit_the_schema_is_refused(
    region_networks: NetworksEnvironment, rule: dict[str, Any]
) -> None:
    network = await region_networks.make_network()
    bad = {"direction": "ingress", "protocol": "tcp"} | rule
    status, sentence = rejection(await region_networks.groups.ask(TENANT).post(SECURITY_GROUPS, group(network, bad)))
    assert status == 400
    assert list(rule)[-1] in sentence
    assert not (await region_networks.store.list(SecurityGroup)).items


# Who may do what.


async def test_a_network_that_is_not_there_or_cannot_be_seen_gets_no_group(
    region_networks: NetworksEnvironment,
) -> None:
    network = await region_networks.make_network()
    assert rejection(await region_networks.groups.ask(TENANT).post(SECURITY_GROUPS, group(ABSENT))) == NOT_FOUND
    assert rejection(await region_networks.groups.ask(STRANGER).post(SECURITY_GROUPS, group(network))) == NOT_FOUND
    blind = member("tom@example.com", ORG, "region:securitygroups:v2 CRUD")
    reply = await region_networks.groups.ask(blind).post(SECURITY_GROUPS, group(network))
    assert rejection(reply) == forbidden("read", endpoint="region:networks:v2")
    reader = member("bob@example.com", ORG, "region:securitygroups:v2 R, region:networks:v2 R")
    reply = await region_networks.groups.ask(reader).post(SECURITY_GROUPS, group(network, {**SSH, "prefix": "x"}))
    assert rejection(reply) == forbidden("create"), "permissions come first"
    assert not (await region_networks.store.list(SecurityGroup)).items


async def test_a_network_of_the_first_api_or_that_goes_gets_no_group(region_networks: NetworksEnvironment) -> None:
    network = await region_networks.make_network()
    stored = await region_networks.store.get(Network, network)
    labels = {label: value for label, value in stored.metadata.labels.items() if label != API_VERSION}
    await region_networks.store.create(Network(metadata=Metadata(name=ABSENT, labels=labels), spec=stored.spec))
    client = region_networks.groups.ask(TENANT)
    assert rejection(await client.post(SECURITY_GROUPS, group(ABSENT))) == NOT_FOUND
    assert (await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{network}")).status == 202
    assert rejection(await client.post(SECURITY_GROUPS, group(network))) == (400, "network is being deleted")


async def test_a_region_without_security_groups_is_not_valid_here(region_networks: NetworksEnvironment) -> None:
    network = await region_networks.make_network()
    region_networks.providers[REGION] = dataclasses.replace(region_networks.provider, security_groups=None)
    reply = await region_networks.groups.ask(TENANT).post(SECURITY_GROUPS, group(network))
    assert rejection(reply) == (400, "region is not valid for this endpoint")


async def test_strangers_find_nothing_and_members_are_told_what_they_lack(region_networks: NetworksEnvironment) -> None:
    path = f"{SECURITY_GROUPS}/{await make_group(region_networks, await region_networks.make_network())}"
    stranger = region_networks.groups.ask(STRANGER)
    for reply in (await stranger.get(path), await stranger.put(path, update()), await stranger.delete(path)):
        assert rejection(reply) == NOT_FOUND
    reader = region_networks.groups.ask(
        member("bob@example.com", ORG, "region:securitygroups:v2 R, region:networks:v2 R")
    )
    assert (await reader.get(path)).status == 200
    assert rejection(await reader.put(path, update())) == forbidden("update")
    assert rejection(await reader.delete(path)) == forbidden("delete")
    assert rejection(await reader.get(f"{SECURITY_GROUPS}/{ABSENT}")) == NOT_FOUND


async def test_a_change_takes_the_right_to_change_and_to_read_the_network_not_the_right_to_delete(
    region_networks: NetworksEnvironment,
) -> None:
    path = f"{SECURITY_GROUPS}/{await make_group(region_networks, await region_networks.make_network())}"
    changer = member("cho@example.com", ORG, "region:securitygroups:v2 RU, region:networks:v2 R")
    assert (await region_networks.groups.ask(changer).put(path, update(SSH))).status == 202
    remover = member("rex@example.com", ORG, "region:securitygroups:v2 RD, region:networks:v2 R")
    assert rejection(await region_networks.groups.ask(remover).put(path, update())) == forbidden("update")
    blind = member("tom@example.com", ORG, "region:securitygroups:v2 RU")
    reply = await region_networks.groups.ask(blind).put(path, update())
    assert rejection(reply) == forbidden("read", endpoint="region:networks:v2")


async def test_what_the_first_api_made_is_not_there(region_networks: NetworksEnvironment) -> None:
    name = await make_group(region_networks, await region_networks.make_network())
    stored = await region_networks.store.get(SecurityGroup, name)
    labels = {label: value for label, value in stored.metadata.labels.items() if label != API_VERSION}
    await region_networks.store.create(SecurityGroup(metadata=Metadata(name=ABSENT, labels=labels), spec=stored.spec))
    client, path = region_networks.groups.ask(TENANT), f"{SECURITY_GROUPS}/{ABSENT}"
    for reply in (await client.get(path), await client.put(path, update()), await client.delete(path)):
        assert rejection(reply) == NOT_FOUND
    assert [each["metadata"]["id"] for each in (await client.get(SECURITY_GROUPS)).json] == [name]


async def test_a_list_has_what_was_asked_for_and_may_be_seen(region_networks: NetworksEnvironment) -> None:
    farm, there = await region_networks.make_network(), await region_networks.make_network(projectId=OTHER_PROJECT)
    mine, beside = await make_group(region_networks, farm), await make_group(region_networks, there)
    inside = "region:securitygroups:v2 R"
    insider = member("pat@example.com", ORG, "", a0000000_0000_4000_8000_00000000000a=inside)

    async def seen(who: Principal, *query: tuple[str, str]) -> list[str]:
        reply = await region_networks.groups.ask(who).get(SECURITY_GROUPS, query)
        assert reply.status == 200, reply
        return [each["metadata"]["id"] for each in reply.json]

    assert await seen(TENANT) == sorted([mine, beside])
    assert await seen(insider) == [mine]
    assert await seen(STRANGER) == []
    assert await seen(TENANT, ("networkID", there)) == [beside]
    assert await seen(TENANT, ("networkID", there), ("networkID", farm)) == sorted([mine, beside])
    assert await seen(TENANT, ("networkID", ABSENT)) == []
    assert await seen(TENANT, ("regionID", REGION), ("projectID", PROJECT)) == [mine]


# Changes, and the end.


async def test_a_put_replaces_all_that_can_be_changed_and_says_who_did(region_networks: NetworksEnvironment) -> None:
    wanted = group(await region_networks.make_network(), SSH)
    wanted["metadata"] |= {"description": "old", "tags": [{"name": "a", "value": "1"}]}
    made = (await region_networks.groups.ask(TENANT).post(SECURITY_GROUPS, wanted)).json
    path = f"{SECURITY_GROUPS}/{made['metadata']['id']}"
    await region_networks.world.clock.sleep(5)
    changer = member("cho@example.com", ORG, "region:securitygroups:v2 RU, region:networks:v2 R")
    body = {"metadata": {"name": "new"}, "spec": {"rules": [], "networkId": ABSENT}}
    reply = await region_networks.groups.ask(changer).put(path, body)
    assert reply.status == 202
    metadata = reply.json["metadata"]
    assert metadata["name"] == "new"
    assert not {"description", "tags"} & metadata.keys()
    assert (metadata["createdBy"], metadata["modifiedBy"]) == ("ann@example.com", "cho@example.com")
    assert metadata["modifiedTime"] > metadata["creationTime"] == made["metadata"]["creationTime"]
    assert reply.json["spec"] == {"rules": []}
    assert reply.json["status"] == made["status"], "its network is settled"


async def test_tags_of_a_service_are_refused_from_others_and_outlive_their_changes(
    region_networks: NetworksEnvironment,
) -> None:
    network = await region_networks.make_network()
    tags = [{"name": "compute.unikorn-cloud.org/cluster", "value": "x"}]
    wanted = group(network)
    wanted["metadata"]["tags"] = tags
    status, sentence = rejection(await region_networks.groups.ask(TENANT).post(SECURITY_GROUPS, wanted))
    assert status == 422
    assert "metadata.tags" in sentence
    service = Principal(subject="unikorn-compute", type="system", access=TENANT.access)
    reply = await region_networks.groups.ask(service).post(SECURITY_GROUPS, wanted)
    assert reply.status == 201
    path = f"{SECURITY_GROUPS}/{reply.json['metadata']['id']}"
    reply = await region_networks.groups.ask(TENANT).put(path, update(SSH))
    assert reply.json["metadata"]["tags"] == tags


async def test_a_write_with_an_old_tag_is_refused_and_one_with_the_right_tag_goes_through(
    region_networks: NetworksEnvironment,
) -> None:
    client = region_networks.groups.ask(TENANT)
    path = f"{SECURITY_GROUPS}/{await make_group(region_networks, await region_networks.make_network())}"
    old = (await client.get(path)).headers["etag"]
    assert (await client.put(path, update(SSH), if_match=old)).status == 202
    assert (await client.put(path, update(), if_match=old)).status == 412
    assert (await client.delete(path, if_match=old)).status == 412
    new = (await client.get(path)).headers["etag"]
    assert (await client.delete(path, if_match=new)).status == 202


async def test_a_group_goes_once_and_cannot_be_changed_while_it_does(region_networks: NetworksEnvironment) -> None:
    client = region_networks.groups.ask(TENANT)
    path = f"{SECURITY_GROUPS}/{await make_group(region_networks, await region_networks.make_network())}"
    reply = await client.delete(path)
    assert (reply.status, reply.body) == (202, b"")
    assert (await client.get(path)).json["metadata"]["provisioningStatus"] == "deprovisioning"
    before = await region_networks.versions()
    assert (await client.delete(path)).status == 202
    assert rejection(await client.put(path, update())) == (400, "security group is being deleted")
    assert await region_networks.versions() == before


async def test_a_server_keeps_its_groups(region_networks: NetworksEnvironment) -> None:
    network = await region_networks.make_network()
    name, client = await make_group(region_networks, network), region_networks.groups.ask(TENANT)
    spec = ServerSpec(
        flavor_id="flavor",
        image=ServerImage(id="image"),
        networks=(ServerNetwork(id=network),),
        security_groups=(ServerGroup(id=name),),
    )
    server = await region_networks.store.create(Server(metadata=Metadata(name="server"), spec=spec))
    reply = await client.delete(f"{SECURITY_GROUPS}/{name}")
    assert rejection(reply) == (403, "security group is in use and cannot be deleted")
    assert not (await region_networks.store.get(SecurityGroup, name)).is_deleting
    other = f"{SECURITY_GROUPS}/{await make_group(region_networks, network)}"
    outdated = (await client.get(other)).headers["etag"]
    reply = await client.delete(f"{SECURITY_GROUPS}/{name}", if_match=outdated)
    assert reply.status == 412, "If-Match is compared before the group is found to be in use"
    await region_networks.store.delete(Server, server.name, uid=server.uid)
    assert (await client.delete(f"{SECURITY_GROUPS}/{name}")).status == 202


async def test_every_change_is_audited_in_its_organization(region_networks: NetworksEnvironment) -> None:
    network = await region_networks.make_network()
    name, client = await make_group(region_networks, network), region_networks.groups.ask(TENANT)
    await client.put(f"{SECURITY_GROUPS}/{name}", update())
    await client.delete(f"{SECURITY_GROUPS}/{name}")
    assert (await region_networks.audited())[1:] == [
        ("POST", "securitygroups", name, 201),
        ("PUT", "securitygroups", name, 202),
        ("DELETE", "securitygroups", name, 202),
    ]
