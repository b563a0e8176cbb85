"""What ends with something else: instances with their network, a policy with its project."""

from remuda.compute.kinds import ComputeInstance, ProjectPolicy
from remuda.reconcile.controller import Driver
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import Server
from remuda.resources.crud import find
from remuda.store.objects import Metadata
from tests.compute.asking import is_nothing, settle
from tests.compute.controlling import at_cloud, events, made, network_of, rest, said, stored, timeline
from tests.compute.house import ComputeHouse, in_a_compute


async def _mark(house: ComputeHouse, network: str) -> None:
    """Have a network deleted, as the end of its project does it."""
    found = await house.store.get(Network, network)
    await house.store.delete(Network, network, uid=found.uid)


def test_m18_a_network_that_goes_takes_its_instances_along_and_their_timeline_says_so() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network, spared = await network_of(house), await network_of(house, "spared", prefix="10.1.0.0/16")
        gone = [await made(house, network, f"i{number}") for number in range(3)]
        stays = await made(house, spared, "stays")
        await _mark(house, network)
        for instance in gone:
            await house.until_gone(instance)
            (told,) = [each for each in await timeline(house, instance) if each["event"] == "NetworkDeleted"]
            assert told["network"] == network
        await rest(house)
        assert await find(house.store, Network, network) is None
        assert [each.name for each in (await house.store.list(ComputeInstance)).items] == [stays]
        assert len(at_cloud(house)) == 1

    in_a_compute(scenario)


def test_m18_c09_the_end_of_a_project_reaches_everything_in_it() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        for number in range(3):
            assert (await home.client.post("/api/v2/instances", home.wanted(house, f"i{number}"))).status == 201
        await house.clock.sleep(1.5)
        identity, organization = house.region.identity, house.region.organization
        path = f"/api/v1/organizations/{organization}/projects/{home.project}"
        policy = f"/api/v2/organizations/{organization}/projects/{home.project}/policy"
        assert (await house.root.put(policy, {"deletion": True})).status in {200, 202}
        assert await find(house.store, ProjectPolicy, home.project) is not None
        assert (await identity.client(identity.root).delete(path)).status == 202
        await rest(house, 120)
        assert (await identity.client(identity.root).get(path)).status == 404
        assert await find(house.store, ProjectPolicy, home.project) is None
        await is_nothing(house)
        assert not at_cloud(house)

    in_a_compute(scenario)


def test_a_server_is_not_made_again_on_a_network_that_goes() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network)
        driver = await _alone(house)
        await _mark(house, network)
        await rest(house)
        driver.wake(instance)
        await rest(house)
        assert await find(house.store, Server, instance) is None
        assert (await said(house, instance)).reason in {"NetworkDeleting", "NetworkGone"}
        assert "MadeAgain" not in await events(house, instance)
        assert not at_cloud(house)
        assert not (await stored(house, instance)).is_marked, "nobody told it that its network goes"

    in_a_compute(scenario)


async def _alone(house: ComputeHouse) -> Driver:
    """End what is done beside the controller, and go on without it."""
    await house.app.stop()
    (driver,) = house.app.drivers.values()
    await driver.start()
    return driver


def test_a_policy_whose_project_went_while_nobody_watched_goes() -> None:
    async def scenario(house: ComputeHouse) -> None:
        organization, gone = house.region.organization, "e0000000-0000-4000-8000-00000000000e"
        labels = {"unikorn-cloud.org/organization": organization, "unikorn-cloud.org/project": gone}
        await house.store.create(ProjectPolicy(metadata=Metadata(name=gone, labels=labels)))
        labels["unikorn-cloud.org/project"] = house.region.project
        await house.store.create(ProjectPolicy(metadata=Metadata(name=house.region.project, labels=labels)))
        await rest(house, 400)
        assert await find(house.store, ProjectPolicy, gone) is not None, "it was looked for once"
        await rest(house, 400)
        left = [each.name for each in (await house.store.list(ProjectPolicy)).items]
        assert left == [house.region.project]

    in_a_compute(scenario)
