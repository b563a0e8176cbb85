"""Requests to identity providers: no organization, whatever servers it names, keeps those of another waiting."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from remuda.identity.federation.provider_client import Fetcher, Issuer, ProviderClient
from remuda.identity.kinds.users import user_id
from remuda.kernel.errors import OAuthError, Unavailable
from tests.kit.environment import options
from tests.kit.identity.federation import KEY, ORG, OTHER_ORG, OWN, THEIRS, log_in
from tests.kit.identity.login import JO, LoginEnvironment, run_login, sent_to
from tests.kit.identity.openid_provider import IDP, Provider
from tests.kit.identity.slow_providers import Servers
from tests.kit.simulation.runner import World

SHARE, DEADLINE_S = 8, 10


def occupy(fetch: Fetcher, organizations: Iterable[str], number: int = 40) -> list[asyncio.Task[object]]:
    """Let each of these organizations send requests to servers that never respond."""
    return [
        asyncio.create_task(fetch("POST", f"https://{each}.silent.test/token", {}, b"", organization=organization))
        for organization in organizations
        for each in range(number)
    ]


async def given_up(requests: Sequence[asyncio.Task[Any]]) -> None:
    """Expect that all of them fail."""
    outcomes = await asyncio.gather(*requests, return_exceptions=True)
    assert all(isinstance(each, Unavailable) for each in outcomes)


@pytest.mark.parametrize(
    "evil", [[OTHER_ORG], [f"{OTHER_ORG[:-1]}{digit}" for digit in "4567890"]], ids=["one", "seven"]
)
def test_m27_organizations_whose_requests_fill_their_slots_leave_the_logins_of_another_prompt(evil: list[str]) -> None:
    upstream = Provider(key=KEY)
    servers = Servers(upstream)
    fetch = Fetcher(servers)

    async def scenario(logins: LoginEnvironment) -> None:
        upstream.clock = logins.world.clock
        await logins.provider(OWN, organization=ORG, **THEIRS)
        await logins.organization(ORG, domain="example.com", provider_scope="organization", provider_id=OWN)
        await logins.member(ORG, user_id(JO))
        requests = occupy(fetch, evil)
        await logins.world.clock.sleep(1)
        assert {servers.open_for[each] for each in evil} == {SHARE}
        began = logins.world.clock.monotonic()
        assert "code" in sent_to(await log_in(logins, upstream, OWN))
        assert logins.world.clock.monotonic() - began < 1
        assert set(upstream.asked_for) == {ORG}
        await given_up(requests)
        assert max(servers.most_for.values()) == SHARE

    run_login(scenario, fetch=fetch)


@options(seeds=1)
async def test_m27_many_organizations_that_collude_leave_slots_for_those_that_have_none(world: World) -> None:
    servers = Servers(Provider(key=KEY))
    fetch = Fetcher(servers)
    requests = occupy(fetch, [f"{OTHER_ORG[:-2]}{number:02}" for number in range(20, 50)])
    await world.clock.sleep(1)
    assert sum(servers.open_for.values()) < 96
    began = world.clock.monotonic()
    assert (await ProviderClient(fetch=fetch, clock=world.clock).metadata(Issuer(IDP, ORG))).issuer == IDP
    assert world.clock.monotonic() == began
    await given_up(requests)


@options(seeds=1)
async def test_m27_the_wait_for_a_slot_is_part_of_the_time_of_a_request(world: World) -> None:
    servers = Servers(Provider(key=KEY))
    began = world.clock.monotonic()
    await given_up(occupy(Fetcher(servers), [OTHER_ORG]))
    assert world.clock.monotonic() - began == pytest.approx(DEADLINE_S, abs=0.1)
    assert servers.most_for == {OTHER_ORG: SHARE}


@options(seeds=1)
async def test_m27_who_names_the_issuer_of_another_organization_does_not_delay_its_metadata(world: World) -> None:
    fetch = Fetcher(Servers(Provider(key=KEY)))
    client, requests = ProviderClient(fetch=fetch, clock=world.clock), occupy(fetch, [OTHER_ORG])
    await world.clock.sleep(1)
    theirs = asyncio.create_task(client.metadata(Issuer(IDP, OTHER_ORG)))
    await world.clock.sleep(1)
    began = world.clock.monotonic()
    assert (await client.metadata(Issuer(IDP, ORG))).issuer == IDP
    assert world.clock.monotonic() == began
    assert not theirs.done()
    await given_up(requests)
    assert (await theirs).issuer == IDP, "its turn comes when its own requests have ended"


@options(seeds=1)
async def test_m27_an_organization_that_names_many_issuers_does_not_displace_what_is_known_of_others(
    world: World,
) -> None:
    upstream = Provider(key=KEY)
    client = ProviderClient(fetch=Fetcher(Servers(upstream)), clock=world.clock)
    await client.metadata(Issuer(IDP, ORG))
    for number in range(1_100):
        upstream.issuer = f"{IDP}/{number}"
        await client.metadata(Issuer(upstream.issuer, OTHER_ORG))
    upstream.issuer, upstream.is_down = IDP, True
    assert (await client.metadata(Issuer(IDP, ORG))).issuer == IDP
    with pytest.raises(OAuthError, match="does not respond"):
        await client.metadata(Issuer(f"{IDP}/0", OTHER_ORG))


@options(seeds=1)
async def test_a_silent_provider_of_the_platform_leaves_its_other_providers_served(world: World) -> None:
    fetch = Fetcher(Servers(Provider(key=KEY)))
    requests = [
        asyncio.create_task(fetch("GET", "https://one.silent.test/keys", {}, None, organization="")) for _ in range(40)
    ]
    await world.clock.sleep(1)
    began = world.clock.monotonic()
    assert (await fetch("GET", f"{IDP}/jwks", {}, None, organization="")).status == 200
    assert world.clock.monotonic() == began
    await given_up(requests)
