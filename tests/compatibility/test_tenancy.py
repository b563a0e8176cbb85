"""Projects and groups, as the Terraform provider has them."""

from typing import Any

from remuda.identity.rbac.roles import role_id
from tests.kit.compatibility.environment import CompatibilityEnvironment
from tests.kit.compatibility.resources import GROUP, NETWORK, PROJECT
from tests.kit.environment import options
from tests.kit.region.environment import NORTH


@options(role="administrator")
async def test_a_group_is_made_read_changed_imported_and_destroyed(environment: CompatibilityEnvironment) -> None:
    terraform, identity = environment.provider, environment.compute.region.identity
    account = (await identity.account(environment.compute.region.organization, name="robot")).id
    user = await identity.user("bob@example.com", environment.compute.region.organization)
    config: dict[str, Any] = {
        "name": "ops",
        "role_ids": [],
        "service_account_ids": [],
        "description": None,
        "tags": None,
    }
    made = await terraform.create(GROUP, config)
    assert await terraform.refresh(GROUP, made["id"]) == made
    more = {"role_ids": [role_id("user"), role_id("reader")], "service_account_ids": [account], "tags": {"a": "b"}}
    changed = await terraform.update(GROUP, made, {**config, **more})
    changed = await terraform.update(GROUP, changed, {**config, "user_ids": [user]})
    await terraform.update(GROUP, changed, {**config, "user_ids": [], "description": "nobody"})
    await terraform.destroy(GROUP, made["id"])
    assert await terraform.refresh(GROUP, made["id"]) is None


@options(role="administrator")
async def test_who_is_in_a_group_is_told_as_subjects_too_and_stays_though_those_are_not_sent_back(
    environment: CompatibilityEnvironment,
) -> None:
    terraform = environment.provider
    user = await environment.compute.region.identity.user("bob@example.com", environment.compute.region.organization)
    config = {"name": "ops", "role_ids": [], "service_account_ids": [], "user_ids": [user]}
    made = await terraform.create(GROUP, config)
    for change in ({"tags": {"a": "b"}}, {"description": "of bob"}):
        await terraform.update(GROUP, made, {**config, **change})
        (subject,) = (await terraform.send(GROUP, "GET", made["id"])).json["spec"]["subjects"]
        assert (subject["id"], subject["email"]) == ("bob@example.com", "bob@example.com")


@options(role="administrator")
async def test_a_project_is_made_read_changed_imported_and_destroyed(environment: CompatibilityEnvironment) -> None:
    terraform = environment.provider
    group = await terraform.create(GROUP, {"name": "ops", "role_ids": [], "service_account_ids": []})
    config: dict[str, Any] = {"name": "shop", "group_ids": [], "description": None, "tags": None}
    made = await terraform.create(PROJECT, config)
    assert made["provisioning_status"] == "provisioned"
    assert await terraform.refresh(PROJECT, made["id"]) == made
    more = {"group_ids": [group["id"]], "tags": {"a": "b"}, "description": "of mine"}
    changed = await terraform.update(PROJECT, made, {**config, **more})
    await terraform.update(PROJECT, changed, config)
    await terraform.destroy(PROJECT, made["id"])
    assert await terraform.refresh(PROJECT, made["id"]) is None
    await terraform.destroy(GROUP, group["id"])


@options(role="administrator")
async def test_a_project_can_be_used_as_soon_as_it_is_there_and_takes_its_network_along(
    environment: CompatibilityEnvironment,
) -> None:
    terraform, organization = environment.provider, environment.compute.region.organization
    project = await terraform.create(PROJECT, {"name": "shop", "group_ids": []})
    config = {"name": "net", "organization": organization, "project_id": project["id"], "region_id": NORTH}
    network = await terraform.create(NETWORK, {**config, "cidr_block": "10.2.0.0/24"})
    await terraform.destroy(PROJECT, project["id"])
    assert await terraform.refresh(NETWORK, network["id"]) is None
