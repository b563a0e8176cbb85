"""Servers over HTTP: who sees which, one by one and in lists."""

from remuda.access.principal import Principal
from remuda.quota.ports import ProjectRef
from remuda.region.kinds.servers import Server
from remuda.region.servers.routes import SERVERS
from remuda.resources.conventions import API_VERSION
from remuda.resources.conventions import REGION as REGION_LABEL
from remuda.store.objects import Metadata
from tests.kit.region.network_requests import NOT_FOUND, OUTSIDE, forbidden
from tests.kit.region.networks import ABSENT, OTHER_PROJECT
from tests.kit.region.resource_api import ORG, OTHER_ORG, OTHER_REGION, PROJECT, everywhere, member, rejection
from tests.kit.region.servers import PERMISSIONS, TENANT, ServersEnvironment, update, wanted

STRANGER = member("eve@example.com", OTHER_ORG, PERMISSIONS)
READER = member("bob@example.com", ORG, "region:servers R")
INSIDER = member("pat@example.com", ORG, "", a0000000_0000_4000_8000_00000000000a=PERMISSIONS)
EVERYBODY = everywhere("root@example.com", PERMISSIONS)


async def test_strangers_find_nothing_and_members_are_told_what_they_lack(region_servers: ServersEnvironment) -> None:
    path = f"{SERVERS}/{await region_servers.make_server(await region_servers.make_network())}"
    for who, answer in ((STRANGER, NOT_FOUND), (member("tom@example.com", ORG, "region:servers UD"), None)):
        client = region_servers.servers.ask(who)
        for reply in (await client.get(path), await client.put(path, update()), await client.delete(path)):
            assert rejection(reply) == (answer or forbidden("read", OUTSIDE, "region:servers"))
    reader = region_servers.servers.ask(READER)
    assert (await reader.get(path)).status == 200
    assert rejection(await reader.put(path, update())) == forbidden("update", OUTSIDE, "region:servers")
    assert rejection(await reader.delete(path)) == forbidden("delete", OUTSIDE, "region:servers")
    assert rejection(await reader.get(f"{SERVERS}/{ABSENT}")) == NOT_FOUND
    assert rejection(await reader.get(f"{SERVERS}/x"))[0] == 400
    assert (await region_servers.servers.ask(None).get(path)).status == 401


async def test_whoever_changes_a_server_may_read_its_network(region_servers: ServersEnvironment) -> None:
    path = f"{SERVERS}/{await region_servers.make_server(await region_servers.make_network())}"
    client = region_servers.servers.ask(member("tom@example.com", ORG, "region:servers RU"))
    assert rejection(await client.put(path, update())) == forbidden("read", OUTSIDE)


async def test_what_the_first_api_made_is_not_there(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    stored = await region_servers.stored(server)
    labels = {label: value for label, value in stored.metadata.labels.items() if label != API_VERSION}
    await region_servers.store.create(Server(metadata=Metadata(name=ABSENT, labels=labels), spec=stored.spec))
    client, path = region_servers.servers.ask(TENANT), f"{SERVERS}/{ABSENT}"
    replies = [await client.get(path), await client.put(path, update()), await client.delete(path)]
    replies += [await client.post(f"{path}/{verb}") for verb in ("start", "stop", "softreboot", "hardreboot")]
    replies += [await client.get(f"{path}/{what}") for what in ("sshkey", "consoleoutput", "consolesessions")]
    assert [rejection(reply) for reply in replies] == [NOT_FOUND] * len(replies)
    assert [each["metadata"]["id"] for each in (await client.get(SERVERS)).json] == [server]


async def test_m20_a_list_has_what_was_asked_for_and_may_be_seen_in_the_order_of_ids(
    region_servers: ServersEnvironment,
) -> None:
    region_servers.identity.add(ProjectRef(OTHER_ORG, PROJECT))
    network, second = await region_servers.make_network(), await region_servers.make_network()
    mine = [await region_servers.make_server(network, f"web-{n}") for n in range(3)]
    mine.append(await region_servers.make_server(second))
    beside = await region_servers.make_server(await region_servers.make_network(projectId=OTHER_PROJECT))
    away = await region_servers.make_network(EVERYBODY, organizationId=OTHER_ORG)
    theirs = (await region_servers.servers.ask(EVERYBODY).post(SERVERS, wanted(away))).json["metadata"]["id"]
    far = await _make_elsewhere(region_servers, mine[0])

    async def seen(who: Principal, *query: tuple[str, str]) -> list[str]:
        reply = await region_servers.servers.ask(who).get(SERVERS, query)
        assert reply.status == 200, reply
        return [each["metadata"]["id"] for each in reply.json]

    assert await seen(EVERYBODY) == sorted([*mine, beside, theirs, far])
    assert await seen(TENANT) == sorted([*mine, beside, far])
    assert await seen(INSIDER) == sorted([*mine, far])
    assert await seen(STRANGER) == [theirs]
    assert await seen(TENANT, ("networkID", second)) == [mine[-1]]
    assert await seen(TENANT, ("networkID", second), ("networkID", ABSENT)) == [mine[-1]]
    assert await seen(TENANT, ("projectID", OTHER_PROJECT)) == [beside]
    assert await seen(TENANT, ("regionID", OTHER_REGION)) == [far]
    assert await seen(EVERYBODY, ("organizationID", OTHER_ORG)) == [theirs]
    assert await seen(EVERYBODY, ("organizationID", OTHER_ORG), ("networkID", network)) == []
    assert await seen(member("ned@example.com", ORG)) == []


async def _make_elsewhere(region_servers: ServersEnvironment, like: str) -> str:
    """Store a server of another region beside one that was made."""
    found = await region_servers.stored(like)
    name = "f0000000-0000-4000-8000-00000000000f"
    labels = {**found.metadata.labels, REGION_LABEL: OTHER_REGION}
    await region_servers.store.create(Server(metadata=Metadata(name=name, labels=labels), spec=found.spec))
    return name


async def test_a_list_takes_all_tags_that_are_asked_for(region_servers: ServersEnvironment) -> None:
    network, client = await region_servers.make_network(), region_servers.servers.ask(TENANT)
    body = wanted(network)
    body["metadata"]["tags"] = [{"name": "team", "value": "a"}, {"name": "tier", "value": "1"}]
    name = (await client.post(SERVERS, body)).json["metadata"]["id"]
    await region_servers.make_server(network, "other")
    for query, found in (
        ([("tag", "team=a")], [name]),
        ([("tag", "team=a"), ("tag", "tier=1")], [name]),
        ([("tag", "team=a"), ("tag", "tier=2")], []),
    ):
        assert [each["metadata"]["id"] for each in (await client.get(SERVERS, query)).json] == found
    assert rejection(await client.get(SERVERS, [("tag", "team")])) == (400, "tag decode failed")


async def test_a_filter_by_what_is_hidden_shows_nothing_and_one_that_is_no_id_is_rejected(
    region_servers: ServersEnvironment,
) -> None:
    client = region_servers.servers.ask(TENANT)
    for hidden in (("organizationID", OTHER_ORG), ("projectID", ABSENT)):
        reply = await client.get(SERVERS, [hidden])
        assert (reply.status, reply.json) == (200, [])
    for name in ("organizationID", "projectID", "regionID", "networkID"):
        assert rejection(await client.get(SERVERS, [(name, "x" * 70)]))[0] == 400
