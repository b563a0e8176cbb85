"""Tenancies, networks and security groups."""

from dataclasses import replace

import pytest

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import Handle, InUse, Rejected, group_name
from remuda.providers.contract.networks import CloudAddressRange, CloudRoute, CloudRule, CloudSecurityGroup, Tenancy
from tests.kit.providers.candidates import on_every_provider
from tests.kit.providers.conformance import NETWORK, TENANCY, Bench, everything, network_spec, port_spec

GROUP = Handle(TENANCY, group_name("e0000000-0000-4000-8000-000000000001", "uid-4"))
SSH = CloudRule(direction="ingress", protocol="tcp", first_port=22, last_port=22)
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f conformance"
WEB = CloudRule(direction="ingress", protocol="tcp", first_port=80, last_port=443, prefix="192.0.2.0/24")


@on_every_provider("tenancies")
async def test_a_tenancy_is_made_once_and_repaired(bench: Bench) -> None:
    tenancies = bench.provider.tenancies
    assert tenancies is not None
    assert await tenancies.find_tenancy(TENANCY) is None
    wanted = Tenancy(name=TENANCY, organization="o", project="p")
    await tenancies.converge_tenancy(wanted)
    await tenancies.converge_tenancy(wanted)
    assert await tenancies.find_tenancy(TENANCY) == wanted
    repaired = replace(wanted, public_key=PUBLIC_KEY)
    await tenancies.converge_tenancy(repaired)
    assert await everything(tenancies.tenancies()) == [repaired]


@on_every_provider("tenancies", "networks")
async def test_a_tenancy_stays_while_anything_is_in_it(bench: Bench) -> None:
    tenancies, networks = bench.provider.tenancies, bench.provider.networks
    assert tenancies is not None
    assert networks is not None
    await bench.network()
    with pytest.raises(InUse):
        await tenancies.remove_tenancy(TENANCY)
    await networks.remove_network(NETWORK)
    await tenancies.remove_tenancy(TENANCY)
    assert await tenancies.find_tenancy(TENANCY) is None
    await tenancies.remove_tenancy(TENANCY)


@on_every_provider("tenancies", "security_groups")
async def test_a_tenancy_stays_while_a_group_is_in_it(bench: Bench) -> None:
    tenancies, groups = bench.provider.tenancies, bench.provider.security_groups
    assert tenancies is not None
    assert groups is not None
    await bench.tenancy()
    await groups.converge_group(CloudSecurityGroup(handle=GROUP))
    with pytest.raises(InUse):
        await tenancies.remove_tenancy(TENANCY)
    await groups.remove_group(GROUP)
    await tenancies.remove_tenancy(TENANCY)


@on_every_provider("networks")
async def test_a_segment_is_given_to_one_network(bench: Bench) -> None:
    networks = bench.provider.networks
    assert networks is not None
    await bench.tenancy()
    other = Handle(TENANCY, "network-other.uid-8")
    await networks.converge_network(replace(network_spec(), vlan=100))
    with pytest.raises(InUse):
        await networks.converge_network(replace(network_spec(other), vlan=100))
    await networks.converge_network(replace(network_spec(other), vlan=101))
    await networks.remove_network(NETWORK)
    await networks.converge_network(replace(network_spec(), vlan=100))


@on_every_provider("networks")
async def test_gateway_and_pool_are_inside_the_prefix(bench: Bench) -> None:
    networks = bench.provider.networks
    assert networks is not None
    await bench.tenancy()
    for wrong in (
        replace(network_spec(), gateway="192.0.2.1"),
        replace(network_spec(), pool=CloudAddressRange("10.1.0.20", "10.1.0.10")),
        replace(network_spec(), prefix="10.1.0.0"),
        replace(network_spec(), prefix="none"),
    ):
        with pytest.raises(Rejected):
            await networks.converge_network(wrong)
    assert await networks.find_network(NETWORK) is None


