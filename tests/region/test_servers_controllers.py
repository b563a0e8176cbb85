"""What the controller of servers makes of them at a cloud: addresses, ports, what is changed, and what goes."""

import asyncio
from ipaddress import IPv4Address

import pytest

from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import NotFound
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.networks.address_plan import mac_of
from remuda.region.networks.ipam import allocate_specific_address
from remuda.region.networks.rules import plan_of
from tests.kit.environment import options
from tests.kit.region.resource_api import rejection
from tests.kit.region.server_view import shown_of
from tests.kit.region.servers import (
    DEBIAN,
    SMALL,
    TENANT,
    UBUNTU,
    ServersEnvironment,
    encoded,
    update,
    wanted,
)
from tests.kit.simulation.store import SEALER


async def _health(region_servers: ServersEnvironment, server: str) -> str:
    return str((await region_servers.read(server))["metadata"]["healthStatus"])


async def _status(region_servers: ServersEnvironment, server: str) -> str:
    return str((await region_servers.read(server))["metadata"]["provisioningStatus"])


@options(at_work=True)
async def test_a_server_comes_up_and_is_left_alone_from_then_on(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    server = await region_servers.make_server(network, networking={"publicIP": True})
    await region_servers.rest()
    read = await region_servers.read(server)
    assert (read["metadata"]["provisioningStatus"], read["metadata"]["healthStatus"]) == ("provisioned", "healthy")
    (port,), (address,), (made,) = (
        await region_servers.ports(),
        await region_servers.addresses(),
        region_servers.at_cloud(),
    )
    status = read["status"]
    assert status["powerState"] == "Running"
    assert status["privateIP"] == port.spec.address == address.spec.ip
    assert status["macAddress"] == port.spec.mac == address.spec.mac
    assert status["publicIP"] == port.public_address
    assert made.handle.name == await region_servers.name_of(server) == port.server
    stored = (await region_servers.stored(server)).status
    assert (stored.provider_id, stored.image_id, stored.flavor_id) == (made.id, made.image, made.flavor)
    assert stored.scheduled_at is not None
    assert stored.provisioned_at == stored.launched_at is not None
    await region_servers.confirm_absence()


@options(at_work=True, is_instant=False)
async def test_a_building_server_is_neither_well_nor_ill_and_a_stopped_one_is_well(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.world.clock.sleep(1)
    assert (await region_servers.read(server))["status"]["powerState"] == "Building"
    assert (await _status(region_servers, server), await _health(region_servers, server)) == ("provisioning", "unknown")
    await region_servers.rest()
    region_servers.cloud.operator.stop(server)
    await region_servers.rest()
    assert (await _status(region_servers, server), await _health(region_servers, server)) == ("provisioned", "healthy")
    await region_servers.confirm_absence()


@options(at_work=True)
async def test_an_address_and_its_mac_are_ours_before_the_cloud_hears_of_them(
    region_servers: ServersEnvironment,
) -> None:
    network = await region_servers.make_network()
    for nth in range(3):
        region_servers.at_fault("error", "converge_port", after=nth)
    await region_servers.make_server(network)
    await region_servers.world.clock.sleep(0.2)
    assert not await region_servers.ports()
    (address,) = await region_servers.addresses()
    assert address.spec.mac == mac_of(network, IPv4Address(address.spec.ip))
    await region_servers.rest()
    (port,) = await region_servers.ports()
    assert (port.spec.address, port.spec.mac) == (address.spec.ip, address.spec.mac)


async def _fill(region_servers: ServersEnvironment, network: str, *, free: int) -> None:
    """Take all addresses of a network but so many."""
    found = await region_servers.store.get(Network, network)
    pool = plan_of(found).dhcp_pool
    for number in range(int(pool.first), int(pool.last) + 1 - free):
        assert await allocate_specific_address(region_servers.store, found, found, IPv4Address(number)) is not None


@options(at_work=True)
async def test_a_server_waits_for_an_address_and_gets_the_next_that_is_released(
    region_servers: ServersEnvironment,
) -> None:
    network = await region_servers.make_network()
    await _fill(region_servers, network, free=2)
    taken = len(await region_servers.addresses())
    servers = [await region_servers.make_server(network, f"web-{number}") for number in range(4)]
    await region_servers.rest()
    waiting = [each for each in servers if (await region_servers.available(each)).reason == "AddressesExhausted"]
    there = [each for each in servers if each not in waiting]
    assert [await _status(region_servers, each) for each in there] == ["provisioned"] * 2
    assert len(await region_servers.addresses()) == taken + 2
    assert len(region_servers.at_cloud()) == 2
    await region_servers.confirm_absence()
    await region_servers.delete(there[0])
    await region_servers.rest()
    left = [each for each in waiting if await _status(region_servers, each) != "provisioned"]
    assert len(left) == 1, "one of them has the address, though nobody looks by itself"


@options(at_work=True, public_addresses=("198.51.100.0/32",))
async def test_a_server_waits_for_a_public_address_and_says_so(region_servers: ServersEnvironment) -> None:
    # The base, the gateway and the broadcast address are nobody's, and the network's router has one.
    network = await region_servers.make_network()
    first = await region_servers.make_server(network, "first", networking={"publicIP": True})
    await region_servers.rest()
    second = await region_servers.make_server(network, "second", networking={"publicIP": True})
    await region_servers.rest()
    assert (await region_servers.available(second)).reason == "PublicAddressesExhausted"
    await region_servers.put(first, update("first"))
    await region_servers.world.clock.sleep(600)
    assert await _status(region_servers, second) == "provisioned"
    assert "publicIP" not in (await region_servers.read(first))["status"]
    assert (await region_servers.read(second))["status"]["publicIP"]


@options(at_work=True)
async def test_groups_sources_and_public_address_change_on_the_port_that_is_there(
    region_servers: ServersEnvironment,
) -> None:
    network = await region_servers.make_network()
    groups = [await region_servers.make_group(network) for _ in range(2)]
    server = await region_servers.make_server(network, networking={"securityGroups": groups[:1]})
    await region_servers.rest()
    before, made = await region_servers.read(server), region_servers.at_cloud()
    networking = {"securityGroups": groups[1:], "publicIP": True, "allowedSourceAddresses": ["10.1.0.0/16"]}
    await region_servers.put(server, update(networking=networking))
    await region_servers.rest()
    (port,) = await region_servers.ports()
    assert [groups[1] in name for name in port.spec.groups] == [True]
    assert port.spec.sources == ("10.1.0.0/16",)
    after = await region_servers.read(server)
    assert shown_of(after) == shown_of(before) | {"publicIP": port.public_address}
    await region_servers.put(server, update())
    await region_servers.rest()
    (port,) = await region_servers.ports()
    assert (port.spec.groups, port.spec.sources, port.public_address) == ((), (), "")
    assert shown_of(await region_servers.read(server)) == shown_of(before)
    assert [each.id for each in region_servers.at_cloud()] == [each.id for each in made]
    await region_servers.confirm_absence()


@options(at_work=True)
async def test_a_server_is_made_after_its_network_and_groups_are(region_servers: ServersEnvironment) -> None:
    for nth in range(3):
        region_servers.at_fault("error", "converge_group", after=nth)
    network = await region_servers.make_network()
    body = {"metadata": {"name": "sg"}, "spec": {"networkId": network, "rules": []}}
    group = (await region_servers.groups.ask(TENANT).post("/api/v2/securitygroups", body)).json["metadata"]["id"]
    server = await region_servers.make_server(network, networking={"securityGroups": [group]})
    await region_servers.world.clock.sleep(0.1)
    assert (await region_servers.available(server)).reason == "DependencyNotReady"
    assert await _status(region_servers, server) == "provisioning"
    await region_servers.rest()
    assert await _status(region_servers, server) == "provisioned"
    reply = await region_servers.groups.ask(TENANT).delete(f"/api/v2/securitygroups/{group}")
    assert rejection(reply) == (403, "security group is in use and cannot be deleted")


async def test_a_group_and_a_server_in_it_are_never_both_deleted_and_made(region_servers: ServersEnvironment) -> None:
    network, outcomes = await region_servers.make_network(), set()
    for number in range(30):
        group = await region_servers.make_group(network)
        body = wanted(network, f"web-{number}", networking={"securityGroups": [group]})
        deleted, made = await asyncio.gather(
            region_servers.groups.ask(TENANT).delete(f"/api/v2/securitygroups/{group}"),
            region_servers.servers.ask(TENANT).post("/api/v2/servers", body),
        )
        outcomes.add((deleted.status, made.status < 300))
    assert outcomes == {(202, False), (403, True)}


@pytest.mark.parametrize("is_made", [True, False])
@options(at_work=True)
async def test_a_server_in_a_group_that_is_to_go_goes_on_with_it_if_it_is_there(
    region_servers: ServersEnvironment, *, is_made: bool
) -> None:
    network = await region_servers.make_network()
    if not is_made:
        for nth in range(20):
            region_servers.at_fault("error", "converge_group", after=nth)
    body = {"metadata": {"name": "sg"}, "spec": {"networkId": network, "rules": []}}
    group = (await region_servers.groups.ask(TENANT).post("/api/v2/securitygroups", body)).json["metadata"]["id"]
    server = await region_servers.make_server(network, networking={"securityGroups": [group]})
    await region_servers.world.clock.sleep(5 if is_made else 0.1)
    stored = await region_servers.store.get(SecurityGroup, group)
    # As with a store that cannot tell in the last moment whether anything uses it.
    await region_servers.store.delete(SecurityGroup, group, uid=stored.uid)
    await region_servers.rest()
    available = await region_servers.available(server)
    told = (available.status, available.message)
    away = "a security group is being deleted: remove it from the server"
    assert told == (("True", "provisioned") if is_made else ("False", away))
    await region_servers.put(server, update(networking={"securityGroups": []}))
    await region_servers.rest()
    assert await _status(region_servers, server) == "provisioned"
    with pytest.raises(NotFound):
        await region_servers.store.get(SecurityGroup, group)


@pytest.mark.parametrize("fault", ["timeout_after_write", "error_after_write", "error", "rate_limited", "slow"])
@options(at_work=True)
async def test_a_lost_answer_makes_no_second_server(region_servers: ServersEnvironment, fault: str) -> None:
    network = await region_servers.make_network()
    for verb in ("converge_port", "create_server"):
        region_servers.at_fault(fault, verb)  # type: ignore[arg-type]  # it is one
    server = await region_servers.make_server(network)
    await region_servers.rest()
    await region_servers.rest()
    assert [each.handle.name for each in region_servers.at_cloud()] == [await region_servers.name_of(server)]
    assert len(await region_servers.ports()) == len(await region_servers.addresses()) == 1
    assert await _status(region_servers, server) == "provisioned"
    await region_servers.confirm_absence()
    await region_servers.delete(server)
    await region_servers.rest()
    await region_servers.nothing_is_left()


@options(at_work=True)
async def test_user_data_and_authority_reach_the_cloud(region_servers: ServersEnvironment) -> None:
    network, authority = await region_servers.make_network(), await region_servers.make_authority()
    data = encoded("#cloud-config\nruncmd: [touch /tmp/seen]\n")
    server = await region_servers.make_server(network, userData=data, sshCertificateAuthorityId=authority)
    await region_servers.rest()
    spec = region_servers.cloud.operator._states.record(
        region_servers.cloud.operator.find(server), SEALER
    ).spec  # what the cloud was sent
    assert b"touch /tmp/seen" in spec.user_data
    assert b"unikorn-ssh-certificate-authority" in spec.user_data
    assert not spec.has_tenancy_key
    assert spec.labels["region:server_id"] == server
    assert spec.hostname == "web"


# What the cloud does by itself.


@options(at_work=True)
async def test_what_is_changed_at_the_cloud_is_shown_and_left_alone(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    (made,) = region_servers.at_cloud()
    storage = region_servers.cloud._context.storage  # somebody with other permissions than ours
    storage.write(lambda: storage.run("UPDATE servers SET flavor = ?, image = ?, version = 'x'", (SMALL, DEBIAN)))
    region_servers.cloud.operator.migrate(server)
    await region_servers.rest()
    stored = await region_servers.stored(server)
    assert (stored.status.flavor_id, stored.status.image_id) == (SMALL, DEBIAN)
    assert stored.spec.image.id == stored.status.applied_image_id == UBUNTU
    drifted = find_condition(stored.status.conditions, "Drifted")
    assert drifted is not None
    assert drifted.status == "True"
    assert [each.id for each in region_servers.at_cloud()] == [made.id]
    assert region_servers.at_cloud()[0].host != made.host
    assert await _status(region_servers, server) == "provisioned"
    await region_servers.confirm_absence()


@options(at_work=True)
async def test_a_server_that_breaks_after_it_ran_is_ill_and_is_not_recreated(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    (made,) = region_servers.at_cloud()
    region_servers.cloud.operator.fail(server, "the host died")
    await region_servers.rest()
    assert (await _status(region_servers, server), await _health(region_servers, server)) == ("provisioned", "error")
    assert [each.id for each in region_servers.at_cloud()] == [made.id]
    await region_servers.confirm_absence()
