"""Networks over HTTP: who sees which, one by one and in lists."""

from remuda.access.principal import Principal
from remuda.quota.ports import ProjectRef
from remuda.region.kinds.networks import Network
from remuda.region.networks.routes import NETWORKS
from remuda.resources.conventions import API_VERSION, CONTROLLER_FINALIZER
from remuda.resources.conventions import REGION as REGION_LABEL
from remuda.store.objects import Metadata
from tests.kit.region.network_requests import (
    INSIDER,
    NOT_FOUND,
    OUTSIDE,
    READER,
    STRANGER,
    forbidden,
    reference_at,
    update,
)
from tests.kit.region.networks import ABSENT, OTHER_PROJECT, TENANT, NetworksEnvironment, network
from tests.kit.region.resource_api import ORG, OTHER_ORG, OTHER_REGION, PROJECT, everywhere, member, rejection


async def test_strangers_find_nothing_and_members_are_told_what_they_lack(region_networks: NetworksEnvironment) -> None:
    name = await region_networks.make_network()
    path = f"{NETWORKS}/{name}"
    for client, body in ((region_networks.networks.ask(STRANGER), update()),):
        assert rejection(await client.get(path)) == NOT_FOUND
        assert rejection(await client.put(path, body)) == NOT_FOUND
        assert rejection(await client.delete(path)) == NOT_FOUND
        assert rejection(await client.put(reference_at(name))) == NOT_FOUND
        assert rejection(await client.delete(reference_at(name))) == NOT_FOUND
    member_only = region_networks.networks.ask(member("tom@example.com", ORG, "region:networks:v2 UD"))
    for reply in (
        await member_only.get(path),
        await member_only.put(path, update()),
        await member_only.delete(path),
    ):
        assert rejection(reply) == forbidden("read", OUTSIDE)
    reader = region_networks.networks.ask(READER)
    assert (await reader.get(path)).status == 200
    assert rejection(await reader.put(path, update())) == forbidden("update", OUTSIDE)
    assert rejection(await reader.delete(path)) == forbidden("delete", OUTSIDE)
    references = "region:networks:v2/references"
    assert rejection(await reader.put(reference_at(name))) == forbidden("create", OUTSIDE, references)
    assert rejection(await reader.delete(reference_at(name))) == forbidden("delete", OUTSIDE, references)
    assert rejection(await reader.get(f"{NETWORKS}/{ABSENT}")) == NOT_FOUND


async def test_what_the_first_api_made_is_not_there(region_networks: NetworksEnvironment) -> None:
    name = await region_networks.make_network()
    stored = await region_networks.store.get(Network, name)
    labels = {label: value for label, value in stored.metadata.labels.items() if label != API_VERSION}
    old = Network(metadata=Metadata(name=ABSENT, labels=labels), spec=stored.spec)
    await region_networks.store.create(old)
    client, path = region_networks.networks.ask(TENANT), f"{NETWORKS}/{ABSENT}"
    replies = (await client.get(path), await client.put(path, update()), await client.delete(path))
    assert [rejection(reply) for reply in replies] == [NOT_FOUND] * 3
    assert [each["metadata"]["id"] for each in (await client.get(NETWORKS)).json] == [name]


# Lists.


async def test_m20_a_list_has_what_was_asked_for_and_may_be_seen_in_the_order_of_ids(
    region_networks: NetworksEnvironment,
) -> None:
    region_networks.identity.add(ProjectRef(OTHER_ORG, PROJECT))
    everybody = everywhere("root@example.com", "region:networks:v2 CRUD, region:regions R")
    mine = [await region_networks.make_network() for _ in range(2)]
    theirs = await region_networks.make_network(everybody, organizationId=OTHER_ORG)
    beside = await region_networks.make_network(projectId=OTHER_PROJECT)
    hidden = await _make_elsewhere(region_networks, mine[0])

    async def seen(who: Principal, *query: tuple[str, str]) -> list[str]:
        reply = await region_networks.networks.ask(who).get(NETWORKS, query)
        assert reply.status == 200, reply
        return [each["metadata"]["id"] for each in reply.json]

    assert await seen(everybody) == sorted([*mine, theirs, beside, hidden])
    assert await seen(TENANT) == sorted([*mine, beside, hidden])
    assert await seen(INSIDER) == sorted([*mine, hidden])
    assert await seen(STRANGER) == [theirs]
    assert await seen(TENANT, ("projectID", OTHER_PROJECT)) == [beside]
    assert await seen(TENANT, ("projectID", OTHER_PROJECT), ("projectID", PROJECT)) == await seen(TENANT)
    assert await seen(TENANT, ("regionID", OTHER_REGION)) == [hidden]
    assert await seen(TENANT, ("regionID", ABSENT)) == []
    assert await seen(everybody, ("organizationID", OTHER_ORG)) == [theirs]
    assert await seen(everybody, ("organizationID", OTHER_ORG), ("projectID", OTHER_PROJECT)) == []


async def _make_elsewhere(region_networks: NetworksEnvironment, like: str) -> str:
    """Store a network of another region beside one that was made."""
    found = await region_networks.store.get(Network, like)
    name = "f0000000-0000-4000-8000-00000000000f"
    labels = {**found.metadata.labels, REGION_LABEL: OTHER_REGION}
    metadata = Metadata(name=name, labels=labels, finalizers=(CONTROLLER_FINALIZER,))
    await region_networks.store.create(Network(metadata=metadata, spec=found.spec))
    return name


async def test_a_list_takes_all_tags_that_are_asked_for(region_networks: NetworksEnvironment) -> None:
    client = region_networks.networks.ask(TENANT)
    wanted = network()
    wanted["metadata"]["tags"] = [{"name": "team", "value": "a"}, {"name": "tier", "value": "1"}]
    name = (await client.post(NETWORKS, wanted)).json["metadata"]["id"]
    await region_networks.make_network()
    for query, found in (
        ([("tag", "team=a")], [name]),
        ([("tag", "team=a"), ("tag", "tier=1")], [name]),
        ([("tag", "team=a"), ("tag", "tier=2")], []),
    ):
        assert [each["metadata"]["id"] for each in (await client.get(NETWORKS, query)).json] == found
    assert rejection(await client.get(NETWORKS, [("tag", "team")])) == (400, "tag decode failed")


async def test_a_filter_by_what_is_hidden_shows_nothing_and_one_that_is_no_id_is_rejected(
    region_networks: NetworksEnvironment,
) -> None:
    client = region_networks.networks.ask(TENANT)
    for hidden in (("organizationID", OTHER_ORG), ("projectID", ABSENT)):
        reply = await client.get(NETWORKS, [hidden])
        assert (reply.status, reply.json) == (200, [])
    for name in ("organizationID", "projectID", "regionID"):
        status, sentence = rejection(await client.get(NETWORKS, [(name, "x" * 70)]))
        assert status == 400
        assert sentence.startswith(f'invalid path/query element: "{name}"')
