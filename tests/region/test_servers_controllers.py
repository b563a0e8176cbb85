"""What the controller of servers makes of them at a cloud: addresses, ports, what is changed, and what goes."""

import asyncio
from ipaddress import IPv4Address

import pytest

from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import NotFound
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.networks.address_plan import mac_of
from remuda.region.networks.ipam import take_this_address
from remuda.region.networks.rules import plan_of
from tests.region.room import refusal
from tests.region.servers_ground import DEBIAN, SMALL, TENANT, UBUNTU, Yard, encoded, in_yard, update, wanted
from tests.region.shown import shown_of


async def _health(yard: Yard, server: str) -> str:
    return str((await yard.read(server))["metadata"]["healthStatus"])


async def _status(yard: Yard, server: str) -> str:
    return str((await yard.read(server))["metadata"]["provisioningStatus"])


def test_a_server_comes_up_and_is_left_alone_from_then_on() -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        server = await yard.make_server(network, networking={"publicIP": True})
        await yard.rest()
        read = await yard.read(server)
        assert (read["metadata"]["provisioningStatus"], read["metadata"]["healthStatus"]) == ("provisioned", "healthy")
        (port,), (address,), (made,) = await yard.ports(), await yard.addresses(), yard.at_cloud()
        status = read["status"]
        assert status["powerState"] == "Running"
        assert status["privateIP"] == port.spec.address == address.spec.ip
        assert status["macAddress"] == port.spec.mac == address.spec.mac
        assert status["publicIP"] == port.public_address
        assert made.handle.name == await yard.name_of(server) == port.server
        stored = (await yard.stored(server)).status
        assert (stored.provider_id, stored.image_id, stored.flavor_id) == (made.id, made.image, made.flavor)
        assert stored.scheduled_at is not None
        assert stored.provisioned_at == stored.launched_at is not None
        await yard.look_again()

    in_yard(scenario, at_work=True)


def test_a_building_server_is_neither_well_nor_ill_and_a_stopped_one_is_well() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.world.clock.sleep(1)
        assert (await yard.read(server))["status"]["powerState"] == "Building"
        assert (await _status(yard, server), await _health(yard, server)) == ("provisioning", "unknown")
        await yard.rest()
        yard.cloud.operator.stop(server)
        await yard.rest()
        assert (await _status(yard, server), await _health(yard, server)) == ("provisioned", "healthy")
        await yard.look_again()

    in_yard(scenario, at_work=True, is_instant=False)


def test_an_address_and_its_mac_are_ours_before_the_cloud_hears_of_them() -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        for nth in range(3):
            yard.at_fault("error", "converge_port", after=nth)
        await yard.make_server(network)
        await yard.world.clock.sleep(0.2)
        assert not await yard.ports()
        (address,) = await yard.addresses()
        assert address.spec.mac == mac_of(network, IPv4Address(address.spec.ip))
        await yard.rest()
        (port,) = await yard.ports()
        assert (port.spec.address, port.spec.mac) == (address.spec.ip, address.spec.mac)

    in_yard(scenario, at_work=True)


async def _fill(yard: Yard, network: str, *, free: int) -> None:
    """Take all addresses of a network but so many."""
    found = await yard.store.get(Network, network)
    pool = plan_of(found).dhcp_pool
    for number in range(int(pool.first), int(pool.last) + 1 - free):
        assert await take_this_address(yard.store, found, found, IPv4Address(number)) is not None


def test_a_server_waits_for_an_address_and_gets_the_next_that_is_given_back() -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        await _fill(yard, network, free=2)
        taken = len(await yard.addresses())
        servers = [await yard.make_server(network, f"web-{number}") for number in range(4)]
        await yard.rest()
        waiting = [each for each in servers if (await yard.available(each)).reason == "AddressesExhausted"]
        there = [each for each in servers if each not in waiting]
        assert [await _status(yard, each) for each in there] == ["provisioned"] * 2
        assert len(await yard.addresses()) == taken + 2
        assert len(yard.at_cloud()) == 2
        await yard.look_again()
        await yard.delete(there[0])
        await yard.rest()
        left = [each for each in waiting if await _status(yard, each) != "provisioned"]
        assert len(left) == 1, "one of them has the address, though nobody looks by itself"

    in_yard(scenario, at_work=True)


