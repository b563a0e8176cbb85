"""Load balancers over HTTP: who sees which of them."""

from typing import Any

from remuda.region.loadbalancers.routes import LOAD_BALANCERS
from tests.kit.environment import options
from tests.kit.region.loadbalancer_requests import INSIDER, NOBODY, READER, STRANGER, forbidden, update, wanted
from tests.kit.region.resource_api import ORG, OTHER_ORG, REGION, everywhere, member, rejection
from tests.kit.region.storage import ABSENT, OTHER_PROJECT, TENANT, StorageEnvironment


@options(at_work=False)
async def test_a_load_balancer_is_not_there_for_strangers_and_closed_to_those_without_permissions(
    region_storage: StorageEnvironment,
) -> None:
    network = await region_storage.make_network()
    path = f"{LOAD_BALANCERS}/{await region_storage.make_balancer(wanted(network))}"
    stranger, nobody, reader = (region_storage.balancers.ask(who) for who in (STRANGER, NOBODY, READER))
    for reply in (await stranger.get(path), await stranger.put(path, update()), await stranger.delete(path)):
        assert reply.status == 404
    outside = " — project is not in this principal's accessible set"
    assert rejection(await nobody.get(path)) == forbidden("read", outside)
    assert rejection(await nobody.delete(path)) == forbidden("read", outside)
    assert (await reader.get(path)).status == 200
    assert rejection(await reader.put(path, update())) == forbidden("update", outside)
    assert rejection(await reader.delete(path)) == forbidden("delete", outside)
    blind = member("tim@example.com", ORG, "region:loadbalancers:v2 CRUD")
    assert rejection(await region_storage.balancers.ask(blind).put(path, update())) == forbidden(
        "read", outside, "networks:v2"
    )
    assert (await region_storage.balancers.ask(None).get(path)).status == 401
    status, sentence = rejection(await region_storage.balancers.ask(None).get(f"{LOAD_BALANCERS}/x"))
    assert (status, sentence.partition(":")[0]) == (400, "invalid path/query element")


@options(at_work=False)
async def test_a_list_has_what_the_caller_may_see_in_the_order_of_ids_and_by_filter(
    region_storage: StorageEnvironment,
) -> None:
    one = await region_storage.make_network()
    two = await region_storage.make_network(projectId=OTHER_PROJECT)
    tagged = wanted(one) | {"metadata": {"name": "lb", "tags": [{"name": "a", "value": "1"}]}}
    first, second = await region_storage.make_balancer(tagged), await region_storage.make_balancer(wanted(one))
    third = await region_storage.make_balancer(wanted(two))

    async def listed(who: Any = TENANT, *query: tuple[str, str]) -> list[str]:
        reply = await region_storage.balancers.ask(who).get(LOAD_BALANCERS, query)
        assert reply.status == 200, reply
        return [each["metadata"]["id"] for each in reply.json]

    everything = sorted([first, second, third])
    assert await listed() == everything
    assert await listed(everywhere("adm@example.com", "region:loadbalancers:v2 R")) == everything
    assert await listed(INSIDER) == sorted([first, second])
    assert await listed(STRANGER) == []
    assert await listed(NOBODY) == []
    assert await listed(TENANT, ("networkID", two)) == [third]
    assert await listed(TENANT, ("networkID", one), ("networkID", two)) == everything
    assert await listed(TENANT, ("networkID", ABSENT)) == []
    assert await listed(TENANT, ("projectID", OTHER_PROJECT)) == [third]
    assert await listed(TENANT, ("organizationID", ORG), ("regionID", REGION)) == everything
    assert await listed(TENANT, ("regionID", ABSENT)) == []
    assert await listed(TENANT, ("tag", "a=1")) == [first]
    assert await listed(TENANT, ("tag", "a=1"), ("tag", "b=1")) == []
    client = region_storage.balancers.ask(TENANT)
    assert rejection(await client.get(LOAD_BALANCERS, [("tag", "a")])) == (400, "tag decode failed")
    assert await listed(TENANT, ("organizationID", OTHER_ORG)) == []
    assert (await client.get(LOAD_BALANCERS, [("networkID", "x")])).status == 400
