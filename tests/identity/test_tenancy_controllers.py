"""Organizations and projects from their making to their end, in simulated time."""

from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from remuda.identity.consent import owner_of_domain
from remuda.identity.kinds.tenancy import Domain, Organization, Project
from tests.kit.environment import provided_by
from tests.kit.identity.tenancy import (
    ORGANIZATIONS,
    PLATFORM,
    made,
    make_platform_provider,
    organization,
    project,
    provider,
    with_domain,
)
from tests.kit.identity.tenancy_controllers import CLAIM_S, TenancyControllers, tenancy_controllers
from tests.kit.simulation.runner import World, simulate

GOES = ", deleted first; if one stays, its own conditions name the cause, and an operator can remove its reference"


def run_tenancy_controllers(
    scenario: Callable[[TenancyControllers], Coroutine[Any, Any, None]], seeds: int = 5
) -> None:
    async def run(world: World) -> None:
        async with tenancy_controllers(world) as farm:
            await scenario(farm)

    simulate(run, seeds)


tenancy = provided_by(run_tenancy_controllers)


async def test_organizations_and_projects_become_provisioned_and_healthy(tenancy: TenancyControllers) -> None:
    home, inside = await tenancy.make()
    for path in (f"{ORGANIZATIONS}/{home}", f"{ORGANIZATIONS}/{home}/projects/{inside}"):
        metadata = await tenancy.read(path)
        assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("provisioned", "healthy")
        assert metadata["provisioningStatusDetail"] == {"reason": "Provisioned", "message": "provisioned"}
        assert metadata["healthStatusDetail"]["reason"] == "Healthy"
    await tenancy.confirm_absence()


async def test_both_are_provisioned_again_in_no_time_after_a_put(tenancy: TenancyControllers) -> None:
    await make_platform_provider(tenancy.store)
    home, inside = await tenancy.make(with_domain())
    client, path = tenancy.api.ask(PLATFORM), f"{ORGANIZATIONS}/{home}"
    changes = {
        path: [organization("new"), with_domain("other.example"), organization("newer")],
        f"{path}/projects/{inside}": [project(name="new"), project(name="newer")],
    }
    for place, bodies in changes.items():
        for body in bodies:
            assert (await client.put(place, body)).status == 200
            seen = [(await tenancy.read(place))["provisioningStatus"]]
            for _ in range(20):
                await tenancy.world.clock.sleep(0.01)
                seen.append((await tenancy.read(place))["provisioningStatus"])
            again = seen.index("provisioned")
            assert set(seen[:again]) <= {"provisioning"}, "until then it is being looked at"
            assert set(seen[again:]) == {"provisioned"}
    stored = await tenancy.store.get(Organization, home)
    assert stored.status.observed_generation == stored.metadata.generation
    await tenancy.confirm_absence()


async def test_a_project_goes_when_the_last_reference_does(tenancy: TenancyControllers) -> None:
    home, inside = await tenancy.make()
    path = f"{ORGANIZATIONS}/{home}/projects/{inside}"
    for name in ("one", "two"):
        assert (await tenancy.put_reference(path, name)).status == 201
    assert (await tenancy.api.ask(PLATFORM).delete(path)).status == 202
    await tenancy.rest()
    metadata = await tenancy.read(path)
    assert metadata["provisioningStatus"] == "deprovisioning"
    assert metadata["provisioningStatusDetail"] == {
        "reason": "InUse",
        "message": f"in use by server one of region, server two of region{GOES}",
    }
    await tenancy.drop_reference(path, "one")
    await tenancy.rest()
    assert (await tenancy.read(path))["provisioningStatusDetail"]["message"] == f"in use by server two of region{GOES}"
    await tenancy.drop_reference(path, "two")
    await tenancy.rest()
    assert await tenancy.is_gone(path)
    assert (await tenancy.drop_reference(path, "two")).status == 404
    await tenancy.confirm_absence()


async def test_a_project_goes_when_no_quota_row_that_is_alive_names_it(tenancy: TenancyControllers) -> None:
    home, inside = await tenancy.make()
    path = f"{ORGANIZATIONS}/{home}/projects/{inside}"
    for name in ("a-row", "b-row", "c-row", "d-row"):
        await tenancy.allocate(home, inside, name)
    assert (await tenancy.api.ask(PLATFORM).delete(path)).status == 202
    await tenancy.rest()
    condition = await tenancy.available(Project, inside)
    named = "4 objects: server a-row of region; server b-row of region; server c-row of region; and more"
    assert (condition.reason, condition.message) == ("InUse", f"in use by allocations of {named}")
    for name in ("a-row", "b-row", "c-row"):
        await tenancy.allocate(home, inside, name, "released")
    await tenancy.allocate(home, inside, "e-row", "unconfirmed")
    await tenancy.allocate(home, inside, "e-row", "released")
    await tenancy.rest()
    message = (await tenancy.available(Project, inside)).message
    assert message == "in use by allocations of 1 object: server d-row of region"
    await tenancy.confirm_absence()
    await tenancy.allocate(home, inside, "d-row", "released")
    await tenancy.rest()
    assert await tenancy.is_gone(path)


async def test_rows_of_other_projects_keep_nobody(tenancy: TenancyControllers) -> None:
    home, inside = await tenancy.make()
    _, other = await tenancy.make()
    await tenancy.allocate(home, other, "row")
    path = f"{ORGANIZATIONS}/{home}/projects/{inside}"
    await tenancy.api.ask(PLATFORM).delete(path)
    await tenancy.rest()
    assert await tenancy.is_gone(path)


