"""The whole of region over a simulated cloud: what is asked for comes to be, and goes."""

from remuda.region.kinds.networks import Address, Identity, OpenstackIdentity
from remuda.region.kinds.servers import Server
from tests.kit.identity.environment import ORGANIZATIONS, expect
from tests.kit.region.environment import UBUNTU, RegionEnvironment
from tests.kit.region.server_view import shown_of

DEBIAN = "b1f0c0de-0002-4000-8000-000000000002"


async def _is_empty(region: RegionEnvironment) -> bool:
    """Tell whether nothing of ours is left at the cloud."""
    provider = region.north.provider
    assert provider.tenancies is not None
    assert provider.servers is not None
    assert provider.networks is not None
    rows = [part async for part in provider.tenancies.tenancies()]
    servers = [part async for part in provider.servers.server_versions()]
    networks = [part async for part in provider.networks.networks()]
    return not any(part for parts in (rows, servers, networks) for part in parts)


async def test_a_server_comes_up_with_its_addresses(region: RegionEnvironment) -> None:
    network = await region.network()
    server = await region.server(network, networking={"publicIP": True})
    read = await region.until(f"/api/v2/servers/{server}", "provisioned")
    assert read["metadata"]["healthStatus"] == "healthy"
    assert read["status"]["powerState"] == "Running"
    assert read["status"]["privateIP"].startswith("10.0.")
    assert read["status"]["publicIP"].startswith("198.51.100.")
    output = expect(await region.root.get(f"/api/v2/servers/{server}/consoleoutput"), 200)
    assert "login:" in output["contents"]


async def test_the_end_of_a_project_is_the_end_of_everything_in_it(region: RegionEnvironment) -> None:
    network = await region.network()
    for number in range(5):
        await region.server(network, f"server-{number}")
    project = f"{ORGANIZATIONS}/{region.organization}/projects/{region.project}"
    root = region.identity.client(region.identity.root)
    assert (await region.root.delete(f"/api/v2/networks/{network}")).status == 403
    assert (await root.delete(project)).status == 202
    await region.until_gone(f"/api/v2/networks/{network}")

    async def is_gone() -> bool:
        return (await root.get(project)).status == 404

    await region.identity.eventually("the project is gone", is_gone)
    for kind in (Identity, OpenstackIdentity, Server, Address):
        assert (await region.store.list(kind)).items == []
    assert await _is_empty(region)


async def test_a_stopped_server_says_so_and_starts_again(region: RegionEnvironment) -> None:
    server = await region.server(await region.network())
    path = f"/api/v2/servers/{server}"
    await region.until(path, "provisioned")
    assert (await region.root.post(f"{path}/stop")).status == 202

    async def has(power: str) -> bool:
        return bool((await region.root.get(path)).json["status"]["powerState"] == power)

    await region.identity.eventually("it is stopped", lambda: has("Stopped"))
    assert (await region.root.post(f"{path}/stop")).status == 202, "it is stopped already"
    assert (await region.root.post(f"{path}/start")).status == 202
    await region.identity.eventually("it runs", lambda: has("Running"))


async def test_another_image_rebuilds_the_server_where_it_is(region: RegionEnvironment) -> None:
    network = await region.network()
    server = await region.server(network)
    path = f"/api/v2/servers/{server}"
    before = await region.until(path, "provisioned")
    images = [image for image in await region.north.provider.images.images() if image.id != UBUNTU]  # type: ignore[union-attr]  # it has them
    other = next(each for each in images if each.architecture == "x86_64" and each.virtualization != "baremetal")
    body = {"metadata": {"name": "server"}, "spec": before["spec"] | {"imageId": other.id}}
    assert expect(await region.root.put(path, body), 202)["spec"]["imageId"] == other.id
    await region.clock.sleep(1.0)
    after = await region.until(path, "provisioned")
    assert shown_of(after) == shown_of(before)
    stored = await region.store.get(Server, server)
    assert stored.status.image_id == other.id
    assert stored.status.rebuild is None


async def test_a_load_balancer_has_an_address_of_its_own_and_a_public_one_while_it_wants_it(
    region: RegionEnvironment,
) -> None:
    network = await region.network()
    member = {"address": "10.0.1.10", "port": 8080}
    listener = {"name": "http", "protocol": "tcp", "port": 80, "pool": {"members": [member]}}
    spec = {"networkId": network, "publicIP": True, "listeners": [listener]}
    balancer = await region.made("/api/v2/loadbalancers", "lb", spec)
    path = f"/api/v2/loadbalancers/{balancer}"
    read = await region.until(path, "provisioned")
    assert read["status"]["vipAddress"].startswith("10.0.")
    assert read["status"]["publicIP"].startswith("198.51.100.")
    assert read["spec"]["listeners"][0]["idleTimeoutSeconds"] == 60
    spec = {"listeners": read["spec"]["listeners"], "publicIP": False}
    assert (await region.root.put(path, {"metadata": {"name": "lb"}, "spec": spec})).status == 202
    await region.clock.sleep(5.0)
    assert "publicIP" not in (await region.until(path, "provisioned"))["status"]
    assert (await region.root.delete(f"/api/v2/networks/{network}")).status == 202
    await region.until_gone(path)
    await region.until_gone(f"/api/v2/networks/{network}")
    await region.identity.eventually("nothing is left at the cloud", lambda: _is_empty(region))
