"""Keys in the order of a number."""

import math

from hypothesis import given
from hypothesis import strategies as st

from remuda.reconcile.queue import FairHeap, Item, KeyedHeap

keys = st.sampled_from("abcdef")
moves = st.lists(
    st.one_of(
        st.tuples(st.just("put"), keys, st.integers(0, 5)),
        st.tuples(st.just("drop"), keys, st.just(0)),
        st.tuples(st.just("pop"), st.just(""), st.integers(0, 5)),
    ),
    max_size=200,
)


@given(moves)
def test_it_does_what_a_sorted_list_would_do(script: list[tuple[str, str, int]]) -> None:
    schedule: KeyedHeap[str] = KeyedHeap()
    model: dict[str, tuple[int, int]] = {}
    for number, (verb, key, at) in enumerate(script):
        match verb:
            case "put":
                schedule.put(key, at, key.upper())
                if key not in model or model[key][0] != at:
                    model[key] = (at, number)
            case "drop":
                assert (schedule.drop(key) is not None) == (model.pop(key, None) is not None)
            case _:
                expected = min((place, name) for name, place in model.items()) if model else None
                taken = schedule.pop(upto=at)
                if expected is None or expected[0][0] > at:
                    assert taken is None
                else:
                    assert taken == (expected[1], expected[1].upper())
                    del model[expected[1]]
        assert len(schedule) == len(model)
        assert schedule.first() == min((at for at, _ in model.values()), default=None)


def test_what_is_moved_for_ever_does_not_make_it_grow() -> None:
    schedule: KeyedHeap[int] = KeyedHeap()
    for number in range(10_000):
        schedule.put("key", -number, number)
    assert len(schedule._heap) < 200
    assert schedule.pop(upto=math.inf) == ("key", 9_999)


def test_the_one_that_has_been_here_longest_is_known_although_it_was_moved() -> None:
    heap = FairHeap()
    heap.put("first", "a", Item(5, 0, "event", was_idle=True))
    heap.put("second", "b", Item(1, 1, "event", was_idle=True))
    moved = Item(9, 0, "event", was_idle=True)
    heap.put("first", "a", moved)
    assert heap.oldest() is moved
