"""Networks and their identities from their making to their end, over a simulated cloud in simulated time."""

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import Handle
from remuda.providers.contract.networks import CloudAddressRange, CloudNetworkSpec, CloudRoute
from remuda.providers.contract.servers import CloudPortSpec
from remuda.region.kinds.networks import Identity, Network, OpenstackIdentity
from remuda.region.networks.routes import NETWORKS
from remuda.region.networks.rules import network_handle, tenancy_of
from remuda.resources.conventions import identity_of
from tests.kit.environment import options
from tests.kit.region.network_requests import NOTHING, REFERENCE, all_is_gone, reference_at
from tests.kit.region.networks import HOME, TENANT, NetworksEnvironment
from tests.kit.region.provider_faults import ILLS
from tests.kit.region.resource_api import ORG, PROJECT


async def handle_of(region_networks: NetworksEnvironment, name: str) -> Handle:
    stored = await region_networks.store.get(Network, name)
    return network_handle(stored, await region_networks.store.get(Identity, identity_of(stored)))


@options(at_work=True, seeds=3)
async def test_a_network_is_made_at_the_cloud_as_its_plan_says(region_networks: NetworksEnvironment) -> None:
    routes = [{"prefix": "172.16.0.0/12", "nexthop": "10.0.0.9"}]
    name = await region_networks.make_network(routes=routes)
    await region_networks.rest()
    reply = await region_networks.networks.ask(TENANT).get(f"{NETWORKS}/{name}")
    metadata = reply.json["metadata"]
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("provisioned", "unknown")
    assert metadata["provisioningStatusDetail"] == {"reason": "Provisioned", "message": "provisioned"}
    handle = await handle_of(region_networks, name)
    assert region_networks.provider.networks is not None
    found = await region_networks.provider.networks.find_network(handle)
    assert found is not None
    assert found.spec == CloudNetworkSpec(
        handle=handle,
        prefix="10.0.0.0/24",
        gateway="10.0.0.1",
        pool=CloudAddressRange("10.0.0.128", "10.0.0.254"),
        nameservers=("8.8.8.8",),
        routes=(CloudRoute("172.16.0.0/12", "10.0.0.9"),),
    )
    seen = (await region_networks.store.get(Network, name)).status.openstack
    assert seen is not None
    assert (seen.network_id, seen.subnet_id) == (found.id, found.subnet_id)
    assert seen.storage_range is not None
    assert (seen.storage_range.start_ip, seen.storage_range.end_ip) == ("10.0.0.16", "10.0.0.127")
    await region_networks.confirm_absence()


@options(at_work=True)
async def test_an_identity_has_a_tenancy_whose_key_is_written_down(region_networks: NetworksEnvironment) -> None:
    await region_networks.make_network()
    await region_networks.rest()
    (hidden,) = (await region_networks.store.list(Identity)).items
    record = await region_networks.store.get(OpenstackIdentity, hidden.name)
    assert region_networks.provider.tenancies is not None
    tenancy = await region_networks.provider.tenancies.find_tenancy(tenancy_of(hidden.metadata))
    assert tenancy is not None
    assert (tenancy.organization, tenancy.project) == (ORG, PROJECT)
    assert tenancy.public_key == record.spec.ssh_public_key
    assert record.spec.ssh_private_key is not None


@options(at_work=True)
async def test_what_a_network_costs_is_confirmed_and_held_again_if_it_had_lapsed(
    region_networks: NetworksEnvironment,
) -> None:
    region_networks.identity.fail("confirm", times=3)
    name = await region_networks.make_network()
    region_networks.identity.lapse((await region_networks.store.get(Network, name)).spec.operation)
    assert not region_networks.identity.held
    await region_networks.rest()
    assert len(region_networks.identity.confirmed) == len(region_networks.identity.held) == 1
    assert (await region_networks.available(Network, name)).status == "True"
    await region_networks.confirm_absence()


