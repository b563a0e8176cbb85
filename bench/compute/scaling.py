"""An instance among many beside one among few: read, listed, made, and followed when its server changes.

Both environments are in this process and take turns, without a socket, which would add the same to both sides. *Warm*
is what was just asked for, by a store with the cache that everybody gets; *cold* is a store without one, where what is
asked for comes from all over the file.
"""

import itertools
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import cast

from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from bench.bed import Bed
from bench.callers import by_callers
from bench.compute.environment import INSTANCES, ComputeEnvironment
from bench.compute.fleet import at_rest, fleet
from bench.cpu import spent_us
from bench.loops import run
from bench.region.environment import TENANT
from bench.report import Measure, at_most
from bench.rounds import Subject, alternate, good_time
from remuda.clients.watch import Changed
from remuda.compute.instances.server_lookup import list_tagged
from remuda.compute.instances.server_watch import ServerWatch
from remuda.compute.kinds import ComputeInstance, PowerState
from remuda.region.kinds.networks import Network
from remuda.store.contract import Change, Event
from remuda.store.readside.reader import ReaderSettings

__all__ = ["measures"]

_GOAL = 1.3
_GETS = 200
_PAGE = 100
_PAGES = 5
_CREATES = 32
_FOLLOWED = 50
_WOKEN = 200
_STATES = {"warm": ReaderSettings.cache_bytes, "cold": 0}
_VERBS: tuple[tuple[str, PowerState], ...] = (("stop", "Stopped"), ("start", "Running"))
_OF_PROJECT = {"organizationID": TENANT.id, "projectID": TENANT.project(0)}


def measures(bed: Bed) -> Iterator[Measure]:
    """Compare all of it, warm and cold."""
    sizes = f"{bed.sizes.fleet:,} instances to {bed.sizes.networked:,}"
    for state in _STATES:
        for title, many, few in run(_compare(bed, state)):
            yield at_most(_GOAL, f"{title}, {state}, {sizes}", many, few, "µs CPU")


async def _compare(bed: Bed, state: str) -> list[tuple[str, float, float]]:
    found, sizes = [], bed.sizes
    async with _site(bed, sizes.fleet, state) as many, _site(bed, sizes.networked, state) as few:
        for title, work in _WORKS.items():
            values = await alternate(sizes.rounds, _timed(many, work), _timed(few, work))
            found.append((title, good_time(values[0]), good_time(values[1])))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    environment: ComputeEnvironment
    is_warm: bool
    names: Sequence[str]
    """Of all instances, as they lie all over the store."""
    networks: Sequence[str]
    following: ServerWatch
    numbers: Iterator[int]
    read: dict[str, str] = field(default_factory=dict)
    """How far each list was read."""

    def some(self, count: int, turn: int) -> Sequence[str]:
        """Return names of instances: the same each time if they are to be warm, otherwise others."""
        first = 0 if self.is_warm else turn * count % (len(self.names) - count)
        return self.names[first : first + count]


@asynccontextmanager
async def _site(bed: Bed, count: int, state: str) -> AsyncIterator[_Site]:
    async with fleet(bed, count, cache_bytes=_STATES[state]) as environment:
        await at_rest()
        names = (await environment.store.list_names(ComputeInstance)).items
        yield _Site(
            environment=environment,
            is_warm=state == "warm",
            numbers=itertools.count(len(names)),
            names=sorted(names, key=lambda name: name[::-1]),
            following=_following(environment),
            networks=(await environment.store.list_names(Network)).items,
        )


def _following(environment: ComputeEnvironment) -> ServerWatch:
    """Return what follows servers, beside that of the environment."""
    apart = changed(environment.compute.ports, metrics=CollectorRegistry())
    return ServerWatch(apart, environment.compute.running_controllers["instances"])


Work = Callable[[_Site, int], Awaitable[int]]
"""Does something, in this turn, and tells how many times."""


def _timed(site: _Site, work: Work) -> Subject:
    async def turn(number: int) -> float:
        if site.is_warm and work in _READS:
            await work(site, number)
        start = time.process_time()
        count = await work(site, number)
        return spent_us(start, count)

    return turn


async def _get(site: _Site, turn: int) -> int:
    for name in site.some(_GETS, turn):
        await site.environment.root.get(f"{INSTANCES}/{name}")
    return _GETS


async def _pages(site: _Site, _: int) -> int:
    return await _read_on(site, "all", {})


async def _pages_of_project(site: _Site, _: int) -> int:
    return await _read_on(site, "project", _OF_PROJECT)


async def _read_on(site: _Site, what: str, query: Mapping[str, str]) -> int:
    """Read some pages: the first ones if they are to be warm, otherwise those that follow."""
    after = "" if site.is_warm else site.read.get(what, "")
    for _ in range(_PAGES):
        more = {"continue": after} if after else {}
        reply = await site.environment.root.get(INSTANCES, {"limit": str(_PAGE), **query, **more})
        after = reply.headers.get(b"x-continue", b"").decode()
    site.read[what] = after
    return _PAGES


async def _create(site: _Site, _: int) -> int:
    numbers = [next(site.numbers) for _ in range(_CREATES)]
    state, networks = "warm" if site.is_warm else "cold", site.networks
    await by_callers(
        lambda number: site.environment.instance(networks[number % len(networks)], f"{state}-{number}"), numbers
    )
    await site.environment.settled()
    return _CREATES


async def _follow(site: _Site, turn: int) -> int:
    """Stop servers at region, or start them again, and wait until their instances show it."""
    store, names = site.environment.store, site.some(_FOLLOWED, turn // 2)
    verb, state = _VERBS[turn % 2]
    since = (await store.list_names(ComputeInstance, limit=1)).version
    for name in names:
        await site.environment.region.root.post(f"/api/v2/servers/{name}/{verb}", status=202)
    waiting = set(names)
    watch = cast("AsyncGenerator[Event[ComputeInstance]]", store.watch(ComputeInstance, since=since))
    async with aclosing(watch) as events:
        async for event in events:
            if isinstance(event, Change) and event.resource.status.power_state == state:
                waiting.discard(event.resource.name)
            if not waiting:
                return _FOLLOWED
    raise AssertionError("a watch has no end")


async def _wake(site: _Site, turn: int) -> int:
    """Have instances looked at because their servers seem to have changed, which turns out to be nothing."""
    environment, ports = site.environment, site.environment.compute.ports
    for name in site.some(_WOKEN, turn):
        instance = await environment.store.get(ComputeInstance, name)
        (server,) = await list_tagged(ports.region, instance)
        moved = replace(server, status=replace(server.status, private_ip=""))
        await site.following.observe(Changed("modified", moved))
    await environment.settled()
    return _WOKEN


_READS = (_get, _pages, _pages_of_project)
_WORKS: Mapping[str, Work] = {
    "GET of an instance": _get,
    f"a page of {_PAGE} instances": _pages,
    f"a page of {_PAGE} instances of a project": _pages_of_project,
    "an instance until it is provisioned": _create,
    "an instance that its server enqueues": _wake,
    "a server that stops or starts, until its instance shows it": _follow,
}
