"""Clouds that fail for a while, of which the Terraform provider sees nothing, and clouds that say no."""

from math import inf
from typing import Any

import pytest

from remuda.providers.contract.common import Rejected
from tests.kit.compatibility.environment import CompatibilityEnvironment, statuses
from tests.kit.compatibility.examples import EXAMPLES, instance
from tests.kit.compatibility.provider import PENDING, DiagnosticError
from tests.kit.compatibility.resources import INSTANCE, NETWORK
from tests.kit.compute.requests import GPUS
from tests.kit.compute.updates import ROCKY


@pytest.mark.parametrize(
    ("sort", "verb"),
    [
        ("network", "converge_tenancy"),
        ("network", "converge_network"),
        ("security group", "converge_group"),
        ("file storage", "converge_storage"),
        ("instance", "converge_port"),
        ("instance", "create_server"),
    ],
)
async def test_a_cloud_that_fails_for_a_while_is_no_error_to_who_makes_something(
    environment: CompatibilityEnvironment, sort: str, verb: str
) -> None:
    resource, config = EXAMPLES[sort].resource, await EXAMPLES[sort].config(environment)
    async with environment.watching(resource) as seen:
        with environment.failing(verb) as failed:
            made = await environment.provider.create(resource, config)
    assert len(failed) == 5
    assert set(statuses(seen, made["id"])) - PENDING == {"provisioned"}


@pytest.mark.parametrize(
    ("sort", "verb", "change"),
    [
        ("network", "converge_network", {"dns_nameservers": ["192.0.2.53"]}),
        ("instance", "rebuild_server", {"image_id": ROCKY}),
    ],
)
async def test_a_cloud_that_fails_for_a_while_is_no_error_to_who_changes_something(
    environment: CompatibilityEnvironment, sort: str, verb: str, change: dict[str, Any]
) -> None:
    terraform, resource = environment.provider, EXAMPLES[sort].resource
    config = await EXAMPLES[sort].config(environment)
    made = await terraform.create(resource, config)
    async with environment.watching(resource) as seen:
        with environment.failing(verb) as failed:
            await terraform.update(resource, made, {**config, **change})
            await terraform.until_ready(resource, made["id"])
    assert len(failed) == 5
    assert set(statuses(seen, made["id"])) == {"provisioning", "provisioned"}


@pytest.mark.parametrize(
    ("sort", "verb"),
    [
        ("instance", "remove_server"),
        ("instance", "remove_port"),
        ("security group", "remove_group"),
        ("file storage", "remove_storage"),
        ("network", "remove_network"),
    ],
)
async def test_a_cloud_that_fails_for_a_while_is_no_error_to_who_destroys_something(
    environment: CompatibilityEnvironment, sort: str, verb: str
) -> None:
    terraform, resource = environment.provider, EXAMPLES[sort].resource
    made = await terraform.create(resource, await EXAMPLES[sort].config(environment))
    async with environment.watching(resource) as seen:
        with environment.failing(verb) as failed:
            await terraform.destroy(resource, made["id"])
    assert len(failed) == 5
    assert set(statuses(seen, made["id"])) <= {"provisioned", "deprovisioning"}


async def test_an_instance_without_capacity_is_an_error_and_can_be_changed_destroyed_and_recreated(
    environment: CompatibilityEnvironment,
) -> None:
    terraform, config = environment.provider, await instance(environment, flavor_id=GPUS)
    full = [await terraform.create(INSTANCE, {**config, "name": f"full-{number}"}) for number in range(4)]
    with pytest.raises(DiagnosticError, match="was created but transitioned to 'error'"):
        await terraform.create(INSTANCE, config)
    (failed,) = [each for each in await terraform.all(INSTANCE) if each["name"] == "web"]
    await terraform.update(INSTANCE, failed, {**config, "tags": {"team": "a"}})
    with pytest.raises(DiagnosticError, match="transitioned to 'error'"):
        await terraform.until_ready(INSTANCE, failed["id"])
    async with environment.watching(INSTANCE) as seen:
        await terraform.destroy(INSTANCE, failed["id"])
    assert statuses(seen, failed["id"]) == ["error", "deprovisioning"]
    await terraform.destroy(INSTANCE, full[0]["id"])
    again = await terraform.create(INSTANCE, config)
    assert again["power_state"] == "Running"


async def test_a_network_that_the_cloud_rejects_is_an_error_and_can_be_destroyed(
    environment: CompatibilityEnvironment,
) -> None:
    terraform = environment.provider
    with environment.failing("converge_network", lambda: Rejected("not here"), times=inf):
        with pytest.raises(DiagnosticError, match="was created but transitioned to 'error'"):
            await terraform.create(NETWORK, environment.net)
        (failed,) = await terraform.all(NETWORK)
        async with environment.watching(NETWORK) as seen:
            await terraform.destroy(NETWORK, failed["id"])
    assert statuses(seen, failed["id"]) == ["error", "deprovisioning"]
    await terraform.create(NETWORK, environment.net)
