"""Servers that went while nobody watched: noticed as soon as somebody watches again."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from remuda.compute.instances import server_watch
from remuda.compute.instances.server_watch import AllServers, ServerWatch
from remuda.region.kinds.servers import Server
from tests.kit.compute.controllers import (
    UNHURRIED,
    Counting,
    Woken,
    events,
    made,
    network_of,
    rest,
    restarted,
    server_of,
)
from tests.kit.compute.environment import ComputeEnvironment


async def test_c05_a_server_that_went_while_compute_was_down_is_missed_at_once(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    last = max([await made(compute, network, name) for name in ("one", "other", "third")])
    server = await compute.store.get(Server, last)

    async def vanish() -> None:
        await compute.store.delete(Server, server.name, uid=server.uid)

    async with restarted(compute, vanish, controllers=UNHURRIED):
        assert await server_of(compute, last) is None
        await rest(compute, 120)
        assert await events(compute, last) == ["ServerCreated", "ServerRecreated", "AddressesChanged"], "no look yet"
        await compute.until(last, "provisioned")


class Told:
    """Region, as far as servers are followed: what is told, and whether all of it was heard."""

    def __init__(self, *told: AllServers) -> None:
        self._told = told
        self.is_heard = asyncio.Event()

    async def watch(self, _region: Any, _since: str) -> AsyncIterator[AllServers]:
        for each in self._told:
            yield each
        self.is_heard.set()
        await asyncio.Event().wait()


async def test_whenever_all_is_told_again_those_without_their_server_are_woken_and_few_are_read(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = await network_of(compute)
    instances = [await made(compute, network, f"i{number}") for number in range(5)]
    gone, *others = instances
    beginning = await compute.instance(network, "beginning")
    region = Told(AllServers(frozenset(instances)), AllServers(frozenset(others)))
    monkeypatch.setattr(server_watch, "watch_servers", region.watch)
    counting, woken = Counting(compute.app.ports.store), Woken()
    ports: Any = compute.app.ports
    fresh = {"metrics": type(ports.metrics)(), "store": counting}
    following = asyncio.create_task(ServerWatch(dataclasses.replace(ports, **fresh), woken).run())
    await region.is_heard.wait()
    following.cancel()
    assert woken.keys == [gone], "one that has none yet misses none"
    assert counting.asked == Counter(list_names=2, get=4), f"the position, {gone} and {beginning}, which were not told"
