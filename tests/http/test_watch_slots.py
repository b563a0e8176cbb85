"""Open watches of several callers and addresses: each has at most half of the slots."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from remuda.http.proxies import ForwardingProxies
from remuda.http.request import network_of
from remuda.http.watch import WatchPorts
from remuda.http.watch_slots import NoFreeWatch, TooManyWatches, WatchSlots
from remuda.kernel.clock import SystemClock
from tests.kit.sample_api.collections import ANNA, fill, herd, sample_store
from tests.kit.sample_api.watch_reader import PermissionSet, watching


def anna(number: int) -> PermissionSet:
    return PermissionSet(replace(ANNA, subject=f"anna-{number}@example.com"))


def slots_of(count: int) -> tuple[WatchSlots, CollectorRegistry]:
    registry = CollectorRegistry()
    return WatchSlots(count, metrics=registry), registry


def rejected(registry: CollectorRegistry) -> dict[str, float]:
    name = "remuda_http_watches_rejected_total"
    found = {reason: registry.get_sample_value(name, {"reason": reason}) for reason in ("principal", "address", "all")}
    return {reason: value for reason, value in found.items() if value}


async def test_m27_a_caller_has_at_most_half_of_the_watches_whatever_its_address(tmp_path: Path) -> None:
    slots, registry = slots_of(4)
    ports = WatchPorts(clock=SystemClock(), slots=slots)
    async with sample_store(tmp_path) as store, AsyncExitStack() as stack:
        await fill(store, ["a"])
        for number in range(2):
            reader = await stack.enter_async_context(
                watching(herd(store), permissions=anna(1), address=f"192.0.2.{number}", ports=ports)
            )
            await reader.next()
        with pytest.raises(TooManyWatches, match="This caller has 2 open watches, which is the most for one") as found:
            await stack.enter_async_context(
                watching(herd(store), permissions=anna(1), address="192.0.2.9", ports=ports)
            )
        assert (found.value.status, found.value.retry_after_s) == (429, 5)
        reader = await stack.enter_async_context(watching(herd(store), permissions=anna(2), ports=ports))
        await reader.next()
        assert rejected(registry) == {"principal": 1}
        await stack.aclose()
        assert len(slots) == 0


async def test_an_address_has_at_most_half_of_the_watches_whoever_calls(tmp_path: Path) -> None:
    slots, registry = slots_of(4)
    ports = WatchPorts(clock=SystemClock(), slots=slots)
    async with sample_store(tmp_path) as store, AsyncExitStack() as stack:
        await fill(store, ["a"])
        for number in range(2):
            reader = await stack.enter_async_context(
                watching(herd(store), permissions=anna(number), address="192.0.2.1", ports=ports)
            )
            await reader.next()
        with pytest.raises(TooManyWatches, match="This address has 2 open watches"):
            await stack.enter_async_context(
                watching(herd(store), permissions=anna(3), address="192.0.2.1", ports=ports)
            )
        for number in (4, 5):
            reader = await stack.enter_async_context(
                watching(herd(store), permissions=anna(number), address="", ports=ports)
            )
            await reader.next()
        with pytest.raises(NoFreeWatch) as found:
            await stack.enter_async_context(watching(herd(store), permissions=anna(6), address="", ports=ports))
        assert (found.value.status, found.value.retry_after_s) == (503, 5)
        assert rejected(registry) == {"address": 1, "all": 1}
        await stack.aclose()


async def test_watches_that_begin_at_the_same_time_do_not_exceed_the_slots(tmp_path: Path) -> None:
    ports = WatchPorts(clock=SystemClock(), slots=WatchSlots(2))
    async with sample_store(tmp_path) as store, AsyncExitStack() as stack:
        await fill(store, ["a"])
        readers = [
            await stack.enter_async_context(watching(herd(store), permissions=anna(1), ports=ports)) for _ in range(2)
        ]
        assert (await readers[0].next()).type == "added"
        ended = await readers[1].next()
        assert (ended.type, ended.data) == ("end", b'{"reason":"too_many"}')
        assert len(ports.slots) == 1


def test_the_address_of_a_client_behind_a_proxy_counts_and_that_of_the_proxy_does_not() -> None:
    proxies, peer = ForwardingProxies(["10.0.0.0/8"]), ("10.1.1.1", 4711)
    assert network_of(peer, {b"x-forwarded-for": b"192.0.2.7"}, proxies) == "192.0.2.7"
    assert network_of(peer, {b"x-forwarded-for": b"2001:db8:1:2:3::4"}, proxies) == "2001:db8:1:2::/64"
    assert network_of(peer, {}, proxies) == ""
    assert network_of(("192.0.2.8", 4711), {b"x-forwarded-for": b"192.0.2.7"}, proxies) == "192.0.2.8"
    assert network_of(None, {}, proxies) == ""
