"""Instances that wait for capacity to be rebuilt."""

from tests.kit.compute.controllers import choose, made, network_of, rest
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.region.environment import SOUTH, STANDARD

GPU = "22222222-2222-2222-2222-222222222222"
"""A flavor of which sim-south has four places."""


PLACES = 4


async def waiting(
    compute: ComputeEnvironment, *, flavor: str = STANDARD, wanted: str = GPU, taken: int = PLACES
) -> str:
    """Make an instance of one flavor that is to have another, of which there is none left."""
    network = await network_of(compute, regionId=SOUTH)
    for number in range(taken):
        await compute.region.server(network, f"full-{number}", flavorId=GPU)
    await rest(compute)
    instance = await made(compute, network, flavorId=flavor)
    await choose(compute, instance, flavor_id=wanted)
    await compute.until(instance, "error")
    return instance


async def three_for_one_place(compute: ComputeEnvironment) -> list[str]:
    """Make three instances where one place of the other flavor is left."""
    network = await network_of(compute, regionId=SOUTH)
    for number in range(PLACES - 1):
        await compute.region.server(network, f"full-{number}", flavorId=GPU)
    return [await made(compute, network, f"instance-{number}", flavorId=STANDARD) for number in range(3)]


def machines(compute: ComputeEnvironment) -> list[str]:
    return [each.id for each in compute.region.clouds.clouds[SOUTH].operator.servers()]