async def test_an_organization_goes_with_everything_in_it_and_says_what_it_waits_for(
    tenancy: TenancyControllers,
) -> None:
    home, inside = await tenancy.make()
    path = f"{ORGANIZATIONS}/{home}"
    await made(tenancy.api, f"{path}/oauth2providers", provider())
    await made(tenancy.api, f"{path}/projects", project(name="free"))
    await tenancy.put_reference(f"{path}/projects/{inside}", "one")
    assert (await tenancy.api.ask(PLATFORM).delete(path)).status == 202
    await tenancy.rest()
    metadata = await tenancy.read(path)
    assert metadata["provisioningStatus"] == "deprovisioning"
    assert metadata["provisioningStatusDetail"] == {
        "reason": "HasChildren",
        "message": f"waiting for 1 project: prod ({inside}), in use by server one of region{GOES}",
    }
    await tenancy.confirm_absence()
    await tenancy.drop_reference(f"{path}/projects/{inside}", "one")
    await tenancy.rest()
    assert await tenancy.is_gone(path)
    assert not (await tenancy.store.list(Project)).items
    await tenancy.confirm_absence()


async def test_what_is_paused_stays_as_it_is_over_a_put_and_can_still_go(tenancy: TenancyControllers) -> None:
    home, inside = await tenancy.make()
    path = f"{ORGANIZATIONS}/{home}"
    found = await tenancy.store.get(Organization, home)
    await tenancy.store.update(replace(found, spec=replace(found.spec, pause=True)))
    held = await tenancy.store.get(Project, inside)
    await tenancy.store.update(replace(held, spec=replace(held.spec, pause=True)))
    await make_platform_provider(tenancy.store)
    assert (await tenancy.api.ask(PLATFORM).put(path, with_domain())).status == 200
    assert (await tenancy.api.ask(PLATFORM).put(f"{path}/projects/{inside}", project())).status == 200
    await tenancy.rest()
    assert (await tenancy.store.get(Organization, home)).spec.pause
    assert (await tenancy.store.get(Project, inside)).spec.pause
    assert await owner_of_domain(tenancy.store, "acme.example") is None
    assert (await tenancy.api.ask(PLATFORM).delete(path)).status == 202
    await tenancy.rest()
    assert await tenancy.is_gone(path)


# Domains.


async def test_a_domain_counts_once_its_record_is_published_and_no_longer_when_it_is_given_up(
    tenancy: TenancyControllers,
) -> None:
    await make_platform_provider(tenancy.store)
    home, _ = await tenancy.make(with_domain("ACME.example"))
    assert await owner_of_domain(tenancy.store, "acme.example") is None
    assert (await tenancy.read(f"{ORGANIZATIONS}/{home}"))["provisioningStatus"] == "provisioned"
    await tenancy.prove(home)
    found = await owner_of_domain(tenancy.store, "Acme.Example")
    assert found is not None
    assert found.name == home
    await tenancy.confirm_absence()
    client, path = tenancy.api.ask(PLATFORM), f"{ORGANIZATIONS}/{home}"
    assert (await client.put(path, with_domain("next.example"))).status == 200
    await tenancy.rest()
    assert await owner_of_domain(tenancy.store, "acme.example") is None
    assert await owner_of_domain(tenancy.store, "next.example") is None
    assert not (await tenancy.store.list(Domain)).items
    await tenancy.prove(home)
    assert [each.spec.domain for each in (await tenancy.store.list(Domain)).items] == ["next.example"]
    assert (await client.put(path, organization())).status == 200
    await tenancy.rest()
    assert not (await tenancy.store.list(Domain)).items
    assert (await client.get(f"{path}/domain")).status == 404
    await tenancy.confirm_absence()


async def test_of_two_that_prove_a_domain_at_once_one_has_it_and_the_other_is_told(
    tenancy: TenancyControllers,
) -> None:
    await make_platform_provider(tenancy.store)
    (one, _), (two, _) = await tenancy.make(with_domain("Acme.example")), await tenancy.make(with_domain())
    for each in (one, two):
        assert (await tenancy.available(Organization, each)).status == "True", "a mere claim keeps nobody out"
        tenancy.dns.publish((await tenancy.domain(each))["record"])
    await tenancy.world.clock.sleep(CLAIM_S)
    owner = await owner_of_domain(tenancy.store, "acme.example")
    assert owner is not None
    loser = ({one, two} - {owner.name}).pop()
    request = (await tenancy.store.get(Organization, loser)).spec.domain
    assert (await tenancy.available(Organization, owner.name)).status == "True"
    condition = await tenancy.available(Organization, loser)
    assert (condition.reason, condition.message) == (
        "DomainTaken",
        f"another organization owns the domain {request}",
    )
    assert (await tenancy.domain(loser))["message"] == "another organization has proven this domain"
    await tenancy.confirm_absence()
    assert (await tenancy.api.ask(PLATFORM).delete(f"{ORGANIZATIONS}/{owner.name}")).status == 202
    await tenancy.world.clock.sleep(CLAIM_S)
    heir = await owner_of_domain(tenancy.store, "acme.example")
    assert heir is not None
    assert heir.name == loser
    assert (await tenancy.available(Organization, loser)).status == "True"