@on_every_provider("networks")
async def test_a_network_is_made_once_under_its_name(bench: Bench) -> None:
    networks = bench.provider.networks
    assert networks is not None
    with pytest.raises(NotFound):
        await networks.converge_network(network_spec())
    assert await networks.find_network(NETWORK) is None
    await bench.tenancy()
    made = await networks.converge_network(network_spec())
    assert made.spec == network_spec()
    assert made.id
    assert made.subnet_id
    assert await networks.converge_network(network_spec()) == made
    assert await networks.find_network(NETWORK) == made
    assert await everything(networks.networks()) == [made]


@on_every_provider("networks")
async def test_name_servers_and_routes_change_and_the_rest_stays(bench: Bench) -> None:
    networks = bench.provider.networks
    assert networks is not None
    made = await bench.network()
    wanted = replace(network_spec(), nameservers=("9.9.9.9",), routes=(CloudRoute("192.0.2.0/24", "10.1.0.2"),))
    repaired = await networks.converge_network(wanted)
    assert repaired == replace(made, spec=wanted)
    with pytest.raises(Rejected):
        await networks.converge_network(replace(wanted, prefix="10.2.0.0/24"))
    assert await networks.find_network(NETWORK) == repaired


@on_every_provider("networks", "ports")
async def test_a_network_stays_while_a_port_is_on_it(bench: Bench) -> None:
    networks, ports = bench.provider.networks, bench.provider.ports
    assert networks is not None
    assert ports is not None
    port = await bench.port()
    with pytest.raises(InUse):
        await networks.remove_network(NETWORK)
    await ports.remove_port(port.spec.handle)
    await networks.remove_network(NETWORK)
    await networks.remove_network(NETWORK)
    assert await networks.find_network(NETWORK) is None


@on_every_provider("networks")
async def test_tenancies_are_apart_though_their_things_have_the_same_name_and_prefix(bench: Bench) -> None:
    networks = bench.provider.networks
    assert networks is not None
    other = Handle(await bench.tenancy("identity-other.uid-9"), NETWORK.name)
    first, second = await bench.network(), await bench.network(other)
    assert first.id != second.id
    await networks.remove_network(other)
    assert await networks.find_network(NETWORK) == first


@on_every_provider("security_groups")
async def test_the_rules_of_a_group_are_brought_up_to_date(bench: Bench) -> None:
    groups = bench.provider.security_groups
    assert groups is not None
    await bench.tenancy()
    assert await groups.find_group(GROUP) is None
    await groups.converge_group(CloudSecurityGroup(handle=GROUP, rules=(SSH,)))
    await groups.converge_group(CloudSecurityGroup(handle=GROUP, rules=(SSH, WEB)))
    found = await groups.find_group(GROUP)
    assert found is not None
    assert sorted(found.rules) == sorted([SSH, WEB])
    await groups.converge_group(CloudSecurityGroup(handle=GROUP))
    assert await everything(groups.groups()) == [CloudSecurityGroup(handle=GROUP)]


@on_every_provider("security_groups", "ports")
async def test_a_group_stays_while_a_port_is_in_it(bench: Bench) -> None:
    groups, ports = bench.provider.security_groups, bench.provider.ports
    assert groups is not None
    assert ports is not None
    await bench.network()
    await groups.converge_group(CloudSecurityGroup(handle=GROUP, rules=(SSH,)))
    await ports.converge_port(replace(port_spec(), groups=(GROUP.name,)))
    with pytest.raises(InUse):
        await groups.remove_group(GROUP)
    await ports.converge_port(port_spec())
    await groups.remove_group(GROUP)
    await groups.remove_group(GROUP)
    assert await groups.find_group(GROUP) is None
    await groups.converge_group(CloudSecurityGroup(handle=GROUP))
    await ports.converge_port(replace(port_spec(), groups=(GROUP.name,)))
    await ports.remove_port(port_spec().handle)
    await groups.remove_group(GROUP)
