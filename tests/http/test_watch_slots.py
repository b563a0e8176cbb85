"""Open watches of several callers, organizations and addresses: each has a share, and who has none gets one."""

from collections import Counter
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from remuda.access.principal import Principal
from remuda.http.proxies import ForwardingProxies
from remuda.http.request import host_of
from remuda.http.watch import WatchPorts
from remuda.http.watch_slots import NoFreeWatch, OpenWatch, TooManyWatches, WatchSlots
from remuda.kernel.clock import SystemClock
from tests.kit.sample_api.collections import ANNA, fill, herd, sample_store
from tests.kit.sample_api.watch_reader import PermissionSet, Reader, watching

NAME = "remuda_http_watches"


def member(name: str, organization: str) -> Principal:
    return Principal(subject=name, type="user", organizations=(organization,))


class Slots:
    """Slots and the watches that were opened."""

    def __init__(self, count: int, stack: ExitStack) -> None:
        self.registry = CollectorRegistry()
        self.slots = WatchSlots(count, metrics=self.registry)
        self._stack = stack
        self.watches: list[tuple[str, OpenWatch]] = []

    def open(self, principal: Principal, host: str, count: int = 1) -> int:
        """Open watches, and return how many were not rejected."""
        for number in range(count):
            try:
                self.slots.check(principal=principal, host=host)
                watch = self._stack.enter_context(self.slots.acquire(principal=principal, host=host))
            except (TooManyWatches, NoFreeWatch):
                return number
            self.watches.append((principal.subject, watch))
        return count

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(name for name, watch in self.watches if not watch.is_displaced))

    def rejected(self) -> dict[str, float]:
        reasons = ("organization", "site", "principal", "address", "all")
        found = {
            reason: self.registry.get_sample_value(f"{NAME}_rejected_total", {"reason": reason}) for reason in reasons
        }
        return {reason: value for reason, value in found.items() if value}

    def displaced(self) -> float | None:
        return self.registry.get_sample_value(f"{NAME}_displaced_total")


def test_m27_an_organization_has_at_most_a_quarter_of_the_watches_and_a_caller_half_of_that() -> None:
    with ExitStack() as stack:
        slots = Slots(80, stack)
        assert [slots.open(member(f"bot-{number}", "a"), f"192.0.2.{number}", 80) for number in range(2)] == [10, 10]
        assert slots.rejected() == {"principal": 1, "organization": 1}
        with pytest.raises(
            TooManyWatches, match="This organization has 20 open watches, which is the most for"
        ) as found:
            slots.slots.check(principal=member("bot-1", "a"), host="192.0.2.9")
        assert (found.value.status, found.value.retry_after_s) == (429, 5)
        assert slots.open(member("admin", "b"), "192.0.2.1") == 1
    assert len(slots.slots) == 0


def test_m27_another_caller_of_an_organization_whose_share_is_used_takes_the_place_of_its_largest() -> None:
    with ExitStack() as stack:
        slots = Slots(80, stack)
        for name in ("bot-1", "bot-2"):
            slots.open(member(name, "a"), "192.0.2.1", 10)
        assert slots.open(member("anna", "a"), "192.0.2.3", 10) == 6
        assert slots.counts == {"bot-1": 7, "bot-2": 7, "anna": 6}
        assert slots.rejected() == {"organization": 1}
        assert [watch.is_displaced for _, watch in slots.watches[:10]] == [False] * 7 + [True] * 3, "the newest end"


def test_m27_a_site_has_at_most_a_quarter_of_the_watches_and_its_callers_share_it() -> None:
    with ExitStack() as stack:
        slots = Slots(80, stack)
        opened = [slots.open(member(f"bot-{n}", f"o{n}"), f"2001:db8:1:{n:x}::1", 80) for n in range(3)]
        assert opened == [10, 10, 6], "two of these were displaced by the third"
        assert len(slots.slots) == 20
        assert slots.open(member("anna", "a"), "2001:db8:1:9::1") == 1, "who has none gets one"


def test_m27_when_all_are_taken_who_has_none_takes_the_newest_of_the_largest() -> None:
    with ExitStack() as stack:
        slots = Slots(20, stack)
        for number in range(8):
            slots.open(member(f"bot-{number}", f"o{number // 2}"), f"192.0.2.{number}", 20)
        assert len(slots.slots) == 15, "the rest is for organizations that have none"
        others = [slots.open(member(f"anna-{number}", f"a{number}"), f"198.51.100.{number}") for number in range(9)]
        assert others == [1] * 9
        assert (len(slots.slots), slots.displaced()) == (20, 4)
        assert sum(count for name, count in slots.counts.items() if name.startswith("anna")) == 9


def test_m27_no_watch_ends_for_a_holder_that_would_have_more() -> None:
    with ExitStack() as stack:
        slots = Slots(4, stack)
        for number in range(4):
            assert slots.open(member(f"anna-{number}", f"a{number}"), "") == 1
        assert slots.open(member("bert", "b"), "") == 0
        with pytest.raises(NoFreeWatch) as found:
            slots.slots.check(principal=member("bert", "b"), host="")
        assert (found.value.status, found.value.retry_after_s) == (503, 5)
        assert (slots.rejected(), slots.displaced()) == ({"all": 2}, 0)


async def test_m27_a_watch_that_is_displaced_ends_at_once_and_says_where_to_resume(tmp_path: Path) -> None:
    slots = WatchSlots(16)
    ports = WatchPorts(clock=SystemClock(), slots=slots, heartbeat_s=3_600)
    async with sample_store(tmp_path) as store, AsyncExitStack() as stack:
        await fill(store, ["a"])

        async def opened(name: str) -> Reader:
            permissions = PermissionSet(member(name, "a"))
            reader = await stack.enter_async_context(watching(herd(store), permissions=permissions, ports=ports))
            assert [(await reader.next()).type for _ in range(2)] == ["added", "bookmark"]
            return reader

        readers = [await opened(name) for name in ("bot-1", "bot-1", "bot-2", "bot-2", "anna")]
        ended = await readers[1].next()
        assert (ended.type, ended.data, bool(ended.id)) == ("end", b'{"reason":"displaced"}', True)
        assert len(slots) == 4
        await stack.aclose()
        assert len(slots) == 0


async def test_watches_that_begin_at_the_same_time_do_not_exceed_the_slots(tmp_path: Path) -> None:
    ports = WatchPorts(clock=SystemClock(), slots=WatchSlots(2))
    async with sample_store(tmp_path) as store, AsyncExitStack() as stack:
        await fill(store, ["a"])
        readers = [
            await stack.enter_async_context(watching(herd(store), permissions=PermissionSet(ANNA), ports=ports))
            for _ in range(2)
        ]
        assert (await readers[0].next()).type == "added"
        ended = await readers[1].next()
        assert (ended.type, ended.data) == ("end", b'{"reason":"too_many"}')
        assert len(ports.slots) == 1


def test_the_address_of_a_client_behind_a_proxy_counts_and_that_of_the_proxy_does_not() -> None:
    proxies, peer = ForwardingProxies(["10.0.0.0/8"]), ("10.1.1.1", 4711)
    assert host_of(peer, {b"x-forwarded-for": b"192.0.2.7"}, proxies) == "192.0.2.7"
    assert host_of(peer, {b"x-forwarded-for": b"2001:db8:1:2:3::4"}, proxies) == "2001:db8:1:2:3::4"
    assert host_of(peer, {}, proxies) == ""
    assert host_of(("192.0.2.8", 4711), {b"x-forwarded-for": b"192.0.2.7"}, proxies) == "192.0.2.8"
    assert host_of(None, {}, proxies) == ""
