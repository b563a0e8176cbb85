"""Image transfers of several organizations: nobody's keep those of others waiting."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from remuda.kernel.errors import Unavailable
from remuda.kernel.fair_slots import FairSlots
from remuda.region.images.source_rate import MIN_BYTES_PER_S, SourceRate
from tests.kit.environment import options
from tests.kit.region.images import ANN, DISK, OWN, ImagesEnvironment, Page, image
from tests.kit.region.resource_api import ORG, OTHER_ORG, member

BOB = member("bob@example.com", OTHER_ORG, "region:images CRD")
THIRD_ORG = "c" * 8 + OTHER_ORG[8:]
CAROL = member("carol@example.com", THIRD_ORG, "region:images CRD")
SLOW, FAST = "https://slow.example/", "https://fast.example/"
DRIPPING = Page(body=DISK + bytes(1 << 20), pace_s=5.0)
"""A source that sends next to nothing, for hours."""


class Imports:
    """Transfers with slots, which tell who began in which order."""

    def __init__(self, slots: FairSlots) -> None:
        self._slots, self.begun = slots, list[str]()
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def request(self, *names: str) -> None:
        """Ask for slots: `a1` is the first transfer of the organization `a`."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._transfer(name))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
            await self._tasks[name]
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)

    async def _transfer(self, name: str) -> None:
        async with self._slots.acquire(name[0]):
            self.begun.append(name)
            await self._ends[name].wait()


async def test_m27_an_organization_has_at_most_half_of_the_slots() -> None:
    imports = Imports(FairSlots(4, share=2))
    await imports.request("a1", "a2", "a3", "a4", "a5")
    assert imports.begun == ["a1", "a2"]
    await imports.request("b1")
    assert imports.begun == ["a1", "a2", "b1"]
    await imports.end("a1", "a2", "a3", "a4", "a5", "b1")


async def test_slots_go_to_organizations_in_turn() -> None:
    imports = Imports(FairSlots(2, share=1))
    await imports.request("a1", "b1", "a2", "a3", "c1")
    for name, following in (("a1", "a2"), ("a2", "c1"), ("c1", "a3")):
        await imports.end(name)
        assert imports.begun[-1] == following
    await imports.end("b1", "a3")


async def test_a_waiting_transfer_that_is_cancelled_leaves_its_place_and_no_slot_behind() -> None:
    slots = FairSlots(1, share=1)
    imports = Imports(slots)
    await imports.request("a1", "b1")
    assert slots.is_contended("a")
    await imports.cancel("b1")
    assert not slots.is_contended("a")
    await imports.cancel("a1")
    async with asyncio.timeout(5), AsyncExitStack() as stack:
        await stack.enter_async_context(slots.acquire("c"))


async def test_a_slot_that_is_granted_to_a_cancelled_transfer_is_free_again() -> None:
    slots = FairSlots(1, share=1)
    imports = Imports(slots)
    async with slots.acquire("a"):
        await imports.request("b1")
    await imports.cancel("b1")  # it has its slot, and has not run since
    await imports.request("c1")
    assert imports.begun == ["c1"]
    await imports.end("c1")


async def test_a_slot_that_is_freed_while_a_waiting_use_is_cancelled_goes_to_the_next() -> None:
    slots = FairSlots(1, share=1)
    async with slots.acquire("a"):
        waiting = [asyncio.create_task(_use(slots, key)) for key in ("b", "c")]
        await asyncio.sleep(0)
        waiting[0].cancel()  # it has not run since
    await asyncio.wait(waiting, timeout=5)
    assert [each.cancelled() for each in waiting] == [True, False]
    assert slots.is_idle


async def _use(slots: FairSlots, key: str) -> None:
    async with slots.acquire(key):
        pass


def test_a_slow_source_ends_only_while_others_wait_and_only_for_its_own_time() -> None:
    rate = SourceRate()
    rate.record(1000.0, 512, is_contended=False)
    rate.record(29.0, 512, is_contended=True)
    with pytest.raises(Unavailable, match="256 KiB per second while other organizations wait"):
        rate.record(2.0, 512, is_contended=True)
    for _ in range(100):
        rate.record(10.0, 11 * MIN_BYTES_PER_S, is_contended=True)


@options(most=4)
async def test_slow_imports_of_two_organizations_do_not_keep_a_third_from_importing(
    region_images: ImagesEnvironment,
) -> None:
    region_images.web.serve(Page(), at=FAST)
    for who, organization in ((ANN, ORG), (ANN, ORG), (BOB, OTHER_ORG), (BOB, OTHER_ORG)):
        region_images.web.serve(Page(), DRIPPING, at=SLOW)
        reply = await region_images.api.ask(who).post(OWN.replace(ORG, organization), image(uri=SLOW))
        assert reply.status == 200
        await region_images.world.clock.sleep(2)
    assert region_images.web.asked.count("everything") == 4
    reply = await region_images.api.ask(CAROL).post(OWN.replace(ORG, THIRD_ORG), image(uri=FAST))
    assert reply.status == 200
    await region_images.world.clock.sleep(120)
    assert [each.organization for each in await region_images.owned()] == [THIRD_ORG]
    assert region_images.web.clients[:8] == [ORG] * 4 + [OTHER_ORG] * 4
    assert {*region_images.web.clients} == {ORG, OTHER_ORG, THIRD_ORG}
