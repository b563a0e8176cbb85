"""What a provider says about itself is read once for all who want to know, and so is that it says nothing."""

import asyncio

import pytest
from joserfc.jwk import RSAKey

from remuda.identity.federation.provider_client import Issuer, ProviderClient
from remuda.identity.ports import Fetched
from remuda.kernel.errors import OAuthError
from tests.kit.environment import options
from tests.kit.identity.openid_provider import IDP, Provider
from tests.kit.simulation.runner import World

HERE = Issuer(IDP, "")
ABOUT, KEYS = f"{IDP}/.well-known/openid-configuration", f"{IDP}/jwks"
PROVIDER_TAKES_S = 2


class Slow:
    """A provider that takes its time."""

    def __init__(self, world: World) -> None:
        self.provider = Provider()
        self._clock = world.clock

    async def __call__(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, *, organization: str
    ) -> Fetched:
        await self._clock.sleep(PROVIDER_TAKES_S)
        return await self.provider(method, url, headers, body, organization=organization)

    @property
    def asked(self) -> list[str]:
        return [url for _, url in self.provider.asked]


@options(seeds=1)
async def test_of_many_who_want_to_know_at_once_one_asks(world: World) -> None:
    slow = Slow(world)
    upstream = ProviderClient(fetch=slow, clock=world.clock)
    told = await asyncio.gather(*(upstream.metadata(HERE) for _ in range(20)))
    assert {each.issuer for each in told} == {IDP}
    assert slow.asked == [ABOUT, KEYS]


@options(seeds=1)
async def test_a_provider_that_fails_is_left_alone_for_some_seconds(world: World) -> None:
    slow = Slow(world)
    slow.provider.is_down = True
    upstream = ProviderClient(fetch=slow, clock=world.clock)
    outcomes = await asyncio.gather(*(upstream.metadata(HERE) for _ in range(20)), return_exceptions=True)
    assert {(type(each), str(each)) for each in outcomes} == {
        (OAuthError, "the provider does not respond: try again later")
    }
    slow.provider.is_down = False
    with pytest.raises(OAuthError, match="does not respond") as refused:
        await upstream.metadata(HERE)
    assert refused.value.error == "temporarily_unavailable"
    assert slow.asked == [ABOUT]
    await world.clock.sleep(5)
    assert (await upstream.metadata(HERE)).issuer == IDP


@options(seeds=1)
async def test_who_gives_up_waiting_does_not_keep_the_others_from_knowing(world: World) -> None:
    slow = Slow(world)
    upstream = ProviderClient(fetch=slow, clock=world.clock)
    first, second = (asyncio.create_task(upstream.metadata(HERE)) for _ in range(2))
    await world.clock.sleep(1)
    first.cancel()
    assert (await second).issuer == IDP
    assert first.cancelled()
    assert slow.asked == [ABOUT, KEYS]


@options(seeds=1)
async def test_of_many_who_come_with_keys_that_we_do_not_know_one_asks_and_once_a_minute(world: World) -> None:
    slow = Slow(world)
    upstream = ProviderClient(fetch=slow, clock=world.clock)
    await upstream.metadata(HERE)
    await world.clock.sleep(60)
    slow.provider.key = RSAKey.generate_key(2048, {"kid": "two"})
    kids = ["two", *(f"made up {number}" for number in range(19))]
    found = await asyncio.gather(*(upstream.keys(HERE, kid) for kid in kids))
    assert [len(keys) for keys in found] == [1] + [0] * 19
    await asyncio.gather(*(upstream.keys(HERE, kid) for kid in kids))
    assert slow.asked == [ABOUT, KEYS, KEYS]
    await world.clock.sleep(60)
    await asyncio.gather(*(upstream.keys(HERE, kid) for kid in kids[1:]))
    assert slow.asked == [ABOUT, KEYS, KEYS, KEYS]


@options(seeds=1)
async def test_keys_that_cannot_be_read_again_are_not_asked_for_by_each_who_waits(world: World) -> None:
    slow = Slow(world)
    upstream = ProviderClient(fetch=slow, clock=world.clock)
    await upstream.metadata(HERE)
    await world.clock.sleep(60)
    slow.provider.is_down = True
    asking = (upstream.keys(HERE, f"made up {number}") for number in range(20))
    outcomes = await asyncio.gather(*asking, return_exceptions=True)
    assert {str(each) for each in outcomes} == {"the provider does not respond: try again later"}
    assert slow.asked == [ABOUT, KEYS, KEYS]
    assert len(await upstream.keys(HERE, "one")) == 1, "what we know stays good"
