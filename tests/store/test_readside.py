"""The bounds of the read side: what it keeps in memory, however many objects, views and watchers there are."""

import pytest
from msgspec.structs import replace

from remuda.store.contract import Change
from remuda.store.readside.cache import Cache, CachedObject
from remuda.store.readside.change_feed import CommittedChange, Feed
from remuda.store.readside.tables import MODIFIED
from tests.kit.sample_kinds import REGISTRY, Horse, horse

KIND = 1


def landed(version: int, *, weight: int) -> CommittedChange[Horse]:
    resource = horse(f"h-{version}")
    return CommittedChange(resource.name, version, MODIFIED, Change("modified", str(version), resource), None, weight)


def test_the_cache_keeps_what_was_used_last() -> None:
    cache = Cache(300, object_bytes=0)
    for name in ("a", "b", "c"):
        cache.put(KIND, name, CachedObject(horse(name), weight=100))
    cache.find(KIND, "a")
    cache.put(KIND, "d", CachedObject(horse("d"), weight=100))
    assert [name for name in "abcd" if cache.find(KIND, name)] == ["a", "c", "d"]


def test_rendered_views_count_against_the_bound() -> None:
    cache = Cache(1_000, object_bytes=0)
    cache.put(KIND, "viewed", CachedObject(horse("viewed"), weight=100))
    cache.put(KIND, "other", CachedObject(horse("other"), weight=100))
    for _ in range(100):
        cache.render(KIND, "viewed", lambda _: b"x" * 400)
    assert cache._weight <= 1_000


def test_a_view_is_rendered_once_until_its_object_changes() -> None:
    cache, rendered = Cache(1_000, object_bytes=0), []

    def view(one: Horse) -> bytes:
        rendered.append(one.spec.colour)
        return one.spec.colour.encode()

    cache.put(KIND, "bella", CachedObject(horse("bella"), weight=100))
    assert [cache.render(KIND, "bella", view) for _ in range(3)] == [b"bay"] * 3
    changed = horse("bella")
    cache.put(KIND, "bella", CachedObject(replace(changed, spec=replace(changed.spec, colour="grey")), weight=100))
    assert cache.render(KIND, "bella", view) == b"grey"
    assert rendered == ["bay", "grey"]


@pytest.mark.parametrize(("weight", "kept"), [(1, 10), (100, 5), (5_000, 0)])
def test_the_tail_is_bounded_in_number_and_in_bytes(weight: int, kept: int) -> None:
    feed = Feed(REGISTRY.of(Horse), reached=0, floor=0, keep=10, keep_bytes=500)
    for version in range(1, 101):
        feed.extend([landed(version, weight=weight)])
    tail = feed.after(100 - kept, limit=1_000)
    assert tail is not None
    assert [change.version for change in tail] == list(range(101 - kept, 101))
    assert feed.after(50, limit=1_000) is None, "whoever is so far behind reads the table"


def test_a_burst_larger_than_the_tail_leaves_its_end() -> None:
    feed = Feed(REGISTRY.of(Horse), reached=0, floor=0, keep=10, keep_bytes=10_000)
    feed.extend([landed(version, weight=1) for version in range(1, 16)])
    assert feed.after(0, limit=100) is not None
    feed.extend([landed(version, weight=1) for version in range(16, 41)])
    assert feed.after(0, limit=100) is None
    assert feed.after(35, limit=2) == [landed(36, weight=1), landed(37, weight=1)]
