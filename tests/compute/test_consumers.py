"""What ends with something else: instances with their network, a policy with its project."""

from remuda.compute.kinds import ComputeInstance, ProjectPolicy
from remuda.reconcile.controller import Controller
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import Server
from remuda.resources.crud import find
from remuda.store.objects import Metadata
from tests.kit.compute.controllers import at_cloud, events, made, network_of, rest, said, stored, timeline
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.requests import is_nothing, settle


async def _mark(compute: ComputeEnvironment, network: str) -> None:
    """Have a network deleted, as the end of its project does it."""
    found = await compute.store.get(Network, network)
    await compute.store.delete(Network, network, uid=found.uid)


async def test_m18_a_network_that_goes_takes_its_instances_along_and_their_timeline_says_so(
    compute: ComputeEnvironment,
) -> None:
    network, spared = await network_of(compute), await network_of(compute, "spared", prefix="10.1.0.0/16")
    gone = [await made(compute, network, f"i{number}") for number in range(3)]
    stays = await made(compute, spared, "stays")
    await _mark(compute, network)
    for instance in gone:
        await compute.until_gone(instance)
        (told,) = [each for each in await timeline(compute, instance) if each["event"] == "NetworkDeleted"]
        assert told["network"] == network
    await rest(compute)
    assert await find(compute.store, Network, network) is None
    assert [each.name for each in (await compute.store.list(ComputeInstance)).items] == [stays]
    assert len(at_cloud(compute)) == 1


async def test_m18_c09_the_end_of_a_project_reaches_everything_in_it(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    for number in range(3):
        assert (await tenant.client.post("/api/v2/instances", tenant.wanted(compute, f"i{number}"))).status == 201
    await compute.clock.sleep(1.5)
    identity, organization = compute.region.identity, compute.region.organization
    path = f"/api/v1/organizations/{organization}/projects/{tenant.project}"
    policy = f"/api/v2/organizations/{organization}/projects/{tenant.project}/policy"
    assert (await compute.root.put(policy, {"deletion": True})).status in {200, 202}
    assert await find(compute.store, ProjectPolicy, tenant.project) is not None
    assert (await identity.client(identity.root).delete(path)).status == 202
    await rest(compute, 120)
    assert (await identity.client(identity.root).get(path)).status == 404
    assert await find(compute.store, ProjectPolicy, tenant.project) is None
    await is_nothing(compute)
    assert not at_cloud(compute)


async def test_a_server_is_not_recreated_on_a_network_that_goes(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    instance = await made(compute, network)
    driver = await _alone(compute)
    await _mark(compute, network)
    await rest(compute)
    driver.enqueue(instance)
    await rest(compute)
    assert await find(compute.store, Server, instance) is None
    assert (await said(compute, instance)).reason in {"NetworkDeleting", "NetworkNotFound"}
    assert "ServerRecreated" not in await events(compute, instance)
    assert not at_cloud(compute)
    assert not (await stored(compute, instance)).is_deleting, "nobody told it that its network goes"


async def _alone(compute: ComputeEnvironment) -> Controller:
    """End what is done beside the controller, and go on without it."""
    await compute.app.stop()
    (driver,) = compute.app.running_controllers.values()
    await driver.start()
    return driver


async def test_a_policy_whose_project_went_while_nobody_watched_goes(compute: ComputeEnvironment) -> None:
    organization, gone = compute.region.organization, "e0000000-0000-4000-8000-00000000000e"
    labels = {"unikorn-cloud.org/organization": organization, "unikorn-cloud.org/project": gone}
    await compute.store.create(ProjectPolicy(metadata=Metadata(name=gone, labels=labels)))
    labels["unikorn-cloud.org/project"] = compute.region.project
    await compute.store.create(ProjectPolicy(metadata=Metadata(name=compute.region.project, labels=labels)))
    await rest(compute, 400)
    assert await find(compute.store, ProjectPolicy, gone) is not None, "it was looked for once"
    await rest(compute, 400)
    left = [each.name for each in (await compute.store.list(ProjectPolicy)).items]
    assert left == [compute.region.project]
