"""Proofs of domains: what counts as one, how long it lasts, and that lookups stay few."""

from collections.abc import Callable, Coroutine
from typing import Any

from remuda.access.principal import Principal
from remuda.identity.consent import owner_of_domain
from remuda.identity.kinds.tenancy import Domain, DomainSpec, Organization, domain_id
from remuda.identity.tenancy.domains import txt_record
from remuda.resources.conventions import ORGANIZATION
from remuda.store.objects import Metadata
from tests.kit.environment import provided_by
from tests.kit.identity.tenancy import (
    ORGANIZATIONS,
    PLATFORM,
    administrator,
    make_platform_provider,
    organization,
    stranger,
    with_domain,
)
from tests.kit.identity.tenancy_controllers import (
    CLAIM_S,
    GRACE_S,
    PROOF_S,
    TenancyControllers,
    tenancy_controllers,
)
from tests.kit.simulation.runner import World, simulate


def run_with_provider(scenario: Callable[[TenancyControllers], Coroutine[Any, Any, None]], seeds: int = 3) -> None:
    async def run(world: World) -> None:
        async with tenancy_controllers(world) as farm:
            await make_platform_provider(farm.store)
            await scenario(farm)

    simulate(run, seeds)


tenancy = provided_by(run_with_provider)


async def owner(tenancy: TenancyControllers, domain: str = "acme.example") -> str:
    found = await owner_of_domain(tenancy.store, domain)
    return "" if found is None else found.name


async def approve(tenancy: TenancyControllers, home: str, domain: str, who: Principal = PLATFORM) -> int:
    path = f"{ORGANIZATIONS}/{home}/domain/approval"
    return (await tenancy.api.ask(who).put(path, {"domain": domain})).status


async def test_m27_the_owner_is_told_what_to_publish_and_a_record_of_another_proves_nothing(
    tenancy: TenancyControllers,
) -> None:
    (one, _), (two, _) = await tenancy.make(with_domain("ACME.example")), await tenancy.make(with_domain())
    told = await tenancy.domain(one)
    record = told.pop("record")
    assert told == {
        "domain": "acme.example",
        "isProven": False,
        "proof": None,
        "provenTime": None,
        "message": "the TXT record is not published, so the domain has no effect",
    }
    assert (record["name"], record["type"]) == ("_remuda-challenge.acme.example", "TXT")
    assert record["value"].startswith("remuda-domain-verification=")
    other = (await tenancy.domain(two))["record"]
    assert other["value"] != record["value"]
    of_one = await tenancy.store.get(Organization, one)
    assert txt_record("https://elsewhere.test/identity", of_one).value != record["value"]
    tenancy.dns.publish(other)
    await tenancy.world.clock.sleep(CLAIM_S)
    assert await owner(tenancy) == two, "who proves it has it, whoever claimed it first"
    assert not (await tenancy.domain(one))["isProven"]
    proven = await tenancy.domain(two)
    assert (proven["isProven"], proven["proof"], proven["message"]) == (True, "dns", "the TXT record is published")


async def test_only_members_of_the_organization_are_told(tenancy: TenancyControllers) -> None:
    home, _ = await tenancy.make(with_domain())
    path = f"{ORGANIZATIONS}/{home}/domain"
    assert (await tenancy.api.ask(administrator(home)).get(path)).status == 200
    assert (await tenancy.api.ask(stranger()).get(path)).status == 403


async def test_a_proof_outlives_a_mistake_and_ends_some_time_after_its_record(tenancy: TenancyControllers) -> None:
    home, _ = await tenancy.make(with_domain())
    await tenancy.prove(home)
    published = dict(tenancy.dns.texts)
    for _ in range(2):
        tenancy.dns.texts.clear()
        await tenancy.world.clock.sleep(GRACE_S - PROOF_S)
        assert await owner(tenancy) == home
        assert "is missing" in (await tenancy.domain(home))["message"]
        tenancy.dns.texts.update(published)
        await tenancy.world.clock.sleep(PROOF_S)
        assert (await tenancy.domain(home))["message"] == "the TXT record is published"
    tenancy.dns.texts.clear()
    await tenancy.world.clock.sleep(GRACE_S + 2 * PROOF_S)
    assert await owner(tenancy) == ""
    assert not (await tenancy.store.list(Domain)).items
    tenancy.dns.texts.update(published)
    await tenancy.world.clock.sleep(CLAIM_S)
    assert await owner(tenancy) == home


