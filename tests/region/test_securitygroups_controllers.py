"""Security groups from their making to their end, over a simulated cloud in simulated time."""

from remuda.providers.contract.common import Handle
from remuda.providers.contract.networks import CloudRule
from remuda.providers.contract.networks import CloudSecurityGroup as CloudGroup
from remuda.providers.contract.servers import CloudPortSpec
from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.networks.routes import NETWORKS
from remuda.region.networks.rules import network_handle
from remuda.region.securitygroups.routes import SECURITY_GROUPS
from remuda.region.securitygroups.rules import group_handle
from remuda.resources.conventions import identity_of
from tests.kit.environment import options
from tests.kit.region.network_requests import all_is_gone, make_group
from tests.kit.region.networks import TENANT, NetworksEnvironment

SSH = {"direction": "ingress", "protocol": "tcp", "port": 22}
RANGE = {"direction": "egress", "protocol": "udp", "port": 5, "portMax": 9, "prefix": "10.0.0.0/8"}
ICMP = {"direction": "ingress", "protocol": "icmp"}


async def where(region_networks: NetworksEnvironment, group: str) -> Handle:
    stored = await region_networks.store.get(SecurityGroup, group)
    return group_handle(stored, await region_networks.store.get(Identity, identity_of(stored)))


async def at_cloud(region_networks: NetworksEnvironment, group: str) -> CloudGroup | None:
    assert region_networks.provider.security_groups is not None
    return await region_networks.provider.security_groups.find_group(await where(region_networks, group))


async def put_port(region_networks: NetworksEnvironment, network: str, group: str) -> Handle:
    """Put a port of nobody's into a group at the cloud."""
    stored = await region_networks.store.get(Network, network)
    at = network_handle(stored, await region_networks.store.get(Identity, identity_of(stored)))
    handle = Handle(at.tenancy, "port-x.y")
    inside = (await where(region_networks, group)).name
    assert region_networks.provider.ports is not None
    await region_networks.provider.ports.converge_port(
        CloudPortSpec(handle=handle, network=at.name, address="10.0.0.130", mac="02:00:00:00:00:01", groups=(inside,))
    )
    return handle


@options(at_work=True, seeds=5)
async def test_a_group_is_made_when_its_network_is_there_with_each_rule_once(
    region_networks: NetworksEnvironment,
) -> None:
    name = await make_group(
        region_networks, await region_networks.make_network(), SSH, RANGE, SSH, {**SSH, "prefix": "0.0.0.0/0"}, ICMP
    )
    await region_networks.rest()
    reply = await region_networks.groups.ask(TENANT).get(f"{SECURITY_GROUPS}/{name}")
    assert reply.json["metadata"]["provisioningStatus"] == "provisioned"
    found = await at_cloud(region_networks, name)
    assert found is not None
    assert found.rules == (
        CloudRule(direction="ingress", protocol="tcp", first_port=22, last_port=22),
        CloudRule(direction="egress", protocol="udp", first_port=5, last_port=9, prefix="10.0.0.0/8"),
        CloudRule(direction="ingress", protocol="icmp"),
    )
    await region_networks.confirm_absence()


@options(at_work=True)
async def test_a_group_waits_for_its_network_and_is_woken_by_it(region_networks: NetworksEnvironment) -> None:
    region_networks.identity.fail("confirm", times=10_000)
    name = await make_group(region_networks, await region_networks.make_network(), SSH)
    await region_networks.rest()
    condition = await region_networks.available(SecurityGroup, name)
    assert (condition.reason, condition.message) == ("DependencyNotReady", "its network is being created")
    assert (await region_networks.at_cloud())["groups"] == []
    region_networks.identity.fail("confirm", times=0)
    await region_networks.world.clock.sleep(600)
    assert (await region_networks.available(SecurityGroup, name)).status == "True"


@options(at_work=True)
async def test_rules_follow_a_put_and_a_group_that_vanished_is_recreated(region_networks: NetworksEnvironment) -> None:
    name = await make_group(region_networks, await region_networks.make_network(), SSH, RANGE)
    await region_networks.rest()
    body = {"metadata": {"name": "sg"}, "spec": {"rules": [ICMP]}}
    assert (await region_networks.groups.ask(TENANT).put(f"{SECURITY_GROUPS}/{name}", body)).status == 202
    await region_networks.rest()
    found = await at_cloud(region_networks, name)
    assert found is not None
    assert found.rules == (CloudRule(direction="ingress", protocol="icmp"),)
    await region_networks.confirm_absence()
    assert region_networks.provider.security_groups is not None
    await region_networks.provider.security_groups.remove_group(found.handle)
    for driver in region_networks.drivers:
        await driver.resync()
    await region_networks.rest()
    assert await at_cloud(region_networks, name) == found


@options(at_work=True)
async def test_a_group_that_goes_is_gone_at_the_cloud_and_its_network_stays(
    region_networks: NetworksEnvironment,
) -> None:
    network = await region_networks.make_network()
    name, other = await make_group(region_networks, network, SSH), await make_group(region_networks, network)
    await region_networks.rest()
    assert (await region_networks.groups.ask(TENANT).delete(f"{SECURITY_GROUPS}/{name}")).status == 202
    await region_networks.rest()
    assert (await region_networks.groups.ask(TENANT).get(f"{SECURITY_GROUPS}/{name}")).status == 404
    assert (await region_networks.at_cloud())["groups"] == [(await where(region_networks, other)).name]
    assert (await region_networks.available(Network, network)).status == "True"
    await region_networks.confirm_absence()


@options(at_work=True)
async def test_a_group_waits_until_no_port_is_in_it(region_networks: NetworksEnvironment) -> None:
    network = await region_networks.make_network()
    name = await make_group(region_networks, network, SSH)
    await region_networks.rest()
    port = await put_port(region_networks, network, name)
    assert (await region_networks.groups.ask(TENANT).delete(f"{SECURITY_GROUPS}/{name}")).status == 202
    await region_networks.rest()
    assert (await region_networks.available(SecurityGroup, name)).message == "a server at the provider still uses it"
    assert region_networks.provider.ports is not None
    await region_networks.provider.ports.remove_port(port)
    await region_networks.rest()
    assert not (await region_networks.store.list(SecurityGroup)).items
    assert (await region_networks.at_cloud())["groups"] == []


@options(at_work=True, seeds=20)
async def test_groups_go_with_their_network_before_it_does_at_whatever_moment(
    region_networks: NetworksEnvironment,
) -> None:
    network = await region_networks.make_network()
    for _ in range(2):
        await make_group(region_networks, network, SSH)
    await region_networks.world.clock.sleep(0.001 * region_networks.world.seed)
    assert (await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{network}")).status == 202
    await region_networks.rest()
    await all_is_gone(region_networks)


@options(
    at_work=True,
    seeds=20,
    rates={"cloud.error": 0.1, "cloud.error_after_write": 0.1, "cloud.stale": 0.2, "cloud.not_visible_yet": 0.2},
)
async def test_over_an_ill_cloud_a_group_comes_and_goes_all_the_same(region_networks: NetworksEnvironment) -> None:
    network = await region_networks.make_network()
    name = await make_group(region_networks, network, SSH)
    await region_networks.world.clock.sleep(600)
    assert (await region_networks.groups.ask(TENANT).delete(f"{SECURITY_GROUPS}/{name}")).status == 202
    await region_networks.world.clock.sleep(600)
    region_networks.world.faults.stop()
    await region_networks.world.clock.sleep(1800)
    assert [len(each) for each in (await region_networks.at_cloud()).values()] == [1, 1, 0]
    assert not (await region_networks.store.list(SecurityGroup)).items
