"""Load balancers over a simulated cloud: how they come to be, change and go."""

from ipaddress import IPv4Address
from typing import Any

import pytest

from remuda.providers.contract.common import Handle
from remuda.providers.contract.loadbalancers import CloudLoadBalancer as CloudBalancer
from remuda.providers.contract.servers import CloudPortSpec
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.kinds.networks import Address, Network
from remuda.region.loadbalancers.routes import LOAD_BALANCERS
from remuda.region.networks.ipam import allocate_specific_address
from remuda.region.networks.routes import NETWORKS
from tests.kit.environment import options
from tests.kit.region.resource_api import REGION, rejection
from tests.kit.region.storage import HOME, TENANT, StorageEnvironment

HELD = (
    "spec.vipAddress is the address of another object on the network: "
    "choose another, or leave it out to get a free one."
)
AT_ONCE_S = 12.0
"""Time enough to look twice that something is gone, and not for what is looked at only now and then."""
WEB = {"name": "web", "protocol": "tcp", "port": 80, "pool": {"members": [{"address": "10.0.0.200", "port": 8080}]}}


def wanted(network: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "lb"}, "spec": {"networkId": network, "listeners": [WEB], **spec}}


def update(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "lb"}, "spec": {"listeners": [WEB], **spec}}


async def at_cloud(region_storage: StorageEnvironment) -> list[CloudBalancer]:
    balancers = region_storage.provider.load_balancers
    assert balancers is not None
    found = [await balancers.find_balancer(each) async for part in balancers.balancers() for each in part]
    return [each for each in found if each is not None]


async def read(region_storage: StorageEnvironment, balancer: str) -> Any:
    reply = await region_storage.balancers.ask(TENANT).get(f"{LOAD_BALANCERS}/{balancer}")
    assert reply.status == 200, reply
    return reply.json


async def test_an_address_that_something_foreign_has_at_the_cloud_is_told_as_such(
    region_storage: StorageEnvironment,
) -> None:
    network = await region_storage.make_network()
    await region_storage.rest()
    provider = region_storage.provider
    assert provider.networks is not None
    assert provider.ports is not None
    (there,) = [each async for part in provider.networks.networks() for each in part]
    home = there.spec.handle
    foreign = Handle(home.tenancy, "foreign")
    await provider.ports.converge_port(
        CloudPortSpec(handle=foreign, network=home.name, address="10.0.0.200", mac="02:00:00:00:00:01")
    )
    balancer = await region_storage.make_balancer(wanted(network, vipAddress="10.0.0.200"))
    await region_storage.rest()
    about = (await read(region_storage, balancer))["metadata"]
    assert (about["provisioningStatus"], about["provisioningStatusDetail"]["reason"]) == ("error", "AddressTaken")


