"""What the Terraform provider replaces: it is destroyed, and at once made otherwise under the same name."""

from typing import Any

import pytest

from tests.kit.compatibility.environment import CompatibilityEnvironment
from tests.kit.compatibility.examples import EXAMPLES, instance, ssh_authority
from tests.kit.compatibility.resources import INSTANCE, NETWORK, SECURITY_GROUP, SSH_AUTHORITY
from tests.kit.compute.requests import KEY


@pytest.mark.parametrize(
    ("sort", "change"),
    [
        ("network", {"cidr_block": "10.2.0.0/24"}),
        ("ssh authority", {"public_key": KEY.replace("ca@", "other@")}),
        ("ssh authority", {"description": "of mine"}),
        ("ssh authority", {"name": "other"}),
    ],
)
async def test_what_is_replaced_is_another_one(
    environment: CompatibilityEnvironment, sort: str, change: dict[str, Any]
) -> None:
    terraform, resource = environment.provider, EXAMPLES[sort].resource
    config = await EXAMPLES[sort].config(environment)
    made = await terraform.create(resource, config)
    await terraform.destroy(resource, made["id"])
    again = await terraform.create(resource, {**config, **change})
    assert again["id"] != made["id"]


async def test_an_instance_that_is_replaced_is_younger_and_has_its_id_again(
    environment: CompatibilityEnvironment,
) -> None:
    terraform, config = environment.provider, await instance(environment)
    made = await terraform.create(INSTANCE, config)
    authority = await terraform.create(SSH_AUTHORITY, await ssh_authority(environment))
    await terraform.destroy(INSTANCE, made["id"])
    again = await terraform.create(INSTANCE, {**config, "ssh_certificate_authority_id": authority["id"]})
    assert again["id"] == made["id"]
    assert again["creation_time"] > made["creation_time"]


async def test_as_soon_as_an_instance_is_gone_nothing_that_it_used_is_in_use(
    environment: CompatibilityEnvironment,
) -> None:
    terraform, config = environment.provider, await instance(environment)
    authority = await terraform.create(SSH_AUTHORITY, await ssh_authority(environment))
    on_network = {"name": "web", "network_id": config["network_id"], "rules": []}
    group = await terraform.create(SECURITY_GROUP, on_network)
    config |= {"ssh_certificate_authority_id": authority["id"], "security_group_ids": [group["id"]]}
    made = await terraform.create(INSTANCE, config)
    await terraform.destroy(INSTANCE, made["id"])
    for resource, used in ((SSH_AUTHORITY, authority["id"]), (SECURITY_GROUP, group["id"])):
        assert (await terraform.send(resource, "DELETE", used)).status == 202
        await terraform.destroy(resource, used)
    await terraform.destroy(NETWORK, config["network_id"])