async def test_silent_name_servers_neither_prove_nor_disprove(tenancy: TenancyControllers) -> None:
    home, _ = await tenancy.make(with_domain())
    tenancy.dns.is_down = True
    await tenancy.prove(home)
    assert await owner(tenancy) == ""
    assert "do not respond" in (await tenancy.domain(home))["message"]
    tenancy.dns.is_down = False
    await tenancy.world.clock.sleep(CLAIM_S)
    assert await owner(tenancy) == home
    tenancy.dns.is_down = True
    await tenancy.world.clock.sleep(2 * GRACE_S)
    assert await owner(tenancy) == home


async def test_a_platform_administrators_word_is_enough_and_can_be_withdrawn(tenancy: TenancyControllers) -> None:
    home, _ = await tenancy.make(with_domain())
    assert await approve(tenancy, home, "acme.example", administrator(home)) == 403
    assert await approve(tenancy, home, "other.example") == 422, "it is about what the administrator has seen"
    assert await owner(tenancy) == ""
    assert await approve(tenancy, home, "Acme.Example") == 200
    await tenancy.rest()
    assert await owner(tenancy) == home
    told = await tenancy.domain(home)
    assert (told["proof"], told["message"]) == ("administrator", "a platform administrator has approved this domain")
    await tenancy.world.clock.sleep(2 * GRACE_S)
    assert await owner(tenancy) == home
    path = f"{ORGANIZATIONS}/{home}/domain/approval"
    assert (await tenancy.api.ask(administrator(home)).delete(path)).status == 403
    assert (await tenancy.api.ask(PLATFORM).delete(path)).status == 204
    await tenancy.rest()
    assert await owner(tenancy) == ""
    assert (await tenancy.api.ask(PLATFORM).delete(path)).status == 404


async def test_an_approval_ends_with_the_claim_and_takes_nothing_from_who_has_proven_the_domain(
    tenancy: TenancyControllers,
) -> None:
    (one, _), (two, _) = await tenancy.make(with_domain()), await tenancy.make(with_domain())
    await tenancy.prove(one)
    assert await approve(tenancy, two, "acme.example") == 422
    assert await owner(tenancy) == one
    client = tenancy.api.ask(PLATFORM)
    assert (await client.put(f"{ORGANIZATIONS}/{one}", organization())).status == 200
    await tenancy.rest()
    assert await approve(tenancy, two, "acme.example") == 200
    assert (await client.put(f"{ORGANIZATIONS}/{two}", organization())).status == 200
    await tenancy.rest()
    assert (await client.put(f"{ORGANIZATIONS}/{two}", with_domain())).status == 200
    await tenancy.rest()
    assert await owner(tenancy) == "", "neither the approval nor the old record counts for a new claim"


async def test_what_an_earlier_release_stored_for_a_claim_is_no_proof(tenancy: TenancyControllers) -> None:
    (one, _), (two, _) = await tenancy.make(with_domain()), await tenancy.make(with_domain())
    metadata = Metadata(name=domain_id("acme.example"), labels={ORGANIZATION: one})
    await tenancy.store.create(Domain(metadata=metadata, spec=DomainSpec(domain="acme.example")))
    await tenancy.rest()
    assert await owner(tenancy) == ""
    await tenancy.prove(two)
    assert await owner(tenancy) == two


async def test_events_and_resyncs_cause_no_lookups(tenancy: TenancyControllers) -> None:
    home, _ = await tenancy.make(with_domain())
    path, client = f"{ORGANIZATIONS}/{home}", tenancy.api.ask(PLATFORM)
    await tenancy.prove(home)
    before = len(tenancy.dns.asked)
    for number in range(3):
        body = with_domain()
        body["metadata"]["name"] = f"name-{number}"
        assert (await client.put(path, body)).status == 200
        await tenancy.rest()
        for controller in tenancy.controllers:
            await controller.resync()
    await tenancy.rest()
    assert len(tenancy.dns.asked) == before
    await tenancy.world.clock.sleep(10 * PROOF_S)
    assert 10 <= len(tenancy.dns.asked) - before <= 11