async def test_the_address_that_is_asked_for_is_the_one_that_it_gets(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    balancer = await region_storage.make_balancer(wanted(network, vipAddress="10.0.0.177"))
    assert "vipAddress" not in (await read(region_storage, balancer))["status"]
    await region_storage.rest()
    seen = await read(region_storage, balancer)
    assert seen["metadata"]["provisioningStatus"] == "provisioned"
    assert seen["status"]["vipAddress"] == "10.0.0.177"
    (there,) = await at_cloud(region_storage)
    assert (there.spec.address, there.state, there.spec.is_public) == ("10.0.0.177", "active", False)
    (listener,) = there.spec.listeners
    assert (listener.port, listener.idle_timeout_s) == (80, 60)
    assert [(each.address, each.port) for each in listener.members] == [("10.0.0.200", 8080)]
    assert region_storage.identity.total("loadbalancers", HOME) == 1
    await region_storage.confirm_absence()


async def test_an_address_that_another_has_is_refused(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    first = await region_storage.make_balancer(wanted(network, vipAddress="10.0.0.177"))
    await region_storage.rest()
    reply = await region_storage.balancers.ask(TENANT).post(LOAD_BALANCERS, wanted(network, vipAddress="10.0.0.177"))
    assert rejection(reply) == (422, HELD)
    assert [each.name for each in (await region_storage.store.list(LoadBalancer)).items] == [first]
    assert region_storage.identity.total("loadbalancers", HOME) == 1


async def test_of_two_that_ask_for_one_address_at_once_the_second_waits_for_it(
    region_storage: StorageEnvironment,
) -> None:
    network = await region_storage.make_network()
    both = [await region_storage.make_balancer(wanted(network, vipAddress="10.0.0.177")) for _ in range(2)]
    await region_storage.rest()
    conditions = [await region_storage.available(LoadBalancer, each) for each in both]
    assert sorted(each.status for each in conditions) == ["False", "True"]
    (waiting,) = [each for each, said in zip(both, conditions, strict=True) if said.status == "False"]
    said = await region_storage.available(LoadBalancer, waiting)
    assert (said.reason, said.message) == (
        "AddressTaken",
        "another object on its network has 10.0.0.177: choose another address",
    )
    assert len(await at_cloud(region_storage)) == 1
    assert (await region_storage.balancers.ask(TENANT).delete(f"{LOAD_BALANCERS}/{waiting}")).status == 202
    await region_storage.rest()
    assert len((await region_storage.store.list(Address)).items) == 1, "it released nothing that was not its own"


async def test_a_load_balancer_gets_the_address_of_one_that_goes_as_soon_as_that_is_released(
    region_storage: StorageEnvironment,
) -> None:
    network = await region_storage.make_network()
    first = await region_storage.make_balancer(wanted(network, vipAddress="10.0.0.177"))
    await region_storage.rest()
    (await region_storage.clouds.get(REGION)).absence.delay_s = 1.0  # as where reads may be stale
    assert (await region_storage.balancers.ask(TENANT).delete(f"{LOAD_BALANCERS}/{first}")).status == 202
    second = await region_storage.make_balancer(wanted(network, vipAddress="10.0.0.177"))
    await region_storage.world.clock.sleep(0.1)
    assert (await region_storage.available(LoadBalancer, second)).reason == "AddressTaken"
    await region_storage.world.clock.sleep(AT_ONCE_S)
    assert (await read(region_storage, second))["status"]["vipAddress"] == "10.0.0.177"


async def test_one_that_asked_before_that_was_refused_never_takes_an_address_that_is_reserved(
    region_storage: StorageEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remuda.region.loadbalancers.service.parse_vip", lambda asked, _: IPv4Address(asked))
    balancer = await region_storage.make_balancer(wanted(await region_storage.make_network(), vipAddress="10.0.0.16"))
    await region_storage.rest()
    said = await region_storage.available(LoadBalancer, balancer)
    assert said.message == "its network reserves 10.0.0.16: choose another address"
    assert not (await region_storage.store.list(Address)).items
    assert not await at_cloud(region_storage)


async def test_a_network_without_free_addresses_says_so_and_one_that_is_released_is_used(
    region_storage: StorageEnvironment,
) -> None:
    network = await region_storage.make_network(reservations={"prefixLength": 25, "providerReservedPrefixLength": 28})
    found = await region_storage.store.get(Network, network)
    pool = [f"10.0.0.{number}" for number in range(128, 255)]
    client = region_storage.balancers.ask(TENANT)
    first = await region_storage.make_balancer(wanted(network, vipAddress=pool[0]))
    await region_storage.rest()
    for ip in pool[1:]:
        await _occupy(region_storage, found, ip)
    late = await region_storage.make_balancer(wanted(network))
    await region_storage.rest()
    assert (await region_storage.available(LoadBalancer, late)).reason == "AddressesExhausted"
    assert (await client.delete(f"{LOAD_BALANCERS}/{first}")).status == 202
    await region_storage.world.clock.sleep(AT_ONCE_S)
    assert (await read(region_storage, late))["status"]["vipAddress"] == pool[0]


async def _occupy(region_storage: StorageEnvironment, network: Network, ip: str) -> None:
    assert await allocate_specific_address(region_storage.store, network, network, IPv4Address(ip)) is not None


async def test_a_public_address_comes_and_goes_with_what_it_costs(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    balancer = await region_storage.make_balancer(wanted(network))
    await region_storage.rest()
    path, client = f"{LOAD_BALANCERS}/{balancer}", region_storage.balancers.ask(TENANT)
    before = await read(region_storage, balancer)
    assert (before["spec"]["publicIP"], region_storage.identity.total("publicips", HOME)) == (False, 0)
    reply = await client.put(path, update(publicIP=True))
    assert (reply.status, reply.json["spec"]["publicIP"]) == (202, True)
    assert region_storage.identity.total("publicips", HOME) == 1
    await region_storage.rest()
    seen = await read(region_storage, balancer)
    assert seen["status"]["publicIP"].startswith("198.51.100.")
    assert seen["status"]["vipAddress"] == before["status"]["vipAddress"]
    await region_storage.confirm_absence()
    assert (await client.put(path, update())).status == 202
    assert region_storage.identity.total("publicips", HOME) == 0
    await region_storage.rest()
    seen = await read(region_storage, balancer)
    assert "publicIP" not in seen["status"]
    assert seen["metadata"]["provisioningStatus"] == "provisioned"
    await region_storage.confirm_absence()


@options(limits={"publicips": 0})
async def test_a_public_address_that_exceeds_the_quota_changes_nothing(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    balancer = await region_storage.make_balancer(wanted(network))
    await region_storage.rest()
    path, client = f"{LOAD_BALANCERS}/{balancer}", region_storage.balancers.ask(TENANT)
    before = await read(region_storage, balancer)
    reply = await client.put(path, {"metadata": {"name": "other"}, "spec": {"listeners": [WEB], "publicIP": True}})
    assert rejection(reply) == (403, "total publicips allocation of 1 would exceed quota limit of 0")
    assert await read(region_storage, balancer) == before
    assert region_storage.identity.total("loadbalancers", HOME) == 1
    await region_storage.rest()
    assert (await read(region_storage, balancer)) == before


@options(public_addresses=("198.51.100.1/32",))
async def test_a_cloud_without_public_addresses_is_tried_again(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    first = await region_storage.make_balancer(wanted(network, publicIP=True))
    await region_storage.rest()
    second = await region_storage.make_balancer(wanted(network, publicIP=True))
    await region_storage.rest()
    assert (await read(region_storage, first))["metadata"]["provisioningStatus"] == "provisioned"
    assert (await region_storage.available(LoadBalancer, second)).reason == "PublicAddressesExhausted"
    assert (await region_storage.balancers.ask(TENANT).delete(f"{LOAD_BALANCERS}/{first}")).status == 202
    await region_storage.world.clock.sleep(3600)
    assert (await read(region_storage, second))["status"]["publicIP"] == "198.51.100.1"


@options(is_instant=False)
async def test_one_that_takes_its_time_is_provisioned_when_the_cloud_says_so(
    region_storage: StorageEnvironment,
) -> None:
    network = await region_storage.make_network()
    balancer = await region_storage.make_balancer(wanted(network))
    await region_storage.world.clock.sleep(0.9)
    assert (await read(region_storage, balancer))["metadata"]["provisioningStatus"] in {"pending", "provisioning"}
    await region_storage.world.clock.sleep(5)
    assert (await read(region_storage, balancer))["metadata"]["provisioningStatus"] == "provisioned"
    await region_storage.confirm_absence()


async def test_listeners_are_replaced_where_it_is(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    balancer = await region_storage.make_balancer(wanted(network))
    await region_storage.rest()
    dns = {"name": "dns", "protocol": "udp", "port": 53, "pool": {"members": []}, "allowedCidrs": ["10.1.2.3/8"]}
    body = {"metadata": {"name": "renamed"}, "spec": {"listeners": [dns]}}
    assert (await region_storage.balancers.ask(TENANT).put(f"{LOAD_BALANCERS}/{balancer}", body)).status == 202
    await region_storage.rest()
    (there,) = await at_cloud(region_storage)
    assert [(each.name, each.allowed_prefixes) for each in there.spec.listeners] == [("dns", ("10.0.0.0/8",))]
    await region_storage.confirm_absence()


async def test_what_is_deleted_leaves_nothing_behind(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    balancer = await region_storage.make_balancer(wanted(network, publicIP=True))
    await region_storage.rest()
    path, client = f"{LOAD_BALANCERS}/{balancer}", region_storage.balancers.ask(TENANT)
    assert (await client.delete(path)).status == 202
    again = await client.delete(path)
    assert again.status == 202
    assert (await read(region_storage, balancer))["metadata"]["provisioningStatus"] == "deprovisioning"
    assert rejection(await client.put(path, update())) == (422, "load balancer is being deleted")
    await region_storage.rest()
    assert (await client.get(path)).status == 404
    assert await at_cloud(region_storage) == []
    assert (await region_storage.store.list(Address)).items == []
    assert (region_storage.identity.total("loadbalancers", HOME), region_storage.identity.total("publicips", HOME)) == (
        0,
        0,
    )
    assert len(region_storage.identity.ended) == 1, "who saw it before does not hold anything for it again"
    await region_storage.confirm_absence()


async def test_load_balancers_go_with_their_network(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    for _ in range(3):
        await region_storage.make_balancer(wanted(network))
    await region_storage.rest()
    assert (await region_storage.networks.ask(TENANT).delete(f"{NETWORKS}/{network}")).status == 202
    await region_storage.rest()
    assert (await region_storage.store.list(LoadBalancer)).items == []
    assert await at_cloud(region_storage) == []
    assert region_storage.identity.everything() == ({}, {}, frozenset())
