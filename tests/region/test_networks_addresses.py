"""Addresses of a network: each has one holder at a time, nobody goes without while one is free."""

import asyncio
from ipaddress import IPv4Address

from remuda.region.kinds.networks import Address, Network
from remuda.region.kinds.servers import Server, ServerImage, ServerNetwork, ServerSpec
from remuda.region.networks.address_plan import mac_of
from remuda.region.networks.ipam import allocate_address, allocate_specific_address, find_address, release_address
from remuda.region.networks.rules import plan_of
from remuda.resources.conventions import NETWORK as NETWORK_LABEL
from remuda.store.objects import Metadata
from tests.kit.region.networks import NetworksEnvironment


async def make_network(region_networks: NetworksEnvironment, length: int = 25) -> Network:
    name = await region_networks.make_network(reservations={"prefixLength": length})
    return await region_networks.store.get(Network, name)


async def make_server(region_networks: NetworksEnvironment, network: Network, name: str) -> Server:
    spec = ServerSpec(flavor_id="flavor", image=ServerImage(id="image"), networks=(ServerNetwork(id=network.name),))
    return await region_networks.store.create(Server(metadata=Metadata(name=name), spec=spec))


async def test_an_address_is_of_the_pool_belongs_to_the_network_and_names_its_holder(
    region_networks: NetworksEnvironment,
) -> None:
    network = await make_network(region_networks)
    server = await make_server(region_networks, network, "server")
    assert await find_address(region_networks.store, server) is None
    taken = await allocate_address(region_networks.store, network, server)
    assert taken is not None
    ip = IPv4Address(taken.spec.ip)
    assert ip in plan_of(network).dhcp_pool
    assert taken.spec.mac == mac_of(network.name, ip)
    assert taken.name == f"{network.name}.{str(ip).replace('.', '-')}"
    assert (taken.spec.holder, taken.spec.holder_uid) == (server.name, server.uid)
    assert [owner.uid for owner in taken.metadata.owner_references] == [network.uid]
    assert taken.metadata.labels[NETWORK_LABEL] == network.name
    assert await find_address(region_networks.store, server) == taken


async def test_who_asks_again_gets_the_same_address(region_networks: NetworksEnvironment) -> None:
    network = await make_network(region_networks)
    server = await make_server(region_networks, network, "server")
    assert await allocate_address(region_networks.store, network, server) == await allocate_address(
        region_networks.store, network, server
    )
    assert len((await region_networks.store.list(Address)).items) == 1


async def test_all_who_ask_at_once_get_one_each_until_there_are_none(region_networks: NetworksEnvironment) -> None:
    network = await make_network(region_networks)
    size = len(plan_of(network).dhcp_pool)
    servers = [await make_server(region_networks, network, f"server-{number}") for number in range(size)]
    taken = await asyncio.gather(*(allocate_address(region_networks.store, network, server) for server in servers))
    assert len({each.spec.ip for each in taken if each is not None}) == size
    late = await make_server(region_networks, network, "late")
    assert await allocate_address(region_networks.store, network, late) is None
    await release_address(region_networks.store, servers[7])
    freed = await allocate_address(region_networks.store, network, late)
    assert freed is not None
    assert taken[7] is not None
    assert freed.spec.ip == taken[7].spec.ip


async def test_an_address_that_somebody_asks_for_is_theirs_unless_another_has_it(
    region_networks: NetworksEnvironment,
) -> None:
    network, ip = await make_network(region_networks), IPv4Address("10.0.0.20")
    one, two = await make_server(region_networks, network, "one"), await make_server(region_networks, network, "two")
    taken = await allocate_specific_address(region_networks.store, network, one, ip)
    assert taken is not None
    assert await allocate_specific_address(region_networks.store, network, two, ip) is None
    assert await allocate_specific_address(region_networks.store, network, one, ip) == taken
    assert await find_address(region_networks.store, one) == taken


async def test_who_was_recreated_under_an_old_name_has_not_got_the_old_ones_address(
    region_networks: NetworksEnvironment,
) -> None:
    network = await make_network(region_networks)
    old = await make_server(region_networks, network, "server")
    taken = await allocate_address(region_networks.store, network, old)
    assert taken is not None
    await region_networks.store.delete(Server, old.name, uid=old.uid)
    new = await make_server(region_networks, network, "server")
    assert await find_address(region_networks.store, new) is None
    await release_address(region_networks.store, new)
    assert await find_address(region_networks.store, old) == taken, "the cloud may still have it"
    assert await allocate_specific_address(region_networks.store, network, new, IPv4Address(taken.spec.ip)) is None


async def test_the_same_address_of_another_network_is_another_one(region_networks: NetworksEnvironment) -> None:
    ip = IPv4Address("10.0.0.20")
    for number in range(2):
        network = await make_network(region_networks)
        server = await make_server(region_networks, network, f"server-{number}")
        assert await allocate_specific_address(region_networks.store, network, server, ip) is not None
