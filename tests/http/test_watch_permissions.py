"""How long a stream lives: by heartbeats, and no longer than the permissions behind it."""

import asyncio
from datetime import timedelta

import msgspec
import pytest
from msgspec.structs import replace as changed

from remuda.access.principal import AccessList, OrganizationAccess, Permission
from remuda.http.pagination import Cursors
from remuda.http.sse import Received
from remuda.http.watch import WatchPorts
from remuda.kernel.errors import Forbidden, Gone, Unauthenticated, Unavailable
from tests.kit.environment import options
from tests.kit.sample_api.collections import ANNA, herd
from tests.kit.sample_api.watch_reader import PermissionSet, watching
from tests.kit.sample_kinds import REGISTRY, horse
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import open_simulated

BEAT_S = 15.0


def access_to(*organizations: str) -> AccessList:
    held = frozenset({Permission("x", "read"), Permission("x", "update"), Permission("y", "read")})
    return AccessList(organizations={name: OrganizationAccess(projects={"p": held}) for name in organizations})


async def ending(world: World, permissions: PermissionSet, *, after_s: float, act: str) -> tuple[Received, float]:
    """Return how a stream ends, and when, if something happens to the reader's permissions while it is idle."""
    store = open_simulated(world, REGISTRY)
    began = world.clock.monotonic()
    try:
        async with watching(herd(store), permissions=permissions, ports=WatchPorts(clock=world.clock)) as reader:
            await reader.next()
            ended = asyncio.create_task(reader.rest())
            await world.clock.sleep(after_s)
            match act:
                case "reject":
                    permissions.error = Unauthenticated("token was revoked")
                case "forbid":
                    permissions.error = Forbidden("no more")
                case "fail":
                    permissions.error = Unavailable("identity does not answer: try again.")
                case "change":
                    permissions.principal = changed(permissions.principal, access=access_to("o"))
                case _:
                    pass
            (end,) = await ended
            return end, world.clock.monotonic() - began
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("reject", "unauthenticated"),
        ("forbid", "forbidden"),
        ("fail", "unavailable"),
        ("change", "access_changed"),
        ("expire", "expired"),
    ],
)
@options(seeds=3)
async def test_an_idle_stream_ends_soon_after_the_permissions_behind_it(world: World, act: str, reason: str) -> None:
    permissions = PermissionSet()
    if act == "expire":
        permissions.principal = changed(ANNA, expires=world.clock.now() + timedelta(seconds=100))
    end, after_s = await ending(world, permissions, after_s=100, act=act)
    assert (end.type, msgspec.json.decode(end.data)) == ("end", {"reason": reason})
    assert 100 <= after_s <= 100 + BEAT_S + 1
    assert (end.id == "") == (act == "change"), "what was seen under other permissions is no place to go on from"


@options(seeds=3)
async def test_a_reader_resumes_under_equal_permissions_and_restarts_under_others(world: World) -> None:
    store, ports = open_simulated(world, REGISTRY), WatchPorts(clock=world.clock)
    first = PermissionSet(changed(ANNA, access=access_to("o", "q")))
    equal = PermissionSet(changed(ANNA, access=access_to("q", "o"), expires=world.clock.now() + timedelta(days=1)))
    other = PermissionSet(changed(ANNA, access=access_to("o")))
    try:
        async with watching(herd(store), permissions=first, ports=ports) as reader:
            synced = await reader.next()
        await store.create(horse("a"))
        async with watching(herd(store), since=synced.id, permissions=equal, ports=ports) as reader:
            assert (await reader.next()).type == "added"
        with pytest.raises(Gone, match="Permissions have changed since"):
            async with watching(herd(store), since=synced.id, permissions=other, ports=ports):
                pass
    finally:
        await store.close()


@options(seeds=5)
async def test_nothing_is_told_once_the_permissions_are_gone(world: World) -> None:
    store, permissions = open_simulated(world, REGISTRY), PermissionSet()
    try:
        async with watching(herd(store), permissions=permissions, ports=WatchPorts(clock=world.clock)) as reader:
            await reader.next()
            await world.clock.sleep(2)
            permissions.error = Unauthenticated("token was revoked")
            await store.create(horse("secret"))
            assert [event.type for event in await reader.rest()] == ["end"]
    finally:
        await store.close()


@options(seeds=3)
async def test_m27_a_busy_stream_shows_nothing_after_a_change_of_permissions(world: World) -> None:
    store, permissions, changes = open_simulated(world, REGISTRY), PermissionSet(), [0]
    ports = WatchPorts(clock=world.clock, access_version=lambda: changes[0])
    try:
        async with watching(herd(store), permissions=permissions, ports=ports) as reader:
            await reader.next()
            for number in range(20):
                await store.create(horse(f"h-{number}"))
                assert (await reader.next()).type == "added"
            assert permissions.asked == 1, "while nothing changes, it is checked once a second"
            permissions.error, changes[0] = Unauthenticated("user is suspended"), 1
            await store.create(horse("secret"))
            assert [event.type for event in await reader.rest()] == ["end"]
    finally:
        await store.close()


@options(seeds=3)
async def test_an_idle_stream_lives_by_heartbeats_and_asks_for_its_permissions_at_each(world: World) -> None:
    store, permissions = open_simulated(world, REGISTRY), PermissionSet()
    try:
        async with watching(herd(store), permissions=permissions, ports=WatchPorts(clock=world.clock)) as reader:
            await reader.next()
            waiting = asyncio.create_task(reader.next())
            await world.clock.sleep(10 * BEAT_S + 1)
            assert 9 <= reader.comments <= 11
            assert permissions.asked == reader.comments
            await store.create(horse("a"))
            assert (await waiting).type == "added"
    finally:
        await store.close()


@options(seeds=3)
async def test_a_reader_that_may_see_none_of_what_happens_can_still_resume_behind_it(world: World) -> None:
    store = open_simulated(world, REGISTRY)
    blind = herd(store, visible=lambda _: False)
    try:
        async with watching(blind, ports=WatchPorts(clock=world.clock)) as reader:
            synced = await reader.next()
            waiting = asyncio.create_task(reader.next())
            last = await store.create(horse("a"))
            bookmark = await waiting
        assert (bookmark.type, bookmark.id) == ("bookmark", Cursors(ANNA.access).write(last.version))
        assert bookmark.id != synced.id
    finally:
        await store.close()


@options(seeds=1)
async def test_many_streams_share_one_ticker_and_are_not_awake_together(world: World) -> None:
    store, ports, permissions = open_simulated(world, REGISTRY), WatchPorts(clock=world.clock), PermissionSet()
    tasks = []

    async def read() -> None:
        async with watching(herd(store), permissions=permissions, ports=ports) as reader:
            await reader.rest()

    try:
        await world.clock.sleep(1)  # the store has tasks that end by themselves
        idle = len(asyncio.all_tasks())
        tasks = [asyncio.create_task(read()) for _ in range(32)]
        await world.clock.sleep(1)
        assert len(asyncio.all_tasks()) - idle == 2 * len(tasks) + 2, "a reader, its pull, and two for all"
        permissions.asked = 0
        await world.clock.sleep(BEAT_S / 2)
        assert 8 < permissions.asked < 24, "half of them had their turn"
    finally:
        ports.closing.set()
        await asyncio.gather(*tasks)
        await store.close()
