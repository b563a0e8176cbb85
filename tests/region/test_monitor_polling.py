"""A poll looks at what has changed, tells of what is missing, and knows after a restart what it had seen."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from remuda.kernel.errors import Unavailable
from remuda.providers.contract.common import Handle
from remuda.providers.contract.servers import CloudServers, CloudServerVersion
from remuda.region.kinds import KINDS
from remuda.region.kinds.orphans import PollDigest
from remuda.region.monitor.poller import Digests, DigestStore, Poller, PollerPorts
from remuda.region.servers.status import ServerObserver
from remuda.store.contract import Store
from remuda.store.kinds import Registry
from tests.kit.environment import provided_by
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

REGION = "c0000000-0000-4000-8000-000000000001"


@dataclass
class Provider:
    """The servers of a provider: what there is, and after how many parts it stops answering."""

    versions: dict[str, str] = field(default_factory=dict)
    fails_after: int | None = None

    async def server_versions(self) -> AsyncIterator[Sequence[CloudServerVersion]]:
        for count, (name, version) in enumerate(list(self.versions.items())):
            if count == self.fails_after:
                raise Unavailable("It does not answer: wait.")
            yield [CloudServerVersion(Handle("tenancy", f"server-{name}.uid.0"), version)]

    def made(self, names: Iterable[str]) -> None:
        """Have these servers, too, in their first version."""
        self.versions |= dict.fromkeys(names, "1")


@dataclass
class PollingEnvironment:
    """Where polls are made: it notes who is looked at, and of whom the controller is told."""

    world: World
    store: Store
    provider: Provider = field(default_factory=Provider)
    ours: list[str] = field(default_factory=list)
    woken: list[str] = field(default_factory=list)
    looks: list[str] = field(default_factory=list)
    is_ill: bool = False

    async def observe(self, server: str) -> None:
        self.looks.append(server)
        if self.is_ill:
            raise Unavailable("It does not answer: wait.")

    def looked(self) -> list[str]:
        """Return who was looked at since this was last asked."""
        looks, self.looks = self.looks, []
        return looks

    async def polled(self, poll: Poller, then_s: float = 10.0) -> list[str]:
        """Poll once; return who was looked at by some time after that."""
        await poll.poll(cast("CloudServers", self.provider))
        await self.world.clock.sleep(then_s)
        return self.looked()

    async def _ours(self) -> AsyncGenerator[str]:
        for name in self.ours:
            yield name

    @asynccontextmanager
    async def polling(self, *, initial_polls_per_s: float = 10.0) -> AsyncIterator[Poller]:
        """Have a poll look at what it finds, as after a start."""
        ports = PollerPorts(
            observer=cast("ServerObserver", self),
            enqueue=self.woken.append,
            digests=DigestStore(self.store, REGION),
            server_names=self._ours,
            clock=self.world.clock,
        )
        poll = Poller(ports, initial_polls_per_s=initial_polls_per_s)
        task = asyncio.create_task(poll.run())
        try:
            yield poll
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def run_polling(scenario: Callable[[PollingEnvironment], Coroutine[Any, Any, None]]) -> None:
    async def run(world: World) -> None:
        store = open_simulated(world, Registry(KINDS))
        await scenario(PollingEnvironment(world, store))
        await store.close()

    simulate(run, 1)


region_monitor = provided_by(run_polling)


async def test_servers_are_looked_at_when_they_are_new_or_have_changed(region_monitor: PollingEnvironment) -> None:
    async with region_monitor.polling() as poll:
        region_monitor.provider.made("abc")
        assert await region_monitor.polled(poll) == ["a", "b", "c"]
        assert await region_monitor.polled(poll) == []
        region_monitor.provider.versions |= {"b": "2", "d": "1"}
        assert await region_monitor.polled(poll) == ["b", "d"]
        del region_monitor.provider.versions["a"]
        assert await region_monitor.polled(poll) == []
        assert (region_monitor.woken, poll.pending) == (["a"], 0)


async def test_first_looks_are_spread_out_and_what_has_changed_comes_before_them(
    region_monitor: PollingEnvironment,
) -> None:
    async with region_monitor.polling() as poll:
        region_monitor.provider.made(f"s{number}" for number in range(100))
        assert len(await region_monitor.polled(poll, 1.05)) == 20
        assert poll.pending == 80
        region_monitor.provider.versions["s0"] = "2"
        assert (await region_monitor.polled(poll, 1))[0] == "s0"
        await region_monitor.world.clock.sleep(10)
        assert (poll.pending, region_monitor.woken) == (0, [])


@pytest.mark.parametrize("answers", [0, 1, 2])
async def test_a_listing_that_breaks_off_makes_nobody_missing_or_new(
    region_monitor: PollingEnvironment, answers: int
) -> None:
    async with region_monitor.polling() as poll:
        region_monitor.provider.made("abc")
        await region_monitor.polled(poll)
        region_monitor.provider.fails_after = answers
        with pytest.raises(Unavailable):
            await region_monitor.polled(poll)
        region_monitor.provider.fails_after = None
        assert await region_monitor.polled(poll) == []
        assert region_monitor.woken == []


async def test_a_first_listing_that_breaks_off_is_made_up_for(region_monitor: PollingEnvironment) -> None:
    async with region_monitor.polling() as poll:
        region_monitor.provider.made("ab")
        region_monitor.ours = ["a", "b"]
        region_monitor.provider.fails_after = 1
        with pytest.raises(Unavailable):
            await region_monitor.polled(poll)
        assert (region_monitor.woken, region_monitor.looked()) == ([], [])
        region_monitor.provider.fails_after = None
        assert await region_monitor.polled(poll) == ["a", "b"]
        assert region_monitor.woken == []


async def test_a_look_that_failed_is_made_up_for_and_not_remembered_before(region_monitor: PollingEnvironment) -> None:
    async with region_monitor.polling() as poll:
        region_monitor.provider.made("ab")
        region_monitor.is_ill = True
        assert await region_monitor.polled(poll) == ["a", "b"]
        region_monitor.is_ill = False
        await region_monitor.polled(poll, 0)
    region_monitor.looked()
    async with region_monitor.polling() as poll:
        assert await region_monitor.polled(poll) == ["a", "b"], "the process ended before it could look again"
        assert await region_monitor.polled(poll) == []


async def test_after_a_restart_only_what_has_changed_meanwhile_is_looked_at_with_its_neighbours(
    region_monitor: PollingEnvironment,
) -> None:
    names = [f"s{number}" for number in range(300)]
    region_monitor.provider.made(names)
    async with region_monitor.polling(initial_polls_per_s=1000) as poll:
        assert sorted(await region_monitor.polled(poll)) == sorted(names)
        await region_monitor.polled(poll)
    async with region_monitor.polling() as poll:
        assert await region_monitor.polled(poll) == []
    region_monitor.provider.versions["s7"] = "2"
    region_monitor.provider.made(["new"])
    async with region_monitor.polling() as poll:
        looked = await region_monitor.polled(poll)
        assert {"s7", "new"} <= set(looked)
        assert len(looked) < 10
    assert region_monitor.woken == []


async def test_what_still_waited_when_the_process_ended_is_looked_at_after_the_restart(
    region_monitor: PollingEnvironment,
) -> None:
    region_monitor.provider.made(f"s{number}" for number in range(100))
    async with region_monitor.polling() as poll:
        first = await region_monitor.polled(poll, 1.05)
        second = await region_monitor.polled(poll, 1.0)
    async with region_monitor.polling(initial_polls_per_s=1000) as poll:
        third = set(await region_monitor.polled(poll))
    assert len(first) == 20
    assert third >= set(region_monitor.provider.versions) - set(first) - set(second)
    assert len(third) < 90


async def test_a_server_of_ours_that_went_while_nobody_looked_is_told_to_its_controller(
    region_monitor: PollingEnvironment,
) -> None:
    region_monitor.ours = ["a", "b"]
    region_monitor.provider.made("ab")
    async with region_monitor.polling() as poll:
        await region_monitor.polled(poll)
        await region_monitor.polled(poll)
    del region_monitor.provider.versions["a"]
    async with region_monitor.polling() as poll:
        assert await region_monitor.polled(poll) == []
    assert region_monitor.woken == ["a"]


async def test_nothing_is_written_where_nothing_has_changed(region_monitor: PollingEnvironment) -> None:
    async with region_monitor.polling() as poll:
        await region_monitor.polled(poll)
    assert (await region_monitor.store.list_names(PollDigest)).items == [], "there was nothing to remember"
    region_monitor.provider.made("abc")
    for _ in range(2):
        async with region_monitor.polling() as poll:
            for _ in range(3):
                await region_monitor.polled(poll)
        found = await region_monitor.store.get(PollDigest, REGION)
    assert int(found.version) == 1, "it was written once, when all had been looked at"


def test_digests_that_were_written_otherwise_agree_with_nothing() -> None:
    seen = Digests()
    seen.add("a", "1")
    assert seen.agrees(Digests(seen.to_bytes()), "a")
    for other in (b"", b"x", seen.to_bytes() + b"\0"):
        assert not seen.agrees(Digests(other), "a")


def test_digests_tell_swapped_versions_apart_and_go_back_to_what_they_were() -> None:
    seen, swapped = Digests(), Digests()
    for name, version in (("a", "1"), ("b", "2")):
        seen.add(name, version)
    for name, version in (("a", "2"), ("b", "1")):
        swapped.add(name, version)
    assert not seen.agrees(swapped, "a")
    before = seen.to_bytes()
    seen.add("c", "1")
    assert seen.to_bytes() != before
    seen.drop("c", "1")
    assert seen.to_bytes() == before
    seen.mark_pending("a")
    assert not seen.agrees(Digests(seen.to_bytes()), "a")
    assert seen.agrees(Digests(seen.to_bytes()), "b")
    seen.clear_pending("a")
    assert seen.to_bytes() == before
