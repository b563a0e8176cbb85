"""Security groups from their making to their end, over a simulated cloud in simulated time."""

from remuda.providers.contract.common import Handle
from remuda.providers.contract.networks import CloudRule
from remuda.providers.contract.networks import CloudSecurityGroup as CloudGroup
from remuda.providers.contract.servers import CloudPortSpec
from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.networks.routes import NETWORKS
from remuda.region.networks.rules import to_cloud
from remuda.region.securitygroups.routes import SECURITY_GROUPS
from remuda.region.securitygroups.rules import handle_of
from remuda.resources.conventions import identity_of
from tests.kit.region.network_requests import all_is_gone, make_group
from tests.kit.region.networks import TENANT, Ground, on_ground

SSH = {"direction": "ingress", "protocol": "tcp", "port": 22}
RANGE = {"direction": "egress", "protocol": "udp", "port": 5, "portMax": 9, "prefix": "10.0.0.0/8"}
ICMP = {"direction": "ingress", "protocol": "icmp"}


async def where(ground: Ground, group: str) -> Handle:
    stored = await ground.store.get(SecurityGroup, group)
    return handle_of(stored, await ground.store.get(Identity, identity_of(stored)))


async def at_cloud(ground: Ground, group: str) -> CloudGroup | None:
    assert ground.provider.security_groups is not None
    return await ground.provider.security_groups.find_group(await where(ground, group))


async def put_port(ground: Ground, network: str, group: str) -> Handle:
    """Put a port of nobody's into a group at the cloud."""
    stored = await ground.store.get(Network, network)
    at = to_cloud(stored, await ground.store.get(Identity, identity_of(stored)))
    handle = Handle(at.tenancy, "port-x.y")
    inside = (await where(ground, group)).name
    assert ground.provider.ports is not None
    await ground.provider.ports.converge_port(
        CloudPortSpec(handle=handle, network=at.name, address="10.0.0.130", mac="02:00:00:00:00:01", groups=(inside,))
    )
    return handle


def test_a_group_is_made_when_its_network_is_there_with_each_rule_once() -> None:
    async def scenario(ground: Ground) -> None:
        name = await make_group(
            ground, await ground.make_network(), SSH, RANGE, SSH, {**SSH, "prefix": "0.0.0.0/0"}, ICMP
        )
        await ground.rest()
        reply = await ground.groups.ask(TENANT).get(f"{SECURITY_GROUPS}/{name}")
        assert reply.json["metadata"]["provisioningStatus"] == "provisioned"
        found = await at_cloud(ground, name)
        assert found is not None
        assert found.rules == (
            CloudRule(direction="ingress", protocol="tcp", first_port=22, last_port=22),
            CloudRule(direction="egress", protocol="udp", first_port=5, last_port=9, prefix="10.0.0.0/8"),
            CloudRule(direction="ingress", protocol="icmp"),
        )
        await ground.look_again()

    on_ground(scenario, at_work=True, seeds=5)


def test_a_group_waits_for_its_network_and_is_woken_by_it() -> None:
    async def scenario(ground: Ground) -> None:
        ground.identity.fail("confirm", times=10_000)
        name = await make_group(ground, await ground.make_network(), SSH)
        await ground.rest()
        condition = await ground.available(SecurityGroup, name)
        assert (condition.reason, condition.message) == ("DependencyNotReady", "its network is being made")
        assert (await ground.at_cloud())["groups"] == []
        ground.identity.fail("confirm", times=0)
        await ground.world.clock.sleep(600)
        assert (await ground.available(SecurityGroup, name)).status == "True"

    on_ground(scenario, at_work=True)


def test_rules_follow_a_put_and_a_group_that_vanished_is_made_again() -> None:
    async def scenario(ground: Ground) -> None:
        name = await make_group(ground, await ground.make_network(), SSH, RANGE)
        await ground.rest()
        body = {"metadata": {"name": "sg"}, "spec": {"rules": [ICMP]}}
        assert (await ground.groups.ask(TENANT).put(f"{SECURITY_GROUPS}/{name}", body)).status == 202
        await ground.rest()
        found = await at_cloud(ground, name)
        assert found is not None
        assert found.rules == (CloudRule(direction="ingress", protocol="icmp"),)
        await ground.look_again()
        assert ground.provider.security_groups is not None
        await ground.provider.security_groups.remove_group(found.handle)
        for driver in ground.drivers:
            await driver.resync()
        await ground.rest()
        assert await at_cloud(ground, name) == found

    on_ground(scenario, at_work=True)


def test_a_group_that_goes_is_gone_at_the_cloud_and_its_network_stays() -> None:
    async def scenario(ground: Ground) -> None:
        network = await ground.make_network()
        name, other = await make_group(ground, network, SSH), await make_group(ground, network)
        await ground.rest()
        assert (await ground.groups.ask(TENANT).delete(f"{SECURITY_GROUPS}/{name}")).status == 202
        await ground.rest()
        assert (await ground.groups.ask(TENANT).get(f"{SECURITY_GROUPS}/{name}")).status == 404
        assert (await ground.at_cloud())["groups"] == [(await where(ground, other)).name]
        assert (await ground.available(Network, network)).status == "True"
        await ground.look_again()

    on_ground(scenario, at_work=True)


def test_a_group_waits_until_no_port_is_in_it() -> None:
    async def scenario(ground: Ground) -> None:
        network = await ground.make_network()
        name = await make_group(ground, network, SSH)
        await ground.rest()
        port = await put_port(ground, network, name)
        assert (await ground.groups.ask(TENANT).delete(f"{SECURITY_GROUPS}/{name}")).status == 202
        await ground.rest()
        assert (await ground.available(SecurityGroup, name)).message == "the provider still has a server in it"
        assert ground.provider.ports is not None
        await ground.provider.ports.remove_port(port)
        await ground.rest()
        assert not (await ground.store.list(SecurityGroup)).items
        assert (await ground.at_cloud())["groups"] == []

    on_ground(scenario, at_work=True)


def test_groups_go_with_their_network_before_it_does_at_whatever_moment() -> None:
    async def scenario(ground: Ground) -> None:
        network = await ground.make_network()
        for _ in range(2):
            await make_group(ground, network, SSH)
        await ground.world.clock.sleep(0.001 * ground.world.seed)
        assert (await ground.networks.ask(TENANT).delete(f"{NETWORKS}/{network}")).status == 202
        await ground.rest()
        await all_is_gone(ground)

    on_ground(scenario, at_work=True, seeds=20)


def test_over_an_ill_cloud_a_group_comes_and_goes_all_the_same() -> None:
    async def scenario(ground: Ground) -> None:
        network = await ground.make_network()
        name = await make_group(ground, network, SSH)
        await ground.world.clock.sleep(600)
        assert (await ground.groups.ask(TENANT).delete(f"{SECURITY_GROUPS}/{name}")).status == 202
        await ground.world.clock.sleep(600)
        ground.world.faults.stop()
        await ground.world.clock.sleep(1800)
        assert [len(each) for each in (await ground.at_cloud()).values()] == [1, 1, 0]
        assert not (await ground.store.list(SecurityGroup)).items

    rates = {"cloud.error": 0.1, "cloud.error_done": 0.1, "cloud.stale": 0.2, "cloud.not_found_yet": 0.2}
    on_ground(scenario, at_work=True, seeds=20, rates=rates)