def test_a_server_waits_for_a_public_address_and_says_so() -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        first = await yard.make_server(network, "first", networking={"publicIP": True})
        await yard.rest()
        second = await yard.make_server(network, "second", networking={"publicIP": True})
        await yard.rest()
        assert (await yard.available(second)).reason == "PublicAddressesExhausted"
        await yard.put(first, update("first"))
        await yard.world.clock.sleep(600)
        assert await _status(yard, second) == "provisioned"
        assert "publicIP" not in (await yard.read(first))["status"]
        assert (await yard.read(second))["status"]["publicIP"]

    # The base, the gateway and the broadcast address are nobody's, and the network's router has one.
    in_yard(scenario, at_work=True, public_addresses=("198.51.100.0/32",))


def test_groups_sources_and_public_address_change_on_the_port_that_is_there() -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        groups = [await yard.make_group(network) for _ in range(2)]
        server = await yard.make_server(network, networking={"securityGroups": groups[:1]})
        await yard.rest()
        before, made = await yard.read(server), yard.at_cloud()
        networking = {"securityGroups": groups[1:], "publicIP": True, "allowedSourceAddresses": ["10.1.0.0/16"]}
        await yard.put(server, update(networking=networking))
        await yard.rest()
        (port,) = await yard.ports()
        assert [groups[1] in name for name in port.spec.groups] == [True]
        assert port.spec.sources == ("10.1.0.0/16",)
        after = await yard.read(server)
        assert shown_of(after) == shown_of(before) | {"publicIP": port.public_address}
        await yard.put(server, update())
        await yard.rest()
        (port,) = await yard.ports()
        assert (port.spec.groups, port.spec.sources, port.public_address) == ((), (), "")
        assert shown_of(await yard.read(server)) == shown_of(before)
        assert [each.id for each in yard.at_cloud()] == [each.id for each in made]
        await yard.look_again()

    in_yard(scenario, at_work=True)


def test_a_server_is_made_after_its_network_and_groups_are() -> None:
    async def scenario(yard: Yard) -> None:
        for nth in range(3):
            yard.at_fault("error", "converge_group", after=nth)
        network = await yard.make_network()
        body = {"metadata": {"name": "sg"}, "spec": {"networkId": network, "rules": []}}
        group = (await yard.groups.ask(TENANT).post("/api/v2/securitygroups", body)).json["metadata"]["id"]
        server = await yard.make_server(network, networking={"securityGroups": [group]})
        await yard.world.clock.sleep(0.1)
        assert (await yard.available(server)).reason == "DependencyNotReady"
        assert await _status(yard, server) == "provisioning"
        await yard.rest()
        assert await _status(yard, server) == "provisioned"
        reply = await yard.groups.ask(TENANT).delete(f"/api/v2/securitygroups/{group}")
        assert refusal(reply) == (403, "security group is in use and cannot be deleted")

    in_yard(scenario, at_work=True)


def test_a_group_and_a_server_in_it_are_never_both_deleted_and_made() -> None:
    async def scenario(yard: Yard) -> None:
        network, outcomes = await yard.make_network(), set()
        for number in range(30):
            group = await yard.make_group(network)
            body = wanted(network, f"web-{number}", networking={"securityGroups": [group]})
            deleted, made = await asyncio.gather(
                yard.groups.ask(TENANT).delete(f"/api/v2/securitygroups/{group}"),
                yard.servers.ask(TENANT).post("/api/v2/servers", body),
            )
            outcomes.add((deleted.status, made.status < 300))
        assert outcomes == {(202, False), (403, True)}

    in_yard(scenario)


