"""Load balancers over HTTP: what can be changed of one, and who may do so when."""

from typing import Any

import pytest

from remuda.operations.kinds import Operation
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.loadbalancers.routes import LOAD_BALANCERS
from tests.kit.environment import options
from tests.kit.region.loadbalancer_requests import ALL, listener, pool, update, wanted
from tests.kit.region.resource_api import ORG, member, rejection
from tests.kit.region.storage import HOME, TENANT, StorageEnvironment


@options(at_work=False)
async def test_a_put_replaces_all_that_can_be_changed_and_says_who_did(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    body = wanted(network, vipAddress="10.0.0.200")
    body["metadata"] |= {"description": "old", "tags": [{"name": "a", "value": "1"}]}
    path = f"{LOAD_BALANCERS}/{await region_storage.make_balancer(body)}"
    changer = member("cho@example.com", ORG, ALL)
    new = {"metadata": {"name": "new"}, "spec": {"listeners": [listener("other")], "vipAddress": "10.0.0.9"}}
    reply = await region_storage.balancers.ask(changer).put(path, new)
    assert reply.status == 202
    metadata = reply.json["metadata"]
    assert metadata["name"] == "new"
    assert not {"description", "tags"} & metadata.keys()
    assert (metadata["createdBy"], metadata["modifiedBy"]) == ("ann@example.com", "cho@example.com")
    assert [each["name"] for each in reply.json["spec"]["listeners"]] == ["other"]
    stored = await region_storage.store.get(LoadBalancer, metadata["id"])
    assert stored.spec.requested_vip_address == "10.0.0.200", "what was asked for is settled"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (listener(protocol="udp"), "listener protocol cannot be changed for an existing listener name"),
        (listener(port=81), "listener port cannot be changed for an existing listener name"),
        (
            listener(pool=pool(proxyProtocolV2=True)),
            "listener pool proxyProtocolV2 cannot be changed for an existing listener name",
        ),
        (listener(pool=pool(healthCheck={"intervalSeconds": 5})), "timeoutSeconds must be less than intervalSeconds"),
    ],
)
@pytest.mark.parametrize("is_public", [False, True])
@options(at_work=False)
async def test_a_put_of_what_it_cannot_become_changes_nothing(
    region_storage: StorageEnvironment, changed: dict[str, Any], sentence: str, *, is_public: bool
) -> None:
    network = await region_storage.make_network()
    path = f"{LOAD_BALANCERS}/{await region_storage.make_balancer(wanted(network))}"
    before = await region_storage.versions()
    reply = await region_storage.balancers.ask(TENANT).put(path, update(changed, publicIP=is_public))
    assert rejection(reply) == (422, sentence)
    assert await region_storage.versions() == before


@pytest.mark.parametrize("is_public", [False, True])
@options(at_work=False)
async def test_a_write_with_an_old_tag_is_refused_and_one_with_the_right_tag_goes_through(
    region_storage: StorageEnvironment, *, is_public: bool
) -> None:
    client, network = region_storage.balancers.ask(TENANT), await region_storage.make_network()
    path = f"{LOAD_BALANCERS}/{await region_storage.make_balancer(wanted(network))}"
    old = (await client.get(path)).headers["etag"]
    assert (await client.put(path, update(listener("b"), publicIP=is_public), if_match=old)).status == 202
    assert (await client.put(path, update(publicIP=is_public), if_match=old)).status == 412
    assert (await client.put(path, update(publicIP=not is_public), if_match=old)).status == 412
    assert (await client.delete(path, if_match=old)).status == 412
    new = (await client.get(path)).headers["etag"]
    assert (await client.delete(path, if_match=new)).status == 202


async def test_while_an_operation_has_it_locked_another_change_is_a_conflict_and_a_delete_ends_both(
    region_storage: StorageEnvironment,
) -> None:
    client, network = region_storage.balancers.ask(TENANT), await region_storage.make_network()
    balancer = await region_storage.make_balancer(wanted(network))
    path = f"{LOAD_BALANCERS}/{balancer}"
    await region_storage.rest()
    before = (await client.get(path)).json["spec"]
    region_storage.identity.fail("update", times=10_000)
    assert (await client.put(path, update(publicIP=True))).status == 503
    assert [each.spec.saga for each in (await region_storage.store.list(Operation)).items if each.is_open] == [
        "loadbalancer.update"
    ]
    assert (await client.put(path, update(listener("other")))).status == 409
    assert (await client.put(path, update(publicIP=True))).status == 409
    await region_storage.rest()
    assert (await client.get(path)).json["spec"] == before
    assert (await region_storage.available(LoadBalancer, balancer)).reason == "OperationRunning"
    assert (await client.delete(path)).status == 202
    await region_storage.world.clock.sleep(600)
    assert (await client.get(path)).status == 404, "what is deleted is not put right first"
    assert (region_storage.identity.total("loadbalancers", HOME), region_storage.identity.total("publicips", HOME)) == (
        0,
        0,
    )


async def test_a_status_that_is_written_meanwhile_does_not_reject_a_change_of_cost(
    region_storage: StorageEnvironment,
) -> None:
    client, network = region_storage.balancers.ask(TENANT), await region_storage.make_network()
    path = f"{LOAD_BALANCERS}/{await region_storage.make_balancer(wanted(network))}"
    for number in range(6):
        reply = await client.put(path, update(publicIP=number % 2 == 0))
        assert reply.status == 202, reply
        await region_storage.world.clock.sleep(0.001)
    await region_storage.rest()
    assert region_storage.identity.total("publicips", HOME) == 0
    assert (await client.get(path)).json["metadata"]["provisioningStatus"] == "provisioned"
