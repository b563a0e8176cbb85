"""Lookups of names whose servers are silent: each client has a share, and a lookup counts until it really ends."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from ipaddress import ip_address
from typing import Any

import pytest

from remuda.identity.federation.provider_client import Fetcher
from remuda.kernel.errors import Unavailable
from remuda.outbound.addresses import IpAddress, SystemResolver
from remuda.outbound.fetch import FetchFailed, GuardedFetcher
from tests.kit.outbound_servers import HERE, saying, serving

SHARE = 2


class SilentNames:
    """Resolver that responds for `images.example` at once, and for other names when they are released."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.released = asyncio.Event()

    async def __call__(self, host: str, port: int) -> Sequence[IpAddress]:
        assert port > 0
        self.asked.append(host)
        if host != "images.example":
            await self.released.wait()
            raise OSError("no such name")
        return [ip_address("127.0.0.1")]


async def fetch(guarded: GuardedFetcher, url: str, client: str, *, total_s: float = 60.0) -> int:
    async with guarded.open(url, {}, total_s=total_s, client=client) as response:
        return response.status


async def pause() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


def pass_by() -> None:
    """Need a thread of the event loop."""


async def test_m27_silent_names_of_one_client_leave_other_clients_served() -> None:
    names = SilentNames()
    guarded = GuardedFetcher(resolve=names, reach=HERE)
    async with serving(saying(b"disk")) as served:
        silent = [asyncio.create_task(fetch(guarded, f"http://{number}.evil.test/", "evil")) for number in range(40)]
        await pause()
        assert names.asked == ["0.evil.test", "1.evil.test"]
        assert await fetch(guarded, served.url("images.example"), "bank") == 200
        names.released.set()
        assert all(isinstance(each, FetchFailed) for each in await asyncio.gather(*silent, return_exceptions=True))
        assert len(names.asked) == 41
        assert await fetch(guarded, served.url("images.example"), "evil") == 200


async def test_m27_a_lookup_that_was_given_up_keeps_its_slot_until_it_ends() -> None:
    names = SilentNames()
    guarded = GuardedFetcher(resolve=names, reach=HERE)
    first = asyncio.create_task(fetch(guarded, "http://0.evil.test/", "evil"))
    await pause()
    with pytest.raises(FetchFailed, match="does not respond in time"):
        await fetch(guarded, "http://1.evil.test/", "evil", total_s=0.01)
    first.cancel()
    await asyncio.wait([first])
    for number in range(2, 5):  # they wait for a slot, and leave the queue
        with pytest.raises(FetchFailed, match="does not respond in time"):
            await fetch(guarded, f"http://{number}.evil.test/", "evil", total_s=0.01)
    assert names.asked == ["0.evil.test", "1.evil.test"]
    last = asyncio.create_task(fetch(guarded, "http://5.evil.test/", "evil"))
    await pause()
    assert len(names.asked) == SHARE
    names.released.set()
    with pytest.raises(FetchFailed, match="its name is unknown"):
        await last
    assert names.asked == ["0.evil.test", "1.evil.test", "5.evil.test"]


async def test_m27_silent_name_servers_neither_occupy_the_threads_of_the_loop_nor_those_of_other_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, asked, released = asyncio.get_running_loop(), asyncio.Semaphore(0), threading.Event()
    of_system = socket.getaddrinfo

    def getaddrinfo(host: Any, *rest: Any, **named: Any) -> Any:
        if host == "localhost":
            return of_system("127.0.0.1", *rest, **named)
        loop.call_soon_threadsafe(asked.release)
        released.wait()
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    guarded = GuardedFetcher(resolve=SystemResolver(), reach=HERE)
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving(saying(b"disk")))
        stack.callback(released.set)
        evil = [
            asyncio.create_task(fetch(guarded, f"http://{number}.evil.test/", f"evil-{number % 7}"))
            for number in range(70)
        ]
        async with asyncio.timeout(120):
            for _ in range(7 * SHARE):
                await asked.acquire()
            await asyncio.to_thread(pass_by)
        assert await fetch(guarded, served.url("localhost"), "bank") == 200
        assert asked.locked(), "no further lookup of a silent name has begun"
        for each in evil:
            each.cancel()
        await asyncio.wait(evil)


async def test_m27_silent_names_of_one_organization_leave_the_providers_of_others_served() -> None:
    names = SilentNames()
    fetcher = Fetcher(GuardedFetcher(resolve=names, reach=HERE))
    silent = [
        asyncio.create_task(fetcher("GET", f"https://{number}.evil.test/", {}, None, organization="evil"))
        for number in range(8)
    ]
    await pause()
    assert names.asked == ["0.evil.test", "1.evil.test"]
    with pytest.raises(Unavailable):  # nobody listens there, but its name was looked up
        await fetcher("GET", "https://images.example:1/", {}, None, organization="bank")
    assert "images.example" in names.asked
    for each in silent:
        each.cancel()
    await asyncio.wait(silent)
    names.released.set()