@pytest.mark.parametrize("is_made", [True, False])
def test_a_server_in_a_group_that_is_to_go_goes_on_with_it_if_it_is_there(is_made: bool) -> None:  # noqa: FBT001  a case
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        if not is_made:
            for nth in range(20):
                yard.at_fault("error", "converge_group", after=nth)
        body = {"metadata": {"name": "sg"}, "spec": {"networkId": network, "rules": []}}
        group = (await yard.groups.ask(TENANT).post("/api/v2/securitygroups", body)).json["metadata"]["id"]
        server = await yard.make_server(network, networking={"securityGroups": [group]})
        await yard.world.clock.sleep(5 if is_made else 0.1)
        stored = await yard.store.get(SecurityGroup, group)
        # As with a store that cannot tell in the last moment whether anything uses it.
        await yard.store.delete(SecurityGroup, group, uid=stored.uid)
        await yard.rest()
        available = await yard.available(server)
        told = (available.status, available.message)
        away = "a security group of it is being deleted: take it out of that"
        assert told == (("True", "provisioned") if is_made else ("False", away))
        await yard.put(server, update(networking={"securityGroups": []}))
        await yard.rest()
        assert await _status(yard, server) == "provisioned"
        with pytest.raises(NotFound):
            await yard.store.get(SecurityGroup, group)

    in_yard(scenario, at_work=True)


@pytest.mark.parametrize("fault", ["timeout_done", "error_done", "error", "rate_limited", "slow"])
def test_a_lost_answer_makes_no_second_server(fault: str) -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        for verb in ("converge_port", "create_server"):
            yard.at_fault(fault, verb)  # type: ignore[arg-type]  # it is one
        server = await yard.make_server(network)
        await yard.rest()
        await yard.rest()
        assert [each.handle.name for each in yard.at_cloud()] == [await yard.name_of(server)]
        assert len(await yard.ports()) == len(await yard.addresses()) == 1
        assert await _status(yard, server) == "provisioned"
        await yard.look_again()
        await yard.delete(server)
        await yard.rest()
        await yard.nothing_is_left()

    in_yard(scenario, at_work=True)


def test_user_data_and_authority_reach_the_cloud() -> None:
    async def scenario(yard: Yard) -> None:
        network, authority = await yard.make_network(), await yard.make_authority()
        data = encoded("#cloud-config\nruncmd: [touch /tmp/seen]\n")
        server = await yard.make_server(network, userData=data, sshCertificateAuthorityId=authority)
        await yard.rest()
        spec = yard.cloud.operator._states.life(yard.cloud.operator.find(server)).spec  # what the cloud was sent
        assert b"touch /tmp/seen" in spec.user_data
        assert b"unikorn-ssh-certificate-authority" in spec.user_data
        assert not spec.has_tenancy_key
        assert spec.labels["region:server_id"] == server
        assert spec.hostname == "web"

    in_yard(scenario, at_work=True)


# What the cloud does by itself.


def test_what_is_changed_at_the_cloud_is_shown_and_left_alone() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        (made,) = yard.at_cloud()
        storage = yard.cloud._context.storage  # somebody with other rights than ours
        storage.write(lambda: storage.run("UPDATE servers SET flavor = ?, image = ?, version = 'x'", (SMALL, DEBIAN)))
        yard.cloud.operator.migrate(server)
        await yard.rest()
        stored = await yard.stored(server)
        assert (stored.status.flavor_id, stored.status.image_id) == (SMALL, DEBIAN)
        assert stored.spec.image.id == stored.status.applied_image_id == UBUNTU
        drifted = find_condition(stored.status.conditions, "Drifted")
        assert drifted is not None
        assert drifted.status == "True"
        assert [each.id for each in yard.at_cloud()] == [made.id]
        assert yard.at_cloud()[0].host != made.host
        assert await _status(yard, server) == "provisioned"
        await yard.look_again()

    in_yard(scenario, at_work=True)


def test_a_server_that_breaks_after_it_ran_is_ill_and_is_not_made_again() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        (made,) = yard.at_cloud()
        yard.cloud.operator.fail(server, "the host died")
        await yard.rest()
        assert (await _status(yard, server), await _health(yard, server)) == ("provisioned", "error")
        assert [each.id for each in yard.at_cloud()] == [made.id]
        await yard.look_again()

    in_yard(scenario, at_work=True)
