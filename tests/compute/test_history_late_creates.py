"""What a user reads about an instance while its provider has not answered the create of the server."""

from tests.kit.compute.controllers import network_of, rest
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.requests import at
from tests.kit.compute.timelines import timeline
from tests.kit.identity.environment import expect
from tests.kit.region.environment import NORTH
from tests.kit.region.late_servers import TAKES_S, at_late_servers


async def test_the_instance_and_its_explanation_name_the_provider_until_it_has_answered(
    compute: ComputeEnvironment,
) -> None:
    late = at_late_servers(compute.region)
    network = await network_of(compute)
    instance = await compute.instance(network)
    await rest(compute)
    assert late.creates == 1
    assert (await compute.read(instance))["metadata"]["provisioningStatusDetail"]["reason"] == "ProviderUnavailable"
    explanation = expect(await compute.root.get(f"{at(instance)}/explain"), 200)
    (wait,) = explanation["waitingFor"]
    assert (wait["reason"], wait["resolvedBy"]) == ("ProviderUnavailable", "operator")
    assert "the provider did not respond in time" in wait["message"]
    assert 0 < wait["retryIntervalSeconds"] <= 300
    assert NORTH not in str(explanation["messages"])
    conditions = [each for each in await timeline(compute.root, instance) if each["event"] == "ConditionChanged"]
    assert sum(each["reason"] == "ProviderUnavailable" for each in conditions) == 1
    await rest(compute, TAKES_S)
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
    explanation = expect(await compute.root.get(f"{at(instance)}/explain"), 200)
    assert not explanation["waitingFor"]
