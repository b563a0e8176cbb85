"""What the Terraform provider asks of every resource alike."""

from tests.kit.compatibility.environment import CompatibilityEnvironment
from tests.kit.compatibility.examples import Example, each
from tests.kit.compatibility.provider import reject
from tests.kit.compute.requests import ABSENT
from tests.kit.environment import options

NAMES = ("n", "a--b", "n" * 63)
"""The shortest, the oddest and the longest that the provider lets through."""


@each()
@options(role="administrator")
async def test_every_name_that_the_provider_lets_through_comes_back_as_it_was_sent(
    environment: CompatibilityEnvironment, example: Example
) -> None:
    terraform, config = environment.provider, await example.config(environment)
    for name in NAMES:
        made = await terraform.create(example.resource, {**config, "name": name})
        assert await terraform.refresh(example.resource, made["id"]) == made


@each()
@options(role="administrator")
async def test_a_description_that_is_empty_is_one(environment: CompatibilityEnvironment, example: Example) -> None:
    terraform, config = environment.provider, await example.config(environment, description="")
    made = await terraform.create(example.resource, config)
    assert made["description"] == ""
    assert await terraform.refresh(example.resource, made["id"]) == made


@each("network", "security group", "instance", "file storage", "project", "group")
@options(role="administrator")
async def test_what_has_many_tags_can_be_changed_although_each_change_adds_one(
    environment: CompatibilityEnvironment, example: Example
) -> None:
    tags = {f"tag-{number}": "x" * 300 for number in range(50)}
    terraform, config = environment.provider, await example.config(environment, tags=tags, description="y" * 4096)
    made = await terraform.create(example.resource, config)
    await terraform.update(example.resource, made, {**config, "tags": tags | {"tag-0": "other"}})
    assert (await terraform.refresh(example.resource, made["id"]) or {})["tags"]["tag-0"] == "other"


@each("network", "security group", "file storage", "project", "group")
@options(role="administrator")
async def test_a_rename_is_done_in_place_and_does_not_make_it_younger(
    environment: CompatibilityEnvironment, example: Example
) -> None:
    terraform, config = environment.provider, await example.config(environment)
    made = await terraform.create(example.resource, config)
    await environment.compute.clock.sleep(60)
    await terraform.update(example.resource, made, {**config, "name": "other"})
    await terraform.until_ready(example.resource, made["id"])
    assert await terraform.refresh(example.resource, made["id"]) == {**made, "name": "other"}


@each("network", "security group", "ssh authority", "instance", "file storage")
async def test_what_is_shown_when_it_first_is_provisioned_is_final(
    environment: CompatibilityEnvironment, example: Example
) -> None:
    terraform, config = environment.provider, await example.config(environment)
    async with environment.watching(example.resource) as seen:
        made = await terraform.create(example.resource, config)
        await environment.compute.clock.sleep(1)
    ready = [look for look in seen if look["provisioning_status"] == "provisioned"]
    assert ready == [made] * len(ready) != []
    await environment.compute.clock.sleep(300)
    assert await terraform.refresh(example.resource, made["id"]) == made


@each()
@options(role="administrator")
async def test_what_was_never_there_is_gone(environment: CompatibilityEnvironment, example: Example) -> None:
    assert await environment.provider.refresh(example.resource, ABSENT) is None
    assert (await environment.provider.send(example.resource, "DELETE", ABSENT)).status == 404
    await environment.provider.destroy(example.resource, ABSENT)


@each()
@options(role="administrator")
async def test_a_destroy_that_was_interrupted_is_taken_up_by_the_next(
    environment: CompatibilityEnvironment, example: Example
) -> None:
    terraform = environment.provider
    made = await terraform.create(example.resource, await example.config(environment))
    reject(await terraform.send(example.resource, "DELETE", made["id"]))
    await terraform.destroy(example.resource, made["id"])
    assert await terraform.refresh(example.resource, made["id"]) is None
