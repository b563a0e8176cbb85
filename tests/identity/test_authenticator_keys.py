"""Identity's keys, as a service in another process reads them: once for all who want to know, and seldom."""

import asyncio

import msgspec
import pytest
from joserfc.jwk import ECKey

from remuda.identity.ports import Fetched
from remuda.identity.rbac.revocation_feed import IdentityUnavailable, PublicKeys
from remuda.kernel.errors import ServerUnreachable
from tests.kit.environment import options
from tests.kit.simulation.runner import World

URL = "https://identity.example/oauth2/v2/jwks"
IDENTITY_TAKES_S = 2


class Identity:
    """Publishes keys, and takes its time."""

    def __init__(self, world: World) -> None:
        self.keys = [ECKey.generate_key("P-521", {"kid": "one"})]
        self.is_down, self.asked = False, 0
        self._clock = world.clock

    async def __call__(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, *, organization: str
    ) -> Fetched:
        assert (method, url, headers, body, organization) == ("GET", URL, {"Accept": "application/json"}, None, "")
        self.asked += 1
        await self._clock.sleep(IDENTITY_TAKES_S)
        if self.is_down:
            raise ServerUnreachable("identity.example", "it is down")
        keys = [each.as_dict(private=False) for each in self.keys]
        return Fetched(status=200, body=msgspec.json.encode({"keys": keys}))


@options(seeds=1)
async def test_many_made_up_keys_are_one_question_and_none_for_a_minute(world: World) -> None:
    identity = Identity(world)
    keys = PublicKeys(URL, fetch=identity, clock=world.clock)
    assert await keys.find("one") is not None
    await world.clock.sleep(60)
    identity.keys.append(ECKey.generate_key("P-521", {"kid": "two"}))
    kids = ["two", *(f"made up {number}" for number in range(19))]
    found = await asyncio.gather(*map(keys.find, kids))
    assert [key is not None for key in found] == [True] + [False] * 19
    await asyncio.gather(*map(keys.find, kids))
    assert identity.asked == 2


@options(seeds=1)
async def test_those_who_give_up_waiting_do_not_make_us_ask_again(world: World) -> None:
    identity = Identity(world)
    keys = PublicKeys(URL, fetch=identity, clock=world.clock)
    for number in range(5):
        impatient = asyncio.create_task(keys.find(f"made up {number}"))
        await world.clock.sleep(0.1)
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
    assert await keys.find("one") is not None
    assert identity.asked == 1


@options(seeds=1)
async def test_nobody_waits_for_keys_that_are_only_old(world: World) -> None:
    identity = Identity(world)
    keys = PublicKeys(URL, fetch=identity, clock=world.clock)
    await keys.find("one")
    await world.clock.sleep(300)
    before = world.clock.monotonic()
    assert await keys.find("one") is not None
    assert world.clock.monotonic() == before
    await world.clock.sleep(IDENTITY_TAKES_S + 1)
    assert (identity.asked, keys.version) == (2, 2)


@options(seeds=1)
async def test_without_any_keys_nobody_can_be_told_apart(world: World) -> None:
    identity = Identity(world)
    identity.is_down = True
    keys = PublicKeys(URL, fetch=identity, clock=world.clock)
    outcomes = await asyncio.gather(*(keys.find("one") for _ in range(20)), return_exceptions=True)
    assert {type(each) for each in outcomes} == {IdentityUnavailable}
    assert identity.asked == 1
    identity.is_down = False
    with pytest.raises(IdentityUnavailable):
        await keys.find("one")
    await world.clock.sleep(1)
    assert await keys.find("one") is not None