@options(at_work=True)
async def test_a_network_whose_place_in_the_quota_another_took_is_not_made_and_can_still_go(
    region_networks: NetworksEnvironment,
) -> None:
    region_networks.identity.fail("confirm")
    name = await region_networks.make_network()
    region_networks.identity.limits["networks"] = 0
    region_networks.identity.lapse((await region_networks.store.get(Network, name)).spec.operation)
    await region_networks.rest()
    assert (await region_networks.available(Network, name)).reason == "QuotaExceeded"
    assert (await region_networks.at_cloud())["networks"] == []
    assert (await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{name}")).status == 202
    await region_networks.rest()
    await all_is_gone(region_networks)


@options(at_work=True)
async def test_name_servers_and_routes_follow_a_put(region_networks: NetworksEnvironment) -> None:
    name = await region_networks.make_network(routes=[{"prefix": "172.16.0.0/12", "nexthop": "10.0.0.9"}])
    await region_networks.rest()
    body = {"metadata": {"name": "net"}, "spec": {"dnsNameservers": ["1.1.1.1", "9.9.9.9"]}}
    assert (await region_networks.networks.ask(TENANT).put(f"{NETWORKS}/{name}", body)).status == 202
    await region_networks.rest()
    assert region_networks.provider.networks is not None
    found = await region_networks.provider.networks.find_network(await handle_of(region_networks, name))
    assert found is not None
    assert (found.spec.nameservers, found.spec.routes) == (("1.1.1.1", "9.9.9.9"), ())
    stored = await region_networks.store.get(Network, name)
    assert stored.status.observed_generation == stored.metadata.generation
    await region_networks.confirm_absence()


@options(at_work=True)
async def test_a_network_and_a_tenancy_that_vanish_are_recreated_when_somebody_looks(
    region_networks: NetworksEnvironment,
) -> None:
    name = await region_networks.make_network()
    await region_networks.rest()
    before, handle = await region_networks.at_cloud(), await handle_of(region_networks, name)
    assert region_networks.provider.networks is not None
    assert region_networks.provider.tenancies is not None
    await region_networks.provider.networks.remove_network(handle)
    await region_networks.provider.tenancies.remove_tenancy(handle.tenancy)
    for driver in region_networks.drivers:
        await driver.resync()
        await region_networks.rest()
    assert await region_networks.at_cloud() == before


# The end.


@options(at_work=True, seeds=3)
async def test_a_network_that_goes_leaves_nothing_at_the_cloud_or_with_identity(
    region_networks: NetworksEnvironment,
) -> None:
    names = [await region_networks.make_network(), await region_networks.make_network()]
    await region_networks.rest()
    assert [len(each) for each in (await region_networks.at_cloud()).values()] == [2, 2, 0]
    client = region_networks.networks.ask(TENANT)
    assert (await client.delete(f"{NETWORKS}/{names[0]}")).status == 202
    await region_networks.rest()
    assert (await client.get(f"{NETWORKS}/{names[0]}")).status == 404
    assert [len(each) for each in (await region_networks.at_cloud()).values()] == [1, 1, 0]
    assert (await client.delete(f"{NETWORKS}/{names[1]}")).status == 202
    await region_networks.rest()
    await all_is_gone(region_networks)


@options(at_work=True, seeds=20)
async def test_a_network_goes_at_whatever_moment_it_is_given_up(region_networks: NetworksEnvironment) -> None:
    name = await region_networks.make_network()
    await region_networks.world.clock.sleep(0.001 * region_networks.world.seed)
    assert (await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{name}")).status == 202
    await region_networks.rest()
    await all_is_gone(region_networks)


@options(at_work=True)
async def test_the_project_is_released_last(region_networks: NetworksEnvironment) -> None:
    name = await region_networks.make_network()
    await region_networks.rest()
    region_networks.identity.fail("remove_reference", times=10_000)
    assert (await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{name}")).status == 202
    await region_networks.rest()
    assert await region_networks.at_cloud() == NOTHING
    assert not (await region_networks.store.list(Network)).items
    assert not (await region_networks.store.list(OpenstackIdentity)).items
    assert not region_networks.identity.held
    assert len(region_networks.identity.ended) == 1, "who saw it before does not hold anything for it again"
    (hidden,) = (await region_networks.store.list(Identity)).items
    assert hidden.is_deleting
    assert region_networks.identity.references[HOME]
    region_networks.identity.fail("remove_reference", times=0)
    await region_networks.world.clock.sleep(600)
    await all_is_gone(region_networks)


@options(at_work=True)
async def test_what_keeps_a_network_keeps_it_when_its_identity_goes_and_nothing_is_taken_from_it(
    region_networks: NetworksEnvironment,
) -> None:
    name = await region_networks.make_network()
    await region_networks.rest()
    client = region_networks.networks.ask(TENANT)
    at = reference_at(name)
    assert (await client.put(at)).status == 201
    (hidden,) = (await region_networks.store.list(Identity)).items
    await region_networks.store.delete(Identity, hidden.name, uid=hidden.uid)  # as when its project goes
    await region_networks.rest()
    assert (await region_networks.available(Network, name)).message == f"in use by {REFERENCE}"
    assert (await region_networks.available(Identity, hidden.name)).reason == "HasChildren"
    assert [len(each) for each in (await region_networks.at_cloud()).values()] == [1, 1, 0]
    assert (await client.delete(at)).status == 204
    await region_networks.rest()
    await all_is_gone(region_networks)


@options(at_work=True)
async def test_a_network_waits_until_the_cloud_has_release_what_is_on_it(
    region_networks: NetworksEnvironment,
) -> None:
    name = await region_networks.make_network()
    await region_networks.rest()
    handle = await handle_of(region_networks, name)
    ports = region_networks.provider.ports
    assert ports is not None
    port = Handle(handle.tenancy, "port-x.y")
    await ports.converge_port(
        CloudPortSpec(handle=port, network=handle.name, address="10.0.0.130", mac="02:00:00:00:00:01")
    )
    assert (await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{name}")).status == 202
    await region_networks.rest()
    assert (await region_networks.available(Network, name)).message == "the provider still has objects on it"
    assert region_networks.identity.held, "it is paid for until it is gone"
    await ports.remove_port(port)
    await region_networks.rest()
    await all_is_gone(region_networks)


# Trouble.


@options(at_work=True, seeds=20, rates=ILLS)
async def test_over_an_ill_cloud_there_is_one_network_and_then_none(region_networks: NetworksEnvironment) -> None:
    name = await region_networks.make_network()
    await region_networks.world.clock.sleep(1800)
    region_networks.world.faults.stop()
    await region_networks.world.clock.sleep(1800)
    assert (await region_networks.available(Network, name)).status == "True"
    assert [len(each) for each in (await region_networks.at_cloud()).values()] == [1, 1, 0]
    assert (await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{name}")).status == 202
    await region_networks.world.clock.sleep(1800)
    await all_is_gone(region_networks)


@options(at_work=True, seeds=20, rates=ILLS)
async def test_a_network_that_goes_from_an_ill_cloud_is_gone_from_it(region_networks: NetworksEnvironment) -> None:
    name = await region_networks.make_network()
    await region_networks.world.clock.sleep(30)
    assert (await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{name}")).status == 202
    for _ in range(360):
        await region_networks.world.clock.sleep(10)
        try:
            await region_networks.store.get(Identity, identity_of(await region_networks.store.get(Network, name)))
        except NotFound:
            break
    region_networks.world.faults.stop()
    await region_networks.world.clock.sleep(1800)
    await all_is_gone(region_networks)
